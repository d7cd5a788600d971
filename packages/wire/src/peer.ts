// The JSON-RPC half that both transports share: pending calls, deadlines, progress, cancellation, and what the server asks of us.
import { watchDeadline } from './deadlines.ts'
import { type Envelope, recoverId, scanEnvelope } from './envelope.ts'
import { type RpcError, WireError } from './errors.ts'

export type JsonObject = Record<string, unknown>

/** The other half: carries text to the server and hands what comes back to `Peer.receive`. */
export interface Channel {
  /** `call` is undefined for notifications and for answers to the server's own requests. */
  send(text: string, call: Call | undefined): void
  /** The caller is gone: tell the server, in the way of this transport and era. */
  cancel(call: Call, reason: string): void
}

export interface RequestOptions {
  signal?: AbortSignal
  /** Without an answer or progress for so long the call fails. Default 60,000; 0 = never. */
  idleTimeoutMs?: number
  /** Whatever progress comes, the call fails after so long. Default: no limit. */
  totalTimeoutMs?: number
  onProgress?: (progress: JsonObject) => void
  headers?: Record<string, string>
  /** Called once the request is on its way, with a way to cancel it that is cheaper than a signal (a gateway does it for every call). */
  onStarted?: (cancel: (reason: string) => void) => void
}

/** An answer as bytes. `body` is the result or error object: a view of the read buffer, which it keeps alive, so do not store it. */
export interface RawAnswer {
  kind: 'result' | 'error'
  body: Buffer
  typed: boolean
}

export interface PeerHooks {
  onRequest(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject>
  onNotification(method: string, params: JsonObject): void
  /** A line that is not JSON-RPC: servers print to stdout. */
  onNoise(text: string): void
}

const IDLE_TIMEOUT_MS = 60_000
const METHOD_NOT_FOUND = -32601,
  INTERNAL_ERROR = -32603

/** One request on its way. */
export class Call {
  idleAtMs: number = Infinity
  totalAtMs: number = Infinity
  onAbort: (() => void) | undefined
  /** For the HTTP channel: how to drop the exchange which carries this call. */
  abortExchange: (() => void) | undefined

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

export class Peer {
  readonly #pending = new Map<number, Call>()
  readonly #serving = new Map<unknown, AbortController>()
  readonly #channel: Channel
  readonly #hooks: PeerHooks
  #lastId = 0
  #rawCalls = 0
  #ended: WireError | undefined
  /** Members of `_meta` that every request carries (modern era), as JSON text without braces; empty = none. */
  requestMeta = ''

  constructor(channel: Channel, hooks: PeerHooks) {
    this.#channel = channel
    this.#hooks = hooks
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  request(method: string, params: JsonObject, options: RequestOptions = {}): Promise<JsonObject> {
    return this.#start<JsonObject>(method, params, options, false)
  }

  /** As `request`, but the answer stays bytes. */
  requestRaw(method: string, params: JsonObject, options: RequestOptions = {}): Promise<RawAnswer> {
    return this.#start<RawAnswer>(method, params, options, true)
  }

  notify(method: string, params: JsonObject = {}): void {
    if (this.#ended === undefined)
      this.#channel.send(
        `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`,
        undefined,
      )
  }

  #start<Answer>(method: string, params: JsonObject, options: RequestOptions, raw: boolean): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) return reject(this.#ended)
      if (options.signal?.aborted === true) return reject(cancelled(options.signal.reason))
      const call = new Call({
        id: ++this.#lastId,
        method,
        params,
        options,
        raw,
        resolve: resolve as (value: never) => void,
        reject,
      })
      this.#pending.set(call.id, call)
      if (raw) this.#rawCalls++
      this.#watch(call)
      this.#channel.send(this.#text(call), call)
      options.onStarted?.((reason) => this.#giveUp(call, cancelled(reason), reason))
    })
  }

