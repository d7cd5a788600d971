// The shapes in which a server is spoken to, for everybody above this room.
import type { JsonObject } from '../base/index.ts'

/** The call of ours on whose behalf a server asks or tells something. */
export interface CallContext {
  readonly id: number
  readonly method: string
  readonly params: JsonObject
}

/** Answers what a server asks of us. What it throws becomes a JSON-RPC error. */
export type ServerRequestHandler = (
  params: JsonObject,
  context: { readonly method: string; readonly signal: AbortSignal; readonly call?: CallContext },
) => Promise<JsonObject>

/** How one request is limited and observed. */
export interface RequestOptions {
  /** Abort: the request settles at once as cancelled, the server is told once and lives on. */
  readonly signal?: AbortSignal
  /** Longest silence, reset by progress, in milliseconds; 0 = no limit. */
  readonly idleTimeoutMs?: number
  /** The whole request, in milliseconds, whatever progress comes. */
  readonly totalTimeoutMs?: number
  readonly onProgress?: (progress: JsonObject) => void
  readonly headers?: Record<string, string>
  /** Called once the request is on its way, with a way to cancel it that is cheaper than a signal. */
  readonly onStarted?: (cancel: (reason: string) => void) => void
  /** Answer what the server asks on behalf of this request, before the session's own handlers. */
  readonly handlers?: Record<string, ServerRequestHandler>
  /** Client capabilities of this one request (modern era). */
  readonly capabilities?: JsonObject
  /** What came on this request's own stream: log messages and the like. */
  readonly onNotification?: (method: string, params: JsonObject) => void
}

/** What to be told of. */
export interface SubscriptionFilter {
  readonly toolsListChanged?: boolean
  readonly promptsListChanged?: boolean
  readonly resourcesListChanged?: boolean
  /** URIs whose content is watched. */
  readonly resourceSubscriptions?: readonly string[]
}

/** A running subscription. Disposing it ends it. */
export interface SubscriptionHandle extends AsyncDisposable {
  /** Ends it. */
  close(): Promise<void>
}
