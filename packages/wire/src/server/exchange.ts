// One request of a client, from its arrival to its answer, in either era. The application sees only this: how questions reach the client is decided here.
import type { JsonObject, RpcError } from '../protocol.ts'
import { isObject } from '../validate.ts'
import type { Client } from './client.ts'
import { cancelledFailure, cannotAsk, rpcErrorOf } from './failures.ts'
import { answerFault, responseFor } from './input-responses.ts'
import type { EndpointLimits } from './limits.ts'
import { isRequestId, type RequestId } from './message.ts'
import type { Questions } from './questions.ts'
import { type FramedReply, frame, notificationText, type Reply } from './reply.ts'
import { CACHEABLE_METHODS, IN_BAND_METHODS, INPUT_METHODS, isLoggable, LOG_LEVEL_KEY } from './rules.ts'

/** Where the messages of one request go. */
export interface Outlet {
  /** Sends a message before the answer. False: the client takes no stream, or is gone. */
  send(text: string): boolean
  /** Sends the answer; nothing can follow. */
  answer(framed: FramedReply): void
  /** The request is over and gets no answer of its own. */
  abandon(id: RequestId, reason: string): void
}

/** What a session of the legacy era adds to its requests. */
export interface LegacySide {
  readonly questions: Questions
  /** What `logging/setLevel` said last. */
  readonly logLevel: string | undefined
  /** `logging/setLevel`. False: no such level. */
  setLogLevel(params: JsonObject): boolean
}

/** Keeps a call while its client looks for the answer. */
export interface Parking {
  /** The `requestState` with which the client comes back. Undefined: there is no room. */
  park(exchange: Exchange): string | undefined
  /** Seals a state of the application's own to this request. */
  seal(exchange: Exchange, payload: JsonObject): string
  /** The payload that `seal` was given for this request by this client; undefined: changed, foreign or expired. */
  open(exchange: Exchange, state: string): JsonObject | undefined
}

export interface ExchangeServices {
  readonly limits: EndpointLimits
  readonly parking: Parking
}

/** One question to a modern client; it travels in a result and is answered by a new request. */
interface Input {
  readonly method: string
  readonly params: JsonObject
  readonly resolve: (answer: JsonObject) => void
  readonly reject: (error: Error) => void
}

export interface ExchangeInit {
  readonly client: Client
  readonly legacy?: LegacySide
  readonly services: ExchangeServices
  readonly id: RequestId
  readonly method: string
  readonly params: JsonObject
  readonly outlet: Outlet
  readonly parameterFault?: ParameterFault | undefined
}

/** Where the headers that repeat the arguments of a tool call disagree with them, by the tool's input schema; undefined: nowhere. */
export type ParameterFault = (schema: JsonObject) => RpcError | undefined

/** One request. */
export class Exchange {
  readonly client: Client
  readonly method: string
  readonly #legacy: LegacySide | undefined
  readonly #services: ExchangeServices
  #id: RequestId
  #params: JsonObject
  /** Undefined while the call is parked and after it is over. */
  #outlet: Outlet | undefined
  #over = false
  #cancelReason: string | undefined
  #onCancel: ((reason: string) => void) | undefined
  /** The answer, when it came while the client was away. */
  #outcome: Reply | undefined
  #inputs: Map<string, Input> | undefined
  #inputCount = 0
  #rounds = 0
  #parkingSoon = false
  #ending: AbortController | undefined

  /** For tools whose schema was not known when the call came; `Application.inputSchema` is asked before. Undefined: there are no such headers. */
  readonly parameterFault: ParameterFault | undefined

  constructor(init: ExchangeInit) {
    this.client = init.client
    this.method = init.method
    this.parameterFault = init.parameterFault
    this.#legacy = init.legacy
    this.#services = init.services
    this.#id = init.id
    this.#params = init.params
    this.#outlet = init.outlet
  }

  /** The id of the request; a parked call gets a new one with each round. */
  get id(): RequestId {
    return this.#id
  }

