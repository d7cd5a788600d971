// The JSON-RPC half that all transports share: pending calls, deadlines, progress, cancellation, and what comes from the server unasked.
import { Call, type RawAnswer, type RequestOptions } from './call.ts'
import type { Channel, Receiver } from './channel.ts'
import { cleanText } from './clean-text.ts'
import { type Deadlines, deadlinesOf } from './deadlines.ts'
import { type Envelope, recoverId, scanEnvelope } from './envelope.ts'
import { type CloseOutcome, type RpcError, WireError } from './errors.ts'
import { callIdInJson, callIdOf } from './message-id.ts'
import type { Platform } from './platform.ts'
import type { JsonObject } from './protocol.ts'
import { Questions } from './questions.ts'
import { type RequestMeta, requestText } from './request-text.ts'
import { structureFault, UNCHECKED_BYTES_MAX } from './structure.ts'

/** What the owner of a peer decides. */
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

const IDLE_TIMEOUT_MS = 60_000
const NOISE_CHARS_KEPT = 512
const EDGE_BYTES = 512
/** Longer texts than this V8 cannot make, whatever the cap of a message is set to. */
const TEXT_BYTES_MAX = 500_000_000
const LISTEN = 'subscriptions/listen'
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'

/** One connection as JSON-RPC. Made after its channel, which hands it what comes. */
export class Peer implements Receiver {
  readonly platform: Platform
  /** Resolves when the connection is over; never rejects. */
  readonly closed: Promise<CloseOutcome>
  /** The id of the request begun last, once `request` has returned. */
  startedId = 0
  /** How much was no JSON-RPC message, and the first of it. */
  noiseCount = 0
  firstNoise = ''
  /** Undefined in the legacy era. */
  requestMeta: RequestMeta | undefined
  readonly #pending = new Map<number, Call>()
  readonly #channel: Channel
  readonly #hooks: PeerHooks
  readonly #deadlines: Deadlines
  readonly #questions: Questions
  #lastId = 0
  #rawCalls = 0
  #standingCalls = 0
  #ended: WireError | undefined
  #close: (outcome: CloseOutcome) => void = () => {}

  constructor(channel: Channel, hooks: PeerHooks, platform: Platform) {
    this.#channel = channel
    this.#hooks = hooks
    this.platform = platform
    this.#deadlines = deadlinesOf(platform)
    this.#questions = new Questions({
      answer: ({ method, params, call }, signal) => hooks.onRequest(method, params, { signal, call }),
      send: (text) => channel.send(text, undefined),
      waiting: (call) => (call === undefined ? [...this.#pending.values()] : [call]),
      pause: (call) => this.pause(call),
      resume: (call) => this.resume(call),
    })
    this.closed = new Promise((resolve) => {
      this.#close = resolve
    })
  }

