// One event stream of a legacy session. It outlives its connection for a while: the last events are kept, within bounds, for a client that comes back.
import type { EventWriter } from './event-writer.ts'
import type { EndpointLimits } from './limits.ts'

/** Bytes of kept events, over all streams of an endpoint. */
export class ReplayBudget {
  bytes = 0
  readonly bytesMax: number

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }
}

interface Kept {
  readonly number: number
  readonly text: string
}

export type EventLogLimits = Pick<EndpointLimits, 'replayEventsMax' | 'replayBytesMax' | 'resumeWindowMs'>

const RETRY_MS = 1_000
/** How long a stream is kept after its end. */
const ENDED_KEPT_MS = 5_000

export class EventLog {
  /** Which stream of its session this is; part of every event id. */
  readonly streamNumber: number
  readonly #budget: ReplayBudget
  readonly #limits: EventLogLimits
  #events: Kept[] = []
  #bytes = 0
  #lastNumber = 0
  #deliveredNumber = 0
  #writer: EventWriter | undefined
  #ended = false
  /** When a stream that nobody reads is given up; undefined while somebody does. */
  dueAtMs: number | undefined

  constructor(streamNumber: number, budget: ReplayBudget, limits: EventLogLimits) {
    this.streamNumber = streamNumber
    this.#budget = budget
    this.#limits = limits
  }

  get isRead(): boolean {
    return this.#writer?.isOpen === true
  }

  /** The last event that was handed to a connection. */
  get deliveredNumber(): number {
    return this.#deliveredNumber
  }

  get hasEnded(): boolean {
    return this.#ended
  }

  /** Events that are kept. */
  get keptCount(): number {
    return this.#events.length
  }

  /** Gives the stream a reader, in place of an earlier one, and the events after `afterNumber`. `prime`: with an event to come back from. */
  attach(writer: EventWriter, afterNumber: number, prime: boolean): void {
    if (this.#writer !== writer) this.#writer?.end()
    this.#writer = writer
    this.dueAtMs = undefined
    if (prime && afterNumber === 0) writer.prime(`${this.streamNumber}_0`, RETRY_MS)
    for (const { number, text } of this.#events) if (number > afterNumber) this.#write(number, text)
    if (this.#ended) writer.end()
  }

  /**
   * This reader is gone, unless another has taken its place. What has left for it may still be lost on its way: also a stream that was read to its end can
   * be read again for a moment.
   */
  detach(writer: EventWriter, nowMs: number): void {
    if (this.#writer !== writer) return
    this.#writer = undefined
    const { resumeWindowMs } = this.#limits
    this.dueAtMs = nowMs + (this.#ended ? Math.min(resumeWindowMs, ENDED_KEPT_MS) : resumeWindowMs)
  }

  /** One message. It is kept whether somebody reads or not. */
  send(text: string): void {
    const number = ++this.#lastNumber
    this.#keep({ number, text })
    this.#write(number, text)
  }

  #write(number: number, text: string): void {
    if (this.#writer?.event(text, `${this.streamNumber}_${number}`) === true) this.#deliveredNumber = number
  }

  comment(): void {
    this.#writer?.comment()
  }

  /** No message will follow. */
  end(): void {
    this.#ended = true
    this.#writer?.end()
  }

  /** Forgets everything. */
  drop(): void {
    this.#ended = true
    this.#writer?.end()
    this.#writer = undefined
    this.#budget.bytes -= this.#bytes
    this.#bytes = 0
    this.#events = []
  }

  #keep(event: Kept): void {
    const { replayEventsMax, replayBytesMax } = this.#limits
    const length = event.text.length
    if (length > replayBytesMax) return
    while (this.#events.length > 0 && (this.#events.length >= replayEventsMax || this.#bytes + length > replayBytesMax))
      this.#forgetOldest()
    if (this.#budget.bytes + length > this.#budget.bytesMax) return
    this.#events.push(event)
    this.#bytes += length
    this.#budget.bytes += length
  }

  #forgetOldest(): void {
    const length = this.#events.shift()?.text.length ?? 0
    this.#bytes -= length
    this.#budget.bytes -= length
  }
}

/** Takes an event id apart. Undefined: it is none of ours. */
export function readEventId(id: string): { streamNumber: number; number: number } | undefined {
  const [, streamNumber, number] = /^(\d{1,12})_(\d{1,12})$/.exec(id) ?? []
  return streamNumber === undefined ? undefined : { streamNumber: Number(streamNumber), number: Number(number) }
}