  get params(): JsonObject {
    return this.#params
  }

  /** Answered or cancelled. */
  get isOver(): boolean {
    return this.#over
  }

  /** The client wants to hear of progress. */
  get wantsProgress(): boolean {
    return this.#progressToken !== undefined
  }

  /** The least severe log messages that may be sent; undefined in the legacy era: all, in the modern one: none. */
  get logLevel(): string | undefined {
    return this.#legacy === undefined ? (this.#meta?.[LOG_LEVEL_KEY] as string | undefined) : this.#legacy.logLevel
  }

  /** Applies a `logging/setLevel` to the session. False: no such level. */
  applyLogLevel(): boolean {
    return this.#legacy?.setLogLevel(this.#params) ?? false
  }

  get #meta(): JsonObject | undefined {
    return this.#params['_meta'] as JsonObject | undefined
  }

  get #progressToken(): RequestId | undefined {
    const token = this.#meta?.['progressToken']
    return isRequestId(token, this.#services.limits.idCharsMax) ? token : undefined
  }

  /** Calls back when the client gives up or is lost: at once if it has. One listener; a later one takes its place. */
  whenCancelled(listener: (reason: string) => void): void {
    if (this.#cancelReason !== undefined) listener(this.#cancelReason)
    else this.#onCancel = listener
  }

  /** Tells of progress, with the client's own token. False: it was not sent. */
  progress(progress: JsonObject): boolean {
    const progressToken = this.#progressToken
    return progressToken !== undefined && this.#send('notifications/progress', { ...progress, progressToken })
  }

  /** Sends a notification on the request's own stream. Log messages are held to the level that the client wants. False: it was not sent. */
  notify(method: string, params: JsonObject): boolean {
    if (method !== 'notifications/message') return this.#send(method, params)
    const { logLevel } = this
    const silent = this.#legacy === undefined && logLevel === undefined
    return !silent && isLoggable(params['level'], logLevel) && this.#send(method, params)
  }

  #send(method: string, params: JsonObject): boolean {
    return this.#outlet?.send(notificationText(method, params)) ?? false
  }

  /**
   * Asks the client on behalf of this request, and gives its answer. Legacy: a request on the call's stream. Modern: the request is answered with what is
   * asked, and this call waits until the client comes back. Abort takes the question back.
   * @throws {WireError} `remote`: the client's own error, or it cannot be asked; `cancelled`: taken back, or the call is over
   */
  ask(method: string, params: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    if (this.#over) return Promise.reject(cancelledFailure('The call is over'))
    if (this.#legacy === undefined) return this.#askForInput(method, params, signal)
    this.#ending ??= new AbortController()
    const both = signal === undefined ? this.#ending.signal : AbortSignal.any([signal, this.#ending.signal])
    return this.#legacy.questions.ask((text) => this.#outlet?.send(text) ?? false, method, params, both)
  }

  #askForInput(method: string, params: JsonObject, signal: AbortSignal | undefined): Promise<JsonObject> {
    if (!INPUT_METHODS.has(this.method))
      return Promise.reject(cannotAsk(method, `"${this.method}" cannot wait for input`))
    if (this.#rounds >= this.#services.limits.inputRoundsMax)
      return Promise.reject(cannotAsk(method, `it was asked ${this.#rounds} times for one call`))
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(cancelledFailure('The question was taken back'))
      const key = `question-${++this.#inputCount}`
      this.#inputs ??= new Map()
      this.#inputs.set(key, { method, params, resolve, reject })
      signal?.addEventListener(
        'abort',
        () => this.#takeInput(key)?.reject(cancelledFailure('The question was taken back')),
        { once: true },
      )
      this.#parkSoon()
    })
  }

  #takeInput(key: string): Input | undefined {
    const input = this.#inputs?.get(key)
    this.#inputs?.delete(key)
    return input
  }

  /** In the next turn, so that questions asked side by side leave together. */
  #parkSoon(): void {
    if (this.#parkingSoon || this.#outlet === undefined) return
    this.#parkingSoon = true
    setImmediate(() => {
      this.#parkingSoon = false
      if (this.#outlet !== undefined && (this.#inputs?.size ?? 0) > 0)
        this.#park(this.#outlet, this.#inputs as Map<string, Input>)
    })
  }

  #park(outlet: Outlet, inputs: Map<string, Input>): void {
    const requestState = this.#services.parking.park(this)
    if (requestState === undefined) {
      for (const key of [...inputs.keys()]) {
        const input = this.#takeInput(key)
        input?.reject(cannotAsk(input.method, 'too many calls are waiting for input'))
      }
      return
    }
    this.#rounds++
    const inputRequests = Object.fromEntries([...inputs].map(([key, { method, params }]) => [key, { method, params }]))
    this.#outlet = undefined
    outlet.answer(
      this.#framed({ kind: 'result', result: { resultType: 'input_required', inputRequests, requestState } }),
    )
  }

  /** The client is back with a new request. Gives why its answers are refused; undefined: the call goes on. */
  resume(id: RequestId, params: JsonObject, outlet: Outlet): string | undefined {
    const answers = new Map<string, JsonObject>()
    for (const [key, { method }] of this.#inputs ?? []) {
      const answer = responseFor(params['inputResponses'], key)
      if (answer === undefined) continue
      const fault = answerFault(method, answer)
      if (fault !== undefined) return `inputResponses["${key}"]: ${fault}`
      answers.set(key, answer as JsonObject)
    }
    this.#id = id
    this.#params = params
    this.#outlet = outlet
    for (const [key, answer] of answers) this.#takeInput(key)?.resolve(answer)
    if (this.#outcome !== undefined) this.finish(this.#outcome)
    else if ((this.#inputs?.size ?? 0) > 0) this.#parkSoon()
    return undefined
  }

  /** A state of the application's own, sealed to this client and request; it comes back as `params.requestState` of the next round. */
  sealState(payload: JsonObject): string {
    return this.#services.parking.seal(this, payload)
  }

  /** What `sealState` was given for this request. Undefined: the client sent none, or one that was changed, is another's or has expired. */
  openState(): JsonObject | undefined {
    const { requestState } = this.#params
    return typeof requestState === 'string' ? this.#services.parking.open(this, requestState) : undefined
  }

  /** Answers the request; while its client is away, as soon as it is back. Nothing happens when it is over. */
  finish(reply: Reply): void {
    if (this.#over) return
    const outlet = this.#outlet
    if (outlet === undefined) {
      this.#outcome = reply
      return
    }
    this.#end('The call is over')
    outlet.answer(this.#framed(reply))
  }

  /** Ends the request without an answer and tells the application. Idempotent. */
  cancel(reason: string): void {
    if (this.#over) return
    const outlet = this.#outlet
    this.#cancelReason = reason
    this.#end(reason)
    outlet?.abandon(this.#id, reason)
    this.#onCancel?.(reason)
  }

  #end(reason: string): void {
    this.#over = true
    this.#outlet = undefined
    this.#ending?.abort(reason)
    for (const { reject } of this.#inputs?.values() ?? []) reject(cancelledFailure(reason))
    this.#inputs = undefined
  }

  #framed(reply: Reply): FramedReply {
    const context = {
      era: this.client.era,
      cacheable: CACHEABLE_METHODS.has(this.method),
      ownMethod: !IN_BAND_METHODS.has(this.method),
    }
    try {
      return frame(this.#id, reply, context)
    } catch (error) {
      return frame(this.#id, { kind: 'error', error: rpcErrorOf(error) }, context)
    }
  }
}

/** `_meta` that is no object is dropped, so that everybody may rely on its shape. */
export function withCleanMeta(params: JsonObject): JsonObject {
  if (params['_meta'] === undefined || isObject(params['_meta'])) return params
  const { _meta, ...rest } = params
  return rest
}
