// Requests from us to one client of the legacy era: our ids, their answers, their limits.
import { WireError } from '../errors.ts'
import type { JsonObject } from '../protocol.ts'
import { cancelledFailure, cannotAsk } from './failures.ts'
import type { ClientMessage } from './message.ts'
import { notificationText, requestText } from './reply.ts'

/** Puts one message on the stream that it belongs to. False: there is none. */
export type Send = (text: string) => boolean

interface Question {
  readonly method: string
  readonly dueAtMs: number
  readonly send: Send
  readonly resolve: (result: JsonObject) => void
  readonly reject: (error: Error) => void
  readonly forget: () => void
}

/** The open questions to one client. */
export class Questions {
  readonly #open = new Map<number, Question>()
  readonly #now: () => number
  readonly #timeoutMs: number
  #lastId = -1

  constructor(now: () => number, timeoutMs: number) {
    this.#now = now
    this.#timeoutMs = timeoutMs
  }

  get size(): number {
    return this.#open.size
  }

  /** Asks, and gives what the client answers. Abort takes the question back. @throws {WireError} with the client's own error in `details.rpc` */
  ask(send: Send, method: string, params: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(cancelledFailure('The question was taken back'))
      const id = ++this.#lastId
      const onAbort = (): void => this.#withdraw(id, 'The question was taken back')
      signal?.addEventListener('abort', onAbort, { once: true })
      const forget = (): void => signal?.removeEventListener('abort', onAbort)
      this.#open.set(id, { method, dueAtMs: this.#now() + this.#timeoutMs, send, resolve, reject, forget })
      if (!send(requestText(id, method, params)))
        this.#take(id)?.reject(cannotAsk(method, 'it listens to no event stream'))
    })
  }

  /** Takes the client's answer. False: nobody asked, or not any more. */
  answer(message: ClientMessage & { kind: 'response' }): boolean {
    const question = typeof message.id === 'number' ? this.#take(message.id) : undefined
    if (question === undefined) return false
    if (message.error !== undefined)
      question.reject(new WireError('remote', message.error.message, { rpc: message.error }))
    else question.resolve(message.result ?? {})
    return true
  }

  /** Takes back what is due. */
  sweep(nowMs: number): void {
    for (const [id, { dueAtMs }] of this.#open)
      if (dueAtMs <= nowMs) this.#withdraw(id, 'The client did not answer in time')
  }

  /** Takes back every question. */
  close(reason: string): void {
    for (const id of [...this.#open.keys()]) this.#take(id)?.reject(cancelledFailure(reason))
  }

  #withdraw(id: number, reason: string): void {
    const question = this.#take(id)
    if (question === undefined) return
    question.send(notificationText('notifications/cancelled', { requestId: id, reason }))
    question.reject(cancelledFailure(reason))
  }

  #take(id: number): Question | undefined {
    const question = this.#open.get(id)
    this.#open.delete(id)
    question?.forget()
    return question
  }
}
