// The JSON-RPC half that all transports share: pending calls, deadlines, progress, cancellation, and what the server asks of us.
import { Call, type RawAnswer, type RequestOptions } from './call.ts'
import type { Channel, Receiver } from './channel.ts'
import { cleanText } from './clean-text.ts'
import { type Deadlines, deadlinesOf } from './deadlines.ts'
import { type Envelope, recoverId, scanEnvelope } from './envelope.ts'
import { type CloseOutcome, type RpcError, WireError } from './errors.ts'
import type { Platform } from './platform.ts'
import type { JsonObject } from './protocol.ts'

export type { Call, CallContext, RawAnswer, RequestOptions, ServerRequestHandler } from './call.ts'
export type { Channel, ChannelContext, Receiver } from './channel.ts'
export type { JsonObject } from './protocol.ts'

export interface PeerHooks {
  /** A request of the server. `call`: the one on whose behalf it asks, where that can be known. */
  onRequest(
    method: string,
    params: JsonObject,
    context: { signal: AbortSignal; call: Call | undefined },
  ): Promise<JsonObject>
  onNotification(method: string, params: JsonObject, call: Call | undefined): void
  /** The first thing that is no JSON-RPC message: servers print to stdout. Cut and cleaned; later ones are only counted. */
  onNoise(text: string): void
}

/** Members of `_meta` that every request of the modern era carries. */
export type RequestMeta = (capabilities: JsonObject | undefined) => string

const IDLE_TIMEOUT_MS = 60_000
const NOISE_CHARS_KEPT = 512
const SERVER_REQUESTS_MAX = 64
const METHOD_NOT_FOUND = -32601,
  INTERNAL_ERROR = -32603,
  TOO_MANY_REQUESTS = -32000
const LISTEN = 'subscriptions/listen'
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'

export class Peer implements Receiver {
  readonly #pending = new Map<number, Call>()
  readonly #serving = new Map<unknown, AbortController>()
  readonly #channel: Channel
  readonly #hooks: PeerHooks
  readonly platform: Platform
  readonly #deadlines: Deadlines
  #lastId = 0
  #rawCalls = 0
  #standingCalls = 0
  #ended: WireError | undefined
  #close: (outcome: CloseOutcome) => void = () => {}
  /** Resolves when the connection is over; never rejects. */
  readonly closed: Promise<CloseOutcome>
  /** The id of the request begun last, once `request` has returned. */
  startedId = 0
  /** What was no JSON-RPC message. */
  noiseCount = 0
  /** The server has sent a request of its own, other than a ping. */
  hasAskedBack = false
  /** Undefined in the legacy era. */
  requestMeta: RequestMeta | undefined

  constructor(channel: Channel, hooks: PeerHooks, platform: Platform) {
    this.#channel = channel
    this.#hooks = hooks
    this.platform = platform
    this.#deadlines = deadlinesOf(platform)
    this.closed = new Promise((resolve) => {
      this.#close = resolve
    })
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
      if (this.#ended !== undefined) return reject(withSent(this.#ended, false))
      if (options.signal?.aborted === true) return reject(cancelled(options.signal.reason, false))
      const id = ++this.#lastId
      const call = new Call({ id, method, params, options, raw, resolve: resolve as (value: never) => void, reject })
      const text = this.#text(call) // may throw for what is no JSON: before the call is in the books
      this.#pending.set(id, call)
      if (raw) this.#rawCalls++
      if (method === LISTEN) this.#standingCalls++
      this.#watch(call)
      this.#channel.send(text, call)
      options.onStarted?.((reason) => this.#giveUp(call, cancelled(reason, this.#channel.hasSent(call)), reason))
      this.startedId = id
    })
  }

