// What can go wrong on the wire. Callers branch on `code`, never on the message.
import type { RpcError } from './protocol.ts'

export type { RpcError } from './protocol.ts'

/** What callers branch on. */
export type WireErrorCode =
  | 'closed' // the connection ended before the answer
  | 'cancelled' // the caller's signal aborted
  | 'timed-out' // no answer (or no progress) in time; see `limit`
  | 'too-large' // one message passed the cap; the connection lives on
  | 'malformed' // the answer does not have the shape the method promises
  | 'remote' // the peer answered with a JSON-RPC error; see `rpc`
  | 'http' // an HTTP status without a JSON-RPC body; see `status`
  | 'unauthorized' // HTTP 401/403; see `challenge`
  | 'session-lost' // a legacy HTTP session is gone (404)
  | 'unreachable' // no connection to an HTTP server (name, port, certificate, proxy): nothing was sent
  | 'refused' // a rule of this side forbids it: scheme, redirect, content encoding, header, address
  | 'spawn-failed' // the command could not be started
  | 'version-mismatch' // no protocol version in common
  | 'pagination' // a listing passed a limit; see `limit`
  | 'too-many-rounds' // input_required did not come to an end
  | 'input-failed' // a question of the server could not be answered

/** Which limit was passed, for `timed-out` and `pagination`. */
export type WireLimit =
  | 'idle'
  | 'total'
  | 'startup'
  | 'pages'
  | 'items'
  | 'cursor-bytes'
  | 'repeated-cursor'
  | 'listing'

/** What is known besides the code; each member only where it applies. */
export interface WireErrorDetails {
  rpc?: RpcError
  /** HTTP status. */
  status?: number
  /** The `WWW-Authenticate` header. */
  challenge?: string
  /** The last lines that the server process wrote to stderr, cleaned of control characters. */
  stderrTail?: string
  /** The request's bytes had left this process: the server may have acted on it. */
  sent?: boolean
  limit?: WireLimit
  /** How the server process ended. */
  exitCode?: number
  signal?: string
  cause?: unknown
}

/** Every failure of this package. */
export class WireError extends Error {
  override readonly name = 'WireError'
  readonly code: WireErrorCode
  readonly details: WireErrorDetails

  constructor(code: WireErrorCode, message: string, details: WireErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.details = details
  }
}

/** The answer to a request that nobody here can answer (−32601). */
export function methodNotFound(method: string): WireError {
  return new WireError('remote', `Method not found: ${method}`, {
    rpc: { code: -32601, message: 'Method not found' },
  })
}

/** Why a connection is over. */
export interface CloseOutcome {
  /** `local`: this side closed it. */
  cause: 'local' | 'process-exited' | 'connection-lost'
  message: string
  exitCode?: number
  signal?: string
}
