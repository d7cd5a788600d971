// What the server asks of us: who answers, how many at once, and when an answer is no longer wanted.
import type { Call } from './call.ts'
import { type RpcError, WireError } from './errors.ts'
import type { JsonObject } from './protocol.ts'

/** One request of the server. */
export interface Question {
  id: string | number
  method: string
  params: JsonObject
  /** The call on whose behalf the server asks, where that can be known. */
  call: Call | undefined
}

/** What answering needs of its connection. */
export interface QuestionHooks {
  answer(question: Question, signal: AbortSignal): Promise<JsonObject>
  send(text: string): void
  /** Whose clocks stand still while a question is answered: those of its call; of all there are, where it is not known for which call is asked. */
  waiting(call: Call | undefined): readonly Call[]
  pause(call: Call): void
  resume(call: Call): void
}

const AT_ONCE_MAX = 64
const INTERNAL_ERROR = -32603,
  TOO_MANY = -32000

/** The open questions of one connection. */
export class Questions {
  /** The server has asked something other than whether we are there. */
  hasAsked = false
  readonly #hooks: QuestionHooks
  readonly #open = new Map<string | number, AbortController>()
  #count = 0
  #ended = false

  constructor(hooks: QuestionHooks) {
    this.#hooks = hooks
  }

  take(question: Question): void {
    const { id, method } = question
    if (method === 'ping') return this.#send(id, '"result":{}')
    this.hasAsked = true
    if (this.#count >= AT_ONCE_MAX)
      return this.#send(id, `"error":{"code":${TOO_MANY},"message":"More than ${AT_ONCE_MAX} requests at once"}`)
    void this.#serve(question)
  }

  /** The server takes a question back: it is not answered. */
  cancel(id: unknown): void {
    const controller = this.#open.get(id as string | number)
    this.#open.delete(id as string | number)
    controller?.abort()
  }

  end(reason: WireError): void {
    this.#ended = true
    for (const controller of this.#open.values()) controller.abort(reason)
    this.#open.clear()
  }

  async #serve(question: Question): Promise<void> {
    const { id, call } = question
    const controller = new AbortController()
    this.#count++
    this.#open.set(id, controller)
    const waiting = this.#hooks.waiting(call)
    for (const one of waiting) this.#hooks.pause(one)
    if (call !== undefined) {
      call.asked ??= new Set()
      call.asked.add(controller)
    }
    const answer = await this.#answerTo(question, controller.signal)
    this.#count--
    call?.asked?.delete(controller)
    for (const one of waiting) this.#hooks.resume(one)
    if (this.#open.get(id) !== controller) return // taken back, or the connection is over
    this.#open.delete(id)
    this.#send(id, answer)
  }

  async #answerTo(question: Question, signal: AbortSignal): Promise<string> {
    try {
      return `"result":${JSON.stringify((await this.#hooks.answer(question, signal)) ?? {})}`
    } catch (error) {
      const rpc: RpcError =
        error instanceof WireError && error.details.rpc !== undefined
          ? error.details.rpc
          : { code: INTERNAL_ERROR, message: 'Internal error' }
      return `"error":${JSON.stringify(rpc)}`
    }
  }

  #send(id: string | number, answer: string): void {
    if (!this.#ended) this.#hooks.send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${answer}}`)
  }
}
