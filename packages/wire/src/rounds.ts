// Requests of the modern era that need more than one round: the server answers "input required", the handlers give it, the request goes out again.
import type { Call, CallContext, RequestOptions, ServerRequestHandler } from './call.ts'
import { methodNotFound, WireError } from './errors.ts'
import type { Peer } from './peer.ts'
import type { JsonObject } from './protocol.ts'
import { isObject } from './validate.ts'

const ROUNDS_MAX = 10
const QUESTIONS_MAX = 64

/** Who answers what a server asks, where no call has handlers of its own. */
export interface Handlers {
  handlers?: Readonly<Record<string, ServerRequestHandler>>
}

/** A request as its caller wants it, before any round. */
export interface RoundsRequest {
  method: string
  params: JsonObject
  options: RequestOptions
}

/**
 * A request with all its rounds. Limits, signal and `onStarted` hold for the whole, not for each round.
 * @throws {WireError} `too-many-rounds`, `input-failed` when a question cannot be answered, and whatever a request can fail with.
 */
export async function requestInRounds(peer: Peer, session: Handlers, request: RoundsRequest): Promise<JsonObject> {
  const { method, params } = request
  const whole = new Whole(peer, request.options)
  const answer = peer.request(method, params, whole.options)
  const id = peer.startedId
  const result = await answer
  if (!asksForInput(result, method)) return result
  return new Rounds(peer, session, request, whole).after(result, id)
}

function asksForInput({ resultType }: JsonObject, method: string): boolean {
  if (resultType === undefined || resultType === 'complete') return false
  if (resultType === 'input_required') return true
  throw new WireError(
    'malformed',
    `The answer to "${method}" is of the unknown type "${String(resultType).slice(0, 64)}"`,
  )
}

/** What holds for all rounds together. */
class Whole {
  /** Of the first round. */
  readonly options: RequestOptions
  readonly #peer: Peer
  /** What is left of the total limit, in ms, at `#runsSinceMs`. Between two rounds it stands still: then the server waits, not we. */
  #leftMs: number | undefined
  #runsSinceMs: number
  #stop: ((error: WireError) => void) | undefined
  #cancelRound: ((reason: string) => void) | undefined

  constructor(peer: Peer, options: RequestOptions) {
    const { onStarted, totalTimeoutMs } = options
    this.#peer = peer
    this.#leftMs = totalTimeoutMs
    this.#runsSinceMs = peer.nowMs
    this.options = options
    if (onStarted === undefined) return
    this.options = {
      ...options,
      onStarted: (cancel) => {
        this.#cancelRound = cancel
        onStarted((reason) => this.#cancel(reason))
      },
    }
  }

  /** Of a later round. */
  get next(): RequestOptions {
    const { onStarted, ...rest } = this.options
    this.#runsSinceMs = this.#peer.nowMs
    return {
      ...rest,
      ...(this.#leftMs === undefined ? {} : { totalTimeoutMs: Math.max(1, this.#leftMs) }),
      ...(onStarted === undefined ? {} : { onStarted: (cancel) => (this.#cancelRound = cancel) }),
    }
  }

  #cancel(reason: string): void {
    this.#cancelRound?.(reason)
    this.#stop?.(new WireError('cancelled', 'The call was cancelled', { cause: reason, sent: true }))
  }

  /** Runs what happens between two rounds; it ends when the caller cancels. */
  async between<Value>(run: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const controller = new AbortController()
    const { signal } = this.options
    if (this.#leftMs !== undefined) this.#leftMs -= this.#peer.nowMs - this.#runsSinceMs
    let onAbort: (() => void) | undefined
    const stopped = new Promise<never>((_, reject) => {
      this.#stop = (error) => {
        controller.abort(error)
        reject(error)
      }
      onAbort = () =>
        this.#stop?.(new WireError('cancelled', 'The call was cancelled', { cause: signal?.reason, sent: true }))
      signal?.addEventListener('abort', onAbort, { once: true })
      if (signal?.aborted === true) onAbort()
    })
    try {
      return await Promise.race([run(controller.signal), stopped])
    } finally {
      this.#stop = undefined
      if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort)
    }
  }
}

class Rounds {
  readonly #peer: Peer
  readonly #session: Handlers
  readonly #request: RoundsRequest
  readonly #whole: Whole

  constructor(peer: Peer, session: Handlers, request: RoundsRequest, whole: Whole) {
    this.#peer = peer
    this.#session = session
    this.#request = request
    this.#whole = whole
  }

  async after(first: JsonObject, firstId: number): Promise<JsonObject> {
    const { method, params } = this.#request
    let asked = params
    let result = first
    let id = firstId
    for (let round = 1; round < ROUNDS_MAX; round++) {
      const call = { id, method, params: asked }
      asked = await this.#answered(result, call)
      const answer = this.#peer.request(method, asked, this.#whole.next)
      id = this.#peer.startedId
      result = await answer
      if (!asksForInput(result, method)) return result
    }
    throw new WireError('too-many-rounds', `"${method}" asked for input ${ROUNDS_MAX} times`, { sent: true })
  }

  /** The parameters of the next round. The state is the server's own: it goes back as it came, or not at all. */
  async #answered({ inputRequests, requestState }: JsonObject, call: CallContext): Promise<JsonObject> {
    const { method, params } = this.#request
    if (inputRequests === undefined && requestState === undefined)
      throw new WireError('malformed', `"${method}" asks for input without saying for what`, { sent: true })
    if (inputRequests !== undefined && !isObject(inputRequests))
      throw new WireError('malformed', `"${method}" asks for input in no known shape`, { sent: true })
    const questions = Object.entries(inputRequests ?? {})
    if (questions.length > QUESTIONS_MAX)
      throw new WireError('malformed', `"${method}" asks more than ${QUESTIONS_MAX} questions at once`, { sent: true })
    const answers = await this.#whole.between((signal) =>
      Promise.all(questions.map(async ([key, question]) => [key, await this.#answer(question, signal, call)] as const)),
    )
    return {
      ...params,
      ...(answers.length > 0 ? { inputResponses: Object.fromEntries(answers) } : {}),
      ...(requestState === undefined ? {} : { requestState }),
    }
  }

  async #answer(question: unknown, signal: AbortSignal, call: CallContext): Promise<JsonObject> {
    const { method, params } = isObject(question) ? question : {}
    const { handlers: own } = this.#request.options
    try {
      const given = isObject(params) ? params : {}
      return await answerServer(this.#session, String(method), given, { signal, call, own })
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new WireError('input-failed', `"${call.method}" asks for input that could not be given: ${why}`, {
        cause,
        sent: true,
      })
    }
  }
}

/** Finds who answers: the call's own handlers come before the session's. */
export async function answerServer(
  { handlers }: Handlers,
  method: string,
  params: JsonObject,
  context: { signal: AbortSignal; call: Call | CallContext | undefined; own?: Handlers['handlers'] | undefined },
): Promise<JsonObject> {
  const { signal, call } = context
  const own = context.own ?? (call !== undefined && 'options' in call ? call.options.handlers : undefined)
  const handler = handlerIn(own, method) ?? handlerIn(handlers, method)
  if (handler === undefined) throw methodNotFound(method)
  return handler(params, { method, signal, ...(call === undefined ? {} : { call }) })
}

/** Only what the caller has put there: a server may ask for "constructor". */
function handlerIn(handlers: Handlers['handlers'], method: string): ServerRequestHandler | undefined {
  return handlers !== undefined && Object.hasOwn(handlers, method) ? handlers[method] : undefined
}
