// What can go wrong on the wire. Callers branch on `code`, never on the message.

export type WireErrorCode =
  | 'closed' // the connection ended before the answer
  | 'cancelled' // the caller's signal aborted
  | 'timed-out' // no answer (or no progress) in time
  | 'too-large' // one message passed the cap; the connection lives on
  | 'malformed' // the answer does not have the shape the method promises
  | 'remote' // the peer answered with a JSON-RPC error; see `rpc`
  | 'http' // an HTTP status without a JSON-RPC body; see `status`
  | 'unauthorized' // HTTP 401/403; see `challenge`
  | 'session-lost' // a legacy HTTP session is gone (404)
  | 'spawn-failed'
  | 'version-mismatch'
  | 'pagination' // more pages than allowed, or a repeated cursor
  | 'too-many-rounds' // input_required did not come to an end

export interface RpcError {
  code: number
  message: string
  data?: unknown
}
export interface WireErrorDetails {
  rpc?: RpcError
  status?: number
  challenge?: string
  cause?: unknown
}

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
