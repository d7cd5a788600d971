// A client that began with `initialize`: what it said of itself, its open requests, our questions to it, its streams.
import type { JsonObject } from '../protocol.ts'
import type { Client } from './client.ts'
import { EventLog, type ReplayBudget, readEventId } from './event-log.ts'
import type { EventWriter } from './event-writer.ts'
import type { Exchange, LegacySide } from './exchange.ts'
import type { EndpointLimits } from './limits.ts'
import type { RequestId } from './message.ts'
import { Questions } from './questions.ts'
import { notificationText } from './reply.ts'
import { isLoggable, LOG_LEVELS, PRIMING_VERSION } from './rules.ts'

/** How a session sends what belongs to no request. A question needs somebody who reads now; a notification may wait. */
export type StandingSend = (text: string, kind: 'notification' | 'question') => boolean

export interface SessionInit {
  readonly version: string
  readonly capabilities: JsonObject
  readonly info: JsonObject
  readonly principal: string
  readonly now: () => number
  readonly limits: EndpointLimits
}

/** The part of a session that does not depend on the transport. */
export class LegacyClient implements Client, LegacySide {
  readonly era = 'legacy'
  readonly version: string
  readonly capabilities: JsonObject
  readonly info: JsonObject
  readonly principal: string
  readonly questions: Questions
  /** Requests without an answer, by the client's id. Numbers and texts are different ids. */
  readonly inFlight: Map<RequestId, Exchange> = new Map()
  logLevel: string | undefined
  #send: StandingSend
  #closed = false

  constructor({ version, capabilities, info, principal, now, limits }: SessionInit, send: StandingSend) {
    this.version = version
    this.capabilities = capabilities
    this.info = info
    this.principal = principal
    this.questions = new Questions(now, limits.askTimeoutMs)
    this.#send = send
  }

  get isClosed(): boolean {
    return this.#closed
  }

  notify(method: string, params: JsonObject): boolean {
    if (method === 'notifications/message' && !isLoggable(params['level'], this.logLevel)) return false
    return !this.#closed && this.#send(notificationText(method, params), 'notification')
  }

  ask(method: string, params: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    return this.questions.ask((text) => !this.#closed && this.#send(text, 'question'), method, params, signal)
  }

  /** `notifications/cancelled`: true if it named an open request. */
  cancel(params: JsonObject): boolean {
    const exchange = this.inFlight.get(params['requestId'] as RequestId)
    if (exchange === undefined || exchange.method === 'initialize') return false
    exchange.cancel(typeof params['reason'] === 'string' ? params['reason'] : 'The client cancelled the request')
    return true
  }

  /** `logging/setLevel`. False: no such level. */
  setLogLevel(params: JsonObject): boolean {
    const { level } = params
    if (typeof level !== 'string' || !LOG_LEVELS.includes(level)) return false
    this.logLevel = level
    return true
  }

  /** Ends every request and question. Idempotent. */
  close(reason: string): void {
    if (this.#closed) return
    this.#closed = true
    for (const exchange of [...this.inFlight.values()]) exchange.cancel(reason)
    this.questions.close(reason)
  }
}

/** Which requests a lost stream carried. */
type OnLost = () => void

/** A session over HTTP, with streams that survive their connections. */
export class HttpSession extends LegacyClient {
  readonly id: string
  readonly address: string
  /** The stream for what belongs to no request; the client opens it with GET. */
  readonly standing: EventLog
  lastSeenMs: number
  readonly #streams = new Map<number, { readonly log: EventLog; readonly onLost: OnLost }>()
  readonly #budget: ReplayBudget
  readonly #limits: EndpointLimits
  #lastStream = 0

  constructor(
    init: SessionInit,
    place: { readonly id: string; readonly address: string; readonly budget: ReplayBudget },
  ) {
    const standing = new EventLog(0, place.budget, init.limits)
    // Without a reader the last messages are kept: clients open this stream a moment after they have begun.
    super(init, (text, kind) => {
      if (kind === 'question' && !standing.isRead) return false
      standing.send(text)
      return true
    })
    this.id = place.id
    this.address = place.address
    this.standing = standing
    this.lastSeenMs = init.now()
    this.#budget = place.budget
    this.#limits = init.limits
  }

  /** Does an event stream begin with an event to come back from? Older clients take its empty data for a broken message. */
  get primes(): boolean {
    return this.version >= PRIMING_VERSION
  }

  /** Streams that are read at present, or wait for their reader. */
  get hasStream(): boolean {
    return this.standing.isRead || this.#streams.size > 0
  }

  /** A stream for one POST. `onLost` is called if nobody comes back for it in time. */
  openStream(writer: EventWriter, onLost: OnLost): EventLog {
    if (this.#streams.size >= 2 * this.#limits.callsPerSessionMax) this.#dropOldestStream()
    const log = new EventLog(++this.#lastStream, this.#budget, this.#limits)
    this.#streams.set(log.streamNumber, { log, onLost })
    log.attach(writer, 0, this.primes)
    return log
  }

  #dropOldestStream(): void {
    for (const { log, onLost } of this.#streams.values()) {
      this.#forgetStream(log)
      return onLost()
    }
  }

  #forgetStream(log: EventLog): void {
    if (this.#streams.delete(log.streamNumber)) log.drop()
  }

  /** The stream behind an event id, and how far it was read. */
  streamOf(eventId: string): { readonly log: EventLog; readonly number: number } | undefined {
    const place = readEventId(eventId)
    if (place === undefined) return undefined
    const log = place.streamNumber === 0 ? this.standing : this.#streams.get(place.streamNumber)?.log
    return log === undefined ? undefined : { log, number: place.number }
  }

  /** Gives up streams that nobody came back for, and questions that are due. */
  sweep(nowMs: number): void {
    this.questions.sweep(nowMs)
    for (const { log, onLost } of [...this.#streams.values()]) {
      if (log.dueAtMs === undefined || nowMs < log.dueAtMs) continue
      this.#forgetStream(log)
      onLost()
    }
  }

  override close(reason: string): void {
    if (this.isClosed) return
    super.close(reason)
    this.standing.drop()
    for (const { log } of [...this.#streams.values()]) this.#forgetStream(log)
  }
}