  #text(call: Call): string {
    const progress =
      call.options.onProgress !== undefined || call.options.totalTimeoutMs !== undefined
        ? `"progressToken":${call.id}`
        : ''
    let { params } = call
    let meta = this.requestMeta
    if (progress !== '') meta = meta === '' ? progress : `${meta},${progress}`
    if (params['_meta'] !== undefined && meta !== '') {
      // rare: the caller brings its own
      const { _meta, ...rest } = params
      const own = JSON.stringify(_meta).slice(1, -1)
      params = rest
      meta = own === '' ? meta : `${own},${meta}`
    }
    let body = JSON.stringify(params)
    if (meta !== '') body = body === '{}' ? `{"_meta":{${meta}}}` : `{"_meta":{${meta}},${body.slice(1)}`
    return `{"jsonrpc":"2.0","id":${call.id},"method":${JSON.stringify(call.method)},"params":${body}}`
  }

  #watch(call: Call): void {
    const { signal, idleTimeoutMs = IDLE_TIMEOUT_MS, totalTimeoutMs } = call.options
    if (signal !== undefined) {
      call.onAbort = () => this.#giveUp(call, cancelled(signal.reason), 'cancelled by the caller')
      signal.addEventListener('abort', call.onAbort, { once: true })
    }
    if (idleTimeoutMs === 0 && totalTimeoutMs === undefined) return
    const nowMs = performance.now()
    if (idleTimeoutMs !== 0) call.idleAtMs = nowMs + idleTimeoutMs
    if (totalTimeoutMs !== undefined) call.totalAtMs = nowMs + totalTimeoutMs
    watchDeadline(this, Math.min(call.idleAtMs, call.totalAtMs))
  }

  sweep(nowMs: number): number {
    let nextMs = Infinity
    for (const call of this.#pending.values()) {
      const dueMs = Math.min(call.idleAtMs, call.totalAtMs)
      if (dueMs <= nowMs)
        this.#giveUp(call, new WireError('timed-out', `"${call.method}" got no answer in time`), 'timed out')
      else if (dueMs < nextMs) nextMs = dueMs
    }
    return nextMs
  }

  /** Takes a call out of the books. False when it has been settled already. */
  #take(call: Call): boolean {
    if (!this.#pending.delete(call.id)) return false
    if (call.raw) this.#rawCalls--
    if (call.onAbort !== undefined) call.options.signal?.removeEventListener('abort', call.onAbort)
    return true
  }

  #giveUp(call: Call, error: WireError, reason: string): void {
    if (!this.#take(call)) return
    if (call.method !== 'initialize') this.#channel.cancel(call, reason) // the spec forbids cancelling it
    call.reject(error)
  }

  fail(call: Call, error: WireError): void {
    if (this.#take(call)) call.reject(error)
  }

  isPending(call: Call): boolean {
    return this.#pending.has(call.id)
  }

  /** The connection is gone: every call fails with `error`, and later ones do at once. */
  end(error: WireError): void {
    this.#ended ??= error
    for (const call of [...this.#pending.values()]) this.fail(call, error)
    for (const controller of this.#serving.values()) controller.abort(error)
    this.#serving.clear()
  }

  /** One message as bytes, from either transport. */
  receive(bytes: Buffer, start: number, end: number): void {
    if (this.#rawCalls > 0) {
      const envelope = scanEnvelope(bytes, start, end)
      const call = envelope === undefined ? undefined : this.#pending.get(Number(unquote(envelope.id)))
      if (envelope !== undefined && call?.raw === true) return this.#answerRaw(call, bytes, envelope)
    }
    const text = bytes.toString('utf8', start, end)
    let message: unknown
    try {
      message = JSON.parse(text)
    } catch {
      if (text.trim() !== '') this.#hooks.onNoise(text)
      return
    }
    if (Array.isArray(message))
      for (const one of message) this.#dispatch(one, text) // batches: 2025-03-26 only
    else this.#dispatch(message, text)
  }

  receiveOversized(head: Buffer, tail: Buffer, length: number): void {
    const id = recoverId(head, tail)
    const only = this.#pending.size === 1 ? [...this.#pending.values()][0] : undefined
    const call = id === undefined ? only : this.#pending.get(Number(unquote(id)))
    if (call !== undefined)
      this.fail(
        call,
        new WireError('too-large', `The answer to "${call.method}" has ${length} bytes, more than allowed`),
      )
    else this.#hooks.onNoise(`dropped a message of ${length} bytes`)
  }

  #answerRaw(call: Call, bytes: Buffer, { kind, start, end, typed }: Envelope): void {
    this.#take(call)
    ;(call.resolve as (answer: RawAnswer) => void)({ kind, body: bytes.subarray(start, end), typed })
  }

  #dispatch(message: unknown, text: string): void {
    if (typeof message !== 'object' || message === null) return this.#hooks.onNoise(text)
    const { id, method, params, result, error } = message as {
      id?: unknown
      method?: unknown
      params?: JsonObject
      result?: JsonObject
      error?: RpcError
    }
    if (method === undefined) return this.#answer(id, result, error, text)
    if (typeof method !== 'string') return this.#hooks.onNoise(text)
    if (id !== undefined) return void this.#serve(id, method, params ?? {})
    if (method === 'notifications/progress') this.#progress(params ?? {})
    else if (method === 'notifications/cancelled') this.#serving.get(params?.['requestId'])?.abort()
    else this.#hooks.onNotification(method, params ?? {})
  }

  #answer(id: unknown, result: JsonObject | undefined, error: RpcError | undefined, text: string): void {
    const call = this.#pending.get(typeof id === 'number' ? id : Number(id ?? NaN)) // some servers answer "7" to 7
    if (call === undefined) {
      if (result === undefined && error === undefined) this.#hooks.onNoise(text)
      return
    } // else: a late answer
    if (error !== undefined && error !== null) {
      if (call.raw) return this.#rawFrom(call, 'error', error)
      return this.fail(call, new WireError('remote', String(error.message), { rpc: error }))
    }
    if (typeof result !== 'object' || result === null)
      return this.fail(call, new WireError('malformed', `The answer to "${call.method}" has no result object`))
    if (call.raw) return this.#rawFrom(call, 'result', result)
    this.#take(call)
    ;(call.resolve as (value: JsonObject) => void)(result)
  }

  #rawFrom(call: Call, kind: RawAnswer['kind'], value: object): void {
    this.#take(call)
    ;(call.resolve as (answer: RawAnswer) => void)({
      kind,
      body: Buffer.from(JSON.stringify(value)),
      typed: 'resultType' in value,
    })
  }

  #progress(params: JsonObject): void {
    const call = this.#pending.get(Number(params['progressToken']))
    if (call === undefined) return
    if (call.idleAtMs !== Infinity) call.idleAtMs = performance.now() + (call.options.idleTimeoutMs ?? IDLE_TIMEOUT_MS)
    try {
      call.options.onProgress?.(params)
    } catch {
      /* a throwing listener is not the call's failure */
    }
  }

  async #serve(id: unknown, method: string, params: JsonObject): Promise<void> {
    const controller = new AbortController()
    this.#serving.set(id, controller)
    let answer: string
    try {
      const result = await this.#hooks.onRequest(method, params, controller.signal)
      answer = `"result":${JSON.stringify(result)}`
    } catch (error) {
      const rpc: RpcError =
        error instanceof WireError && error.details.rpc
          ? error.details.rpc
          : { code: INTERNAL_ERROR, message: 'Internal error' }
      answer = `"error":${JSON.stringify(rpc)}`
    }
    if (this.#serving.get(id) === controller) this.#serving.delete(id)
    if (this.#ended === undefined && !controller.signal.aborted)
      this.#channel.send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${answer}}`, undefined)
  }
}

export function methodNotFound(method: string): WireError {
  return new WireError('remote', `Method not found: ${method}`, {
    rpc: { code: METHOD_NOT_FOUND, message: 'Method not found' },
  })
}

function cancelled(reason: unknown): WireError {
  return new WireError('cancelled', 'The call was cancelled', { cause: reason })
}
function unquote(id: string): string {
  return id.startsWith('"') ? id.slice(1, -1) : id
}
