import type { HostError, JsonObject } from '../base/index.ts'
import type { RequestOptions, ToolResult } from '../protocol/index.ts'

/** How a caller limits and observes one call. */
export interface CallOptions extends Omit<RequestOptions, 'idleTimeoutMs' | 'totalTimeoutMs'> {
  /** The whole call, in milliseconds; the smaller of this and the server's `toolTotalTimeoutMs` holds. */
  readonly timeoutMs?: number
  /** The caller's own id of this call; a hosted server gets it back with its own object. Default: a random one. */
  readonly callId?: string
  /** `_meta` of the request. Keys of hosts (`convoke/`, ids of threads and accounts …) and the progress token are removed. */
  readonly meta?: JsonObject
}

/** How one tool call ended. */
export type CallOutcome =
  | { readonly kind: 'ok' | 'tool-error'; readonly result: ToolResult }
  /** `unknown`: the request had left and no answer came; whether the tool ran is not known. */
  | { readonly kind: 'failed' | 'unknown' | 'cancelled'; readonly error: HostError }
