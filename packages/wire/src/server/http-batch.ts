// Several messages in one body, as version 2025-03-26 allows.

import type { Dispatcher } from './dispatcher.ts'
import type { Exchange, Outlet } from './exchange.ts'
import type { LegacyClient } from './legacy-session.ts'
import type { ClientMessage } from './message.ts'
import { errorText, type FramedReply } from './reply.ts'
import { BUSY, INVALID_REQUEST } from './rules.ts'

type Request = ClientMessage & { kind: 'request' }

export class LegacyBatch {
  readonly #messages: readonly ClientMessage[]
  readonly #session: LegacyClient
  readonly #dispatcher: Dispatcher
  readonly #exchanges: Exchange[] = []

  constructor(messages: readonly ClientMessage[], session: LegacyClient, dispatcher: Dispatcher) {
    this.#messages = messages
    this.#session = session
    this.#dispatcher = dispatcher
  }

  /** How many of the messages get an answer. */
  get answerCount(): number {
    return this.#messages.filter(({ kind }) => kind === 'request' || kind === 'invalid').length
  }

  /** `outlet` takes all answers; undefined when there are none. */
  start(outlet: Outlet | undefined): void {
    for (const message of this.#messages) {
      if (message.kind === 'notification') this.#dispatcher.tell(this.#session, message.method, message.params)
      else if (message.kind === 'response') this.#session.questions.answer(message)
      else if (message.kind === 'invalid') outlet?.answer(refusal(message.code, message.reason, message.id))
      else if (outlet !== undefined) this.#begin(message, outlet)
    }
  }

  #begin({ id, method, params }: Request, outlet: Outlet): void {
    const { inFlight } = this.#session
    if (method === 'initialize') return outlet.answer(refusal(INVALID_REQUEST, '"initialize" must stand alone', id))
    if (inFlight.has(id)) return outlet.answer(refusal(INVALID_REQUEST, 'A request with this id is still open', id))
    if (inFlight.size >= this.#dispatcher.limits.callsPerSessionMax)
      return outlet.answer(refusal(BUSY, 'Too many requests at once', id))
    const part: Outlet = {
      send: (text) => outlet.send(text),
      answer: (framed) => {
        inFlight.delete(id)
        outlet.answer(framed)
      },
      abandon: (_id, reason) => {
        inFlight.delete(id)
        outlet.abandon(id, reason)
      },
    }
    const exchange = this.#dispatcher.begin({
      client: this.#session,
      legacy: this.#session,
      id,
      method,
      params,
      outlet: part,
    })
    this.#exchanges.push(exchange)
    if (!exchange.isOver) inFlight.set(id, exchange)
  }

  cancel(reason: string): void {
    for (const exchange of this.#exchanges) exchange.cancel(reason)
  }
}

function refusal(code: number, reason: string, id: Request['id'] | undefined): FramedReply {
  return { status: 200, head: errorText(code, reason, id) }
}
