// One request on its way, and what its caller may say about it.
import type { JsonObject } from './protocol.ts'

/** Which request something belongs to. */
export interface CallContext {
  readonly id: number
  readonly method: string
  readonly params: JsonObject
}

/** Answers what a server asks of its client. A `WireError` with `details.rpc` becomes that JSON-RPC error; anything else thrown becomes "Internal error". */
export type ServerRequestHandler = (params: JsonObject, context: ServerRequestContext) => Promise<JsonObject>

/** What a handler is told about a question besides its parameters. */
export interface ServerRequestContext {
  method: string
  /** Aborts when the server takes its question back, the call it belongs to is over, or the connection ends. */
  signal: AbortSignal
  /** The call on whose behalf the server asks, where that can be known. */
  call?: CallContext
}

/** How long one request may take, and who hears and answers on the way. */
export interface RequestOptions {
  signal?: AbortSignal
  /** Without an answer or progress for so long the call fails. Default 60,000; 0 = never. It stands still while a question of the server is being answered and while credentials are waited for. */
  idleTimeoutMs?: number
  /** Whatever progress comes, the call fails after so long, all rounds included. It stands still while a question of the server is being answered and while credentials are waited for. Default: no limit. */
  totalTimeoutMs?: number
  onProgress?: (progress: JsonObject) => void
  /** Extra HTTP headers of this request. */
  headers?: Readonly<Record<string, string>>
  /** Called once the request is on its way, with a way to cancel it that is cheaper than a signal (a gateway does it for every call). */
  onStarted?: (cancel: (reason: string) => void) => void
  /** Answer what the server asks on behalf of this call, before the session's own handlers. */
  handlers?: Readonly<Record<string, ServerRequestHandler>>
  /** Modern era: the client capabilities of this one request. */
  capabilities?: JsonObject
  /** Asked before the request is sent in another session than the one it was made for. False: it fails with `session-lost`, and was not sent. */
  mayMove?: () => boolean
  /** What came on this call's own stream, besides progress. The session's listener hears it too. */
  onNotification?: (method: string, params: JsonObject) => void
}

/** An answer as bytes. `body` is the result or error object: a view of the read buffer, which it keeps alive, so do not store it. */
export interface RawAnswer {
  kind: 'result' | 'error'
  body: Buffer
  /** The result object has a top-level `resultType`. */
  typed: boolean
}

/** One request on its way. Made by the peer, read by channels. */
export class Call implements CallContext {
  idleAtMs: number = Infinity
  totalAtMs: number = Infinity
  /** How many things stop the clocks at present. */
  pauses = 0
  /** What was left of the total limit when the clocks were stopped, in ms. */
  totalLeftMs: number = Infinity
  /** The questions of the server that are being answered for this call. */
  asked: Set<AbortController> | undefined
  onAbort: (() => void) | undefined
  /** For the HTTP channel: what carries this call at present. */
  exchange: { readonly sent: boolean; drop(): void } | undefined
  /** For channels that cannot tell from the id: the bytes have left. */
  sent = false

  readonly id: number
  readonly method: string
  readonly params: JsonObject
  readonly options: RequestOptions
  readonly raw: boolean
  readonly resolve: (value: never) => void
  readonly reject: (error: Error) => void

  constructor(init: Pick<Call, 'id' | 'method' | 'params' | 'options' | 'raw' | 'resolve' | 'reject'>) {
    this.id = init.id
    this.method = init.method
    this.params = init.params
    this.options = init.options
    this.raw = init.raw
    this.resolve = init.resolve
    this.reject = init.reject
  }
}