  #text(call: Call): string {
    const { onProgress, totalTimeoutMs, capabilities } = call.options
    let meta = this.requestMeta?.(capabilities) ?? ''
    if (onProgress !== undefined || totalTimeoutMs !== undefined)
      meta = meta === '' ? `"progressToken":${call.id}` : `${meta},"progressToken":${call.id}`
    let { params } = call
    if (params['_meta'] !== undefined) {
      // Rare: the caller brings its own. Ours wins, and a token of a foreign counter must not be mistaken for one of ours.
      const { progressToken: _, ...own } = params['_meta'] as JsonObject
      params = { ...params, _meta: { ...own, ...(JSON.parse(`{${meta}}`) as JsonObject) } }
      meta = ''
    }
    let body = JSON.stringify(params)
    if (meta !== '') body = body === '{}' ? `{"_meta":{${meta}}}` : `{"_meta":{${meta}},${body.slice(1)}`
    return `{"jsonrpc":"2.0","id":${call.id},"method":${JSON.stringify(call.method)},"params":${body}}`
  }

  #watch(call: Call): void {
    const { signal, idleTimeoutMs = IDLE_TIMEOUT_MS, totalTimeoutMs } = call.options
    if (signal !== undefined) {
      call.onAbort = () =>
        this.#giveUp(call, cancelled(signal.reason, this.#channel.hasSent(call)), 'cancelled by the caller')
      signal.addEventListener('abort', call.onAbort, { once: true })
    }
    if (idleTimeoutMs === 0 && totalTimeoutMs === undefined) return
    const nowMs = this.platform.now()
    if (idleTimeoutMs !== 0) call.idleAtMs = nowMs + idleTimeoutMs
    if (totalTimeoutMs !== undefined) call.totalAtMs = nowMs + totalTimeoutMs
    this.#deadlines.watch(this, Math.min(call.idleAtMs, call.totalAtMs))
  }

  /** For the deadlines. */
  sweep(nowMs: number): number {
    let nextMs = Infinity
    for (const call of this.#pending.values()) {
      const dueMs = Math.min(call.idleAtMs, call.totalAtMs)
      if (dueMs <= nowMs) this.#giveUp(call, this.#timedOut(call), 'timed out')
      else if (dueMs < nextMs) nextMs = dueMs
    }
    return nextMs
  }

  #timedOut(call: Call): WireError {
    const { idleTimeoutMs = IDLE_TIMEOUT_MS, totalTimeoutMs } = call.options
    const limit = call.totalAtMs <= call.idleAtMs ? 'total' : 'idle'
    const text =
      limit === 'total'
        ? `"${call.method}" did not finish within ${totalTimeoutMs} ms`
        : `"${call.method}" got no answer${call.options.onProgress === undefined ? '' : ' and no progress'} within ${idleTimeoutMs} ms`
    return new WireError('timed-out', text, { limit, sent: this.#channel.hasSent(call) })
  }

  pause(call: Call): void {
    call.pauses++
    call.idleAtMs = Infinity
  }

  resume(call: Call): void {
    if (--call.pauses > 0 || !this.isPending(call)) return
    const { idleTimeoutMs = IDLE_TIMEOUT_MS } = call.options
    if (idleTimeoutMs === 0) return
    call.idleAtMs = this.platform.now() + idleTimeoutMs
    this.#deadlines.watch(this, call.idleAtMs)
  }

  /** Takes a call out of the books. False when it has been settled already. */
  #take(call: Call): boolean {
    if (!this.#pending.delete(call.id)) return false
    if (call.raw) this.#rawCalls--
    if (call.method === LISTEN) this.#standingCalls--
    if (call.onAbort !== undefined) call.options.signal?.removeEventListener('abort', call.onAbort)
    if (call.asked !== undefined) for (const question of call.asked) question.abort()
    return true
  }

  #giveUp(call: Call, error: WireError, reason: string): void {
    if (!this.#take(call)) return
    if (call.method !== 'initialize') this.#channel.cancel(call, reason) // the spec forbids cancelling it
    call.reject(error)
  }

  fail(call: Call, error: WireError): void {
    if (this.#take(call)) call.reject(withSent(error, this.#channel.hasSent(call)))
  }

  isPending(call: Call): boolean {
    return this.#pending.get(call.id) === call
  }

  end(error: WireError, outcome?: CloseOutcome): void {
    if (this.#ended !== undefined) return
    this.#ended = error
    for (const call of [...this.#pending.values()])
      if (this.#take(call)) call.reject(withSent(copyOf(error), this.#channel.hasSent(call)))
    for (const controller of this.#serving.values()) controller.abort(error)
    this.#serving.clear()
    this.#close(outcome ?? { cause: 'connection-lost', message: error.message })
  }

  receive(bytes: Buffer, start: number, end: number, via?: Call): void {
    if (this.#ended !== undefined) return
    if (this.#rawCalls > 0) {
      const envelope = scanEnvelope(bytes, start, end)
      const call = envelope === undefined ? undefined : this.#pending.get(idOf(unquote(envelope.id)))
      if (envelope !== undefined && call?.raw === true) return this.#answerRaw(call, bytes, envelope)
    }
    const text = bytes.toString('utf8', start, end)
    let message: unknown
    try {
      message = JSON.parse(text)
    } catch {
      if (text.trim() !== '') this.#noise(text)
      return
    }
    if (Array.isArray(message))
      for (const one of message) this.#dispatch(one, text, via) // batches: 2025-03-26 only
    else this.#dispatch(message, text, via)
  }

  receiveOversized(head: Buffer, tail: Buffer, length: number, via?: Call): void {
    const id = recoverId(head, tail)
    const call = via ?? (id === undefined ? this.#onlyCall() : this.#pending.get(idOf(unquote(id))))
    if (call !== undefined)
      this.fail(
        call,
        new WireError('too-large', `The answer to "${call.method}" has ${length} bytes, more than allowed`),
      )
    else this.#noise(`dropped a message of ${length} bytes`)
  }

  #noise(text: string): void {
    if (this.noiseCount++ > 0) return
    try {
      this.#hooks.onNoise(cleanText(text.slice(0, NOISE_CHARS_KEPT)).trim())
    } catch {
      /* a throwing listener is nobody's failure */
    }
  }

  /** The one call in flight, not counting subscriptions. */
  #onlyCall(): Call | undefined {
    if (this.#pending.size - this.#standingCalls !== 1) return undefined
    for (const call of this.#pending.values()) if (call.method !== LISTEN) return call
    return undefined
  }

  #answerRaw(call: Call, bytes: Buffer, { kind, start, end, typed }: Envelope): void {
    this.#take(call)
    ;(call.resolve as (answer: RawAnswer) => void)({ kind, body: bytes.subarray(start, end), typed })
  }

  #dispatch(message: unknown, text: string, via: Call | undefined): void {
    if (typeof message !== 'object' || message === null) return this.#noise(text)
    const { id, method, params, result, error } = message as {
      id?: unknown
      method?: unknown
      params?: JsonObject
      result?: JsonObject
      error?: RpcError
    }
    if (method === undefined) return this.#answer(id, result, error, text)
    if (typeof method !== 'string') return this.#noise(text)
    if (id !== undefined) return void this.#serve(id, method, params ?? {}, this.#callOf(params, via))
    if (method === 'notifications/progress') this.#progress(params ?? {})
    else if (method === 'notifications/cancelled') this.#serving.get(params?.['requestId'])?.abort()
    else this.#notified(method, params ?? {}, this.#callOf(params, via))
  }

  #callOf(params: JsonObject | undefined, via: Call | undefined): Call | undefined {
    if (via !== undefined) return via
    if (!this.#channel.multiplexed) return undefined
    const subscription = (params?.['_meta'] as JsonObject | undefined)?.[SUBSCRIPTION_ID]
    return subscription === undefined ? this.#onlyCall() : this.#pending.get(idOf(subscription))
  }

  #notified(method: string, params: JsonObject, call: Call | undefined): void {
    try {
      call?.options.onNotification?.(method, params)
    } catch {
      /* a throwing listener must not keep the others from hearing */
    }
    try {
      this.#hooks.onNotification(method, params, call)
    } catch {
      /* nor the connection from going on */
    }
  }

  #answer(id: unknown, result: JsonObject | undefined, error: RpcError | undefined, text: string): void {
    const call = this.#pending.get(idOf(id)) // some servers answer "7" to 7
    if (call === undefined) {
      if (result === undefined && error === undefined) this.#noise(text)
      return
    } // else: a late answer
    if (error !== undefined && error !== null) {
      if (call.raw) return this.#rawFrom(call, 'error', error)
      return this.fail(call, new WireError('remote', String(error.message), { rpc: error, sent: true }))
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
    const call = this.#pending.get(idOf(params['progressToken']))
    if (call === undefined) return
    if (call.idleAtMs !== Infinity)
      call.idleAtMs = this.platform.now() + (call.options.idleTimeoutMs ?? IDLE_TIMEOUT_MS)
    try {
      call.options.onProgress?.(params)
    } catch {
      /* a throwing listener is not the call's failure */
    }
  }

  async #serve(id: unknown, method: string, params: JsonObject, call: Call | undefined): Promise<void> {
    if (method === 'ping')
      return this.#channel.send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{}}`, undefined)
    this.hasAskedBack = true
    if (this.#serving.size >= SERVER_REQUESTS_MAX)
      return this.#channel.send(
        `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":${TOO_MANY_REQUESTS},"message":"Too many requests at once"}}`,
        undefined,
      )
    const controller = new AbortController()
    this.#serving.set(id, controller)
    if (call !== undefined) {
      this.pause(call)
      ;(call.asked ??= new Set()).add(controller)
    }
    const answer = await this.#answerTo(method, params, controller.signal, call)
    if (call !== undefined) {
      call.asked?.delete(controller)
      this.resume(call)
    }
    if (this.#serving.get(id) === controller) this.#serving.delete(id)
    if (this.#ended === undefined && !controller.signal.aborted)
      this.#channel.send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${answer}}`, undefined)
  }

  async #answerTo(method: string, params: JsonObject, signal: AbortSignal, call: Call | undefined): Promise<string> {
    try {
      return `"result":${JSON.stringify(await this.#hooks.onRequest(method, params, { signal, call }))}`
    } catch (error) {
      const rpc: RpcError =
        error instanceof WireError && error.details.rpc
          ? error.details.rpc
          : { code: INTERNAL_ERROR, message: 'Internal error' }
      return `"error":${JSON.stringify(rpc)}`
    }
  }
}

export function methodNotFound(method: string): WireError {
  return new WireError('remote', `Method not found: ${method}`, {
    rpc: { code: METHOD_NOT_FOUND, message: 'Method not found' },
  })
}

function cancelled(reason: unknown, sent: boolean): WireError {
  return new WireError('cancelled', 'The call was cancelled', { cause: reason, sent })
}

function copyOf({ code, message, details }: WireError): WireError {
  return new WireError(code, message, { ...details })
}

/** Keeps what the channel has said itself. */
function withSent(error: WireError, sent: boolean): WireError {
  if (error.details.sent !== undefined) return error
  return new WireError(error.code, error.message, { ...error.details, sent })
}

/** The number of a call in an id or token that a server sent back: numbers, and the strings that some make of them. */
function idOf(id: unknown): number {
  if (typeof id === 'number') return id
  return typeof id === 'string' && /^[1-9]\d{0,15}$/.test(id) ? Number(id) : Number.NaN
}

function unquote(id: string): string {
  return id.startsWith('"') ? id.slice(1, -1) : id
}