  /** The clock of everything that is limited: it stands still while credentials are waited for. */
  get nowMs(): number {
    return this.platform.now() - (this.#channel.waitedMs ?? 0)
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  /** The server has ever sent a request of its own, pings apart. */
  get hasAskedBack(): boolean {
    return this.#questions.hasAsked
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
      if (this.#ended !== undefined) return reject(told(this.#ended, false))
      if (options.signal?.aborted === true) return reject(cancelled(options.signal.reason, false))
      const id = ++this.#lastId
      const call = new Call({ id, method, params, options, raw, resolve: resolve as (value: never) => void, reject })
      const text = requestText(call, this.requestMeta) // throws for what is no JSON, before the call is in the books
      this.#pending.set(id, call)
      if (raw) this.#rawCalls++
      if (method === LISTEN) this.#standingCalls++
      this.#watch(call)
      this.#channel.send(text, call)
      options.onStarted?.((reason) => this.#cancel(call, reason, reason))
      this.startedId = id
    })
  }

  #watch(call: Call): void {
    const { signal, idleTimeoutMs = IDLE_TIMEOUT_MS, totalTimeoutMs } = call.options
    if (signal !== undefined) {
      call.onAbort = () => this.#cancel(call, signal.reason, 'cancelled by the caller')
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
    let nextMs = Number.POSITIVE_INFINITY
    for (const call of this.#pending.values()) {
      const dueMs = Math.min(call.idleAtMs, call.totalAtMs)
      if (dueMs <= nowMs) this.#giveUp(call, timedOut(call, this.#channel.hasSent(call)), 'timed out')
      else if (dueMs < nextMs) nextMs = dueMs
    }
    return nextMs
  }

  pause(call: Call): void {
    if (call.pauses++ > 0) return
    call.idleAtMs = Number.POSITIVE_INFINITY
    call.totalLeftMs = call.totalAtMs - this.platform.now()
    call.totalAtMs = Number.POSITIVE_INFINITY
  }

  resume(call: Call): void {
    if (--call.pauses > 0 || !this.isPending(call)) return
    const { idleTimeoutMs = IDLE_TIMEOUT_MS } = call.options
    const nowMs = this.platform.now()
    if (idleTimeoutMs !== 0) call.idleAtMs = nowMs + idleTimeoutMs
    call.totalAtMs = nowMs + call.totalLeftMs
    // Its time was over before the clocks were stopped: whatever was waited for must not lead to anything any more.
    if (call.totalAtMs <= nowMs) return this.#giveUp(call, timedOut(call, this.#channel.hasSent(call)), 'timed out')
    const dueMs = Math.min(call.idleAtMs, call.totalAtMs)
    if (dueMs !== Number.POSITIVE_INFINITY) this.#deadlines.watch(this, dueMs)
  }

  /** Takes a call out of the books. False when it has been settled already. */
  #take(call: Call): boolean {
    if (!this.#pending.delete(call.id)) return false
    if (call.raw) this.#rawCalls--
    if (call.method === LISTEN) this.#standingCalls--
    if (call.onAbort !== undefined) call.options.signal?.removeEventListener('abort', call.onAbort)
    return true
  }

  #cancel(call: Call, cause: unknown, reason: string): void {
    if (this.isPending(call)) this.#giveUp(call, cancelled(cause, this.#channel.hasSent(call)), reason)
  }

  #giveUp(call: Call, error: WireError, reason: string): void {
    if (!this.#take(call)) return
    abandonQuestions(call, error)
    if (call.method !== 'initialize') this.#channel.cancel(call, reason) // the spec forbids cancelling it
    call.reject(error)
  }

  fail(call: Call, error: WireError): void {
    if (!this.#take(call)) return
    abandonQuestions(call, error)
    call.reject(told(error, this.#channel.hasSent(call)))
  }

  /** Drops a request that nobody waits for, without a word to the server. Its promise rejects with `cancelled`. */
  forget(id: number): void {
    const call = this.#pending.get(id)
    if (call !== undefined) this.fail(call, cancelled(undefined, this.#channel.hasSent(call)))
  }

  isPending(call: Call): boolean {
    return this.#pending.get(call.id) === call
  }

  end(error: WireError, outcome?: CloseOutcome): void {
    if (this.#ended !== undefined) return
    this.#ended = error
    for (const call of [...this.#pending.values()])
      if (this.#take(call)) {
        call.reject(told(error, this.#channel.hasSent(call)))
        call.exchange?.drop() // what is said not to have been sent must not leave afterwards
      }
    this.#questions.end(error)
    this.#deadlines.forget(this)
    this.#close(outcome ?? { cause: 'connection-lost', message: error.message })
  }

  receive(bytes: Buffer, start: number, end: number, via?: Call): void {
    if (this.#ended !== undefined) return
    if (this.#rawCalls > 0 && this.#answeredRaw(bytes, start, end)) return
    if (end - start > UNCHECKED_BYTES_MAX) {
      const fault = end - start > TEXT_BYTES_MAX ? 'is too long for a text' : structureFault(bytes, start, end)
      if (fault !== undefined)
        return this.#drop(bytes.subarray(start, start + EDGE_BYTES), bytes.subarray(end - EDGE_BYTES, end), fault, via)
    }
    if (!mayBeJson(bytes, start, end)) return this.#noiseIn(bytes, start, end)
    let message: unknown
    try {
      message = JSON.parse(bytes.toString('utf8', start, end))
    } catch {
      return this.#noiseIn(bytes, start, end)
    }
    if (Array.isArray(message))
      for (const one of message) this.#dispatch(one, via) // batches: 2025-03-26 only
    else this.#dispatch(message, via)
  }

  #answeredRaw(bytes: Buffer, start: number, end: number): boolean {
    const envelope = scanEnvelope(bytes, start, end)
    if (envelope === undefined) return false
    const call = this.#pending.get(callIdInJson(envelope.id))
    if (call?.raw !== true) return false
    this.#answerRaw(call, bytes, envelope)
    return true
  }

  receiveOversized(head: Buffer, tail: Buffer, length: number, via?: Call): void {
    this.#drop(head, tail, `has ${length} bytes, more than allowed`, via)
  }

  #drop(head: Buffer, tail: Buffer, fault: string, via: Call | undefined): void {
    const id = recoverId(head, tail)
    const call = via ?? (id === undefined ? this.#onlyCall() : this.#pending.get(callIdInJson(id)))
    if (call !== undefined && this.isPending(call))
      this.fail(call, new WireError('too-large', `The answer to "${call.method}" ${fault}`, { sent: true }))
    else this.#noise(`dropped a message: it ${fault}`)
  }

  #noiseIn(bytes: Buffer, start: number, end: number): void {
    const text = bytes.toString('utf8', start, Math.min(end, start + NOISE_CHARS_KEPT * 4))
    if (text.trim() !== '') this.#noise(text)
  }

  #noise(text: string): void {
    if (this.noiseCount++ > 0) return
    this.firstNoise = cleanText(text.slice(0, NOISE_CHARS_KEPT)).trim()
    callSafely(() => this.#hooks.onNoise(this.firstNoise))
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

  #dispatch(message: unknown, via: Call | undefined): void {
    if (typeof message !== 'object' || message === null) return this.#noise(shown(message))
    const { id, method, params, result, error } = message as {
      id?: unknown
      method?: unknown
      params?: unknown
      result?: unknown
      error?: unknown
    }
    if (method === undefined) return this.#answer(id, result, error)
    if (typeof method !== 'string') return this.#noise(shown(message))
    const given = isPlainObject(params) ? params : {}
    if (id === undefined) return this.#notified(method, given, via)
    if (typeof id !== 'string' && typeof id !== 'number') return this.#noise(shown(message))
    this.#questions.take({ id, method, params: given, call: this.#callOf(given, via) })
  }

  #callOf(params: JsonObject, via: Call | undefined): Call | undefined {
    if (via !== undefined) return via
    if (!this.#channel.multiplexed) return undefined
    const meta = params['_meta']
    const subscription = isPlainObject(meta) ? meta[SUBSCRIPTION_ID] : undefined
    return subscription === undefined ? this.#onlyCall() : this.#pending.get(callIdOf(subscription))
  }

  #notified(method: string, params: JsonObject, via: Call | undefined): void {
    if (method === 'notifications/progress') return this.#progress(params)
    if (method === 'notifications/cancelled') return this.#questions.cancel(params['requestId'])
    const call = this.#callOf(params, via)
    if (call?.options.onNotification !== undefined) callSafely(() => call.options.onNotification?.(method, params))
    callSafely(() => this.#hooks.onNotification(method, params, call))
  }

  #answer(id: unknown, result: unknown, error: unknown): void {
    const call = this.#pending.get(callIdOf(id)) // some servers answer "7" to 7
    if (call === undefined) {
      if (result === undefined && error === undefined) this.#noise('JSON that is no message')
      return
    } // else: a late answer
    if (error !== undefined && error !== null) {
      const rpc = rpcErrorOf(error)
      if (call.raw) return this.#rawFrom(call, 'error', rpc)
      return this.fail(call, new WireError('remote', rpc.message, { rpc, sent: true }))
    }
    if (!isPlainObject(result))
      return this.fail(
        call,
        new WireError('malformed', `The answer to "${call.method}" has no result object`, { sent: true }),
      )
    if (call.raw) return this.#rawFrom(call, 'result', result)
    this.#take(call)
    abandonQuestions(call, ANSWERED)
    ;(call.resolve as (value: JsonObject) => void)(result)
  }

  #rawFrom(call: Call, kind: RawAnswer['kind'], value: object): void {
    this.#take(call)
    abandonQuestions(call, ANSWERED)
    ;(call.resolve as (answer: RawAnswer) => void)({
      kind,
      body: Buffer.from(JSON.stringify(value)),
      typed: kind === 'result' && 'resultType' in value,
    })
  }

  #progress(params: JsonObject): void {
    const call = this.#pending.get(callIdOf(params['progressToken']))
    if (call === undefined) return
    const { idleTimeoutMs = IDLE_TIMEOUT_MS, onProgress } = call.options
    if (call.idleAtMs !== Number.POSITIVE_INFINITY) call.idleAtMs = this.platform.now() + idleTimeoutMs
    if (onProgress !== undefined) callSafely(() => onProgress(params))
  }
}

function cancelled(reason: unknown, sent: boolean): WireError {
  return new WireError('cancelled', 'The call was cancelled', { cause: reason, sent })
}

function timedOut(call: Call, sent: boolean): WireError {
  const { idleTimeoutMs = IDLE_TIMEOUT_MS, totalTimeoutMs, onProgress } = call.options
  if (call.totalAtMs <= call.idleAtMs)
    return new WireError('timed-out', `"${call.method}" did not finish within ${totalTimeoutMs} ms`, {
      limit: 'total',
      sent,
    })
  const nothing = onProgress === undefined ? 'no answer' : 'no answer and no progress'
  return new WireError('timed-out', `"${call.method}" got ${nothing} within ${idleTimeoutMs} ms`, {
    limit: 'idle',
    sent,
  })
}

/** An error of its own for each call: whether its bytes had left differs. What the transport has said itself is kept. */
function told(error: WireError, sent: boolean): WireError {
  return new WireError(error.code, error.message, { ...error.details, sent: error.details.sent ?? sent })
}

/** Nobody waits for the call any more, so nobody needs to be asked for it. */
/** A server that has answered a call has nothing more to ask for it. */
const ANSWERED = new WireError('cancelled', 'The call that asked has been answered')

function abandonQuestions(call: Call, reason: WireError): void {
  if (call.asked !== undefined) for (const question of call.asked) question.abort(reason)
}

/** A throwing listener is neither the call's failure nor the connection's. */
function callSafely(listener: () => void): void {
  try {
    listener()
  } catch {
    /* its own business */
  }
}

function rpcErrorOf(error: unknown): RpcError {
  const { code, message, data } = isPlainObject(error) ? error : { message: error }
  return {
    code: typeof code === 'number' ? code : 0,
    message: typeof message === 'string' ? message : 'The server answered with an error that says nothing',
    ...(data === undefined ? {} : { data }),
  }
}

function isPlainObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Servers print a lot that is none; a failed parse costs an error with a stack each time. */
function mayBeJson(bytes: Buffer, start: number, end: number): boolean {
  let at = start
  while (at < end && (bytes[at] as number) <= 32) at++
  return bytes[at] === 123 || bytes[at] === 91
}

function shown(message: unknown): string {
  return `JSON that is no message: ${typeof message === 'object' ? Object.keys(message ?? {}).join(', ') : String(message)}`
}
