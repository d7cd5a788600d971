import { Listeners } from '../base/index.ts'
import type { HostEvent, HostEventListener } from './events.ts'

const LISTENERS_MAX = 1_000
/** Only a listener that makes events can fill it. */
const QUEUED_MAX = 10_000

/** Tells every listener of every event, in order. One that throws disturbs neither its neighbours nor the teller. */
export class EventBus {
  readonly #listeners = new Listeners<HostEvent>()
  readonly #queue: HostEvent[] = []
  #isDelivering = false
  #dropped = 0

  /** Events that were dropped because a listener made them faster than they could be told. */
  get droppedCount(): number {
    return this.#dropped
  }

  /**
   * @returns how to stop listening; calling it twice is a no-op.
   * @throws {RangeError} for more than 1,000 listeners: one is being added somewhere without end.
   */
  subscribe(listener: HostEventListener): () => void {
    if (this.#listeners.size >= LISTENERS_MAX) throw new RangeError(`more than ${LISTENERS_MAX} listeners`)
    return this.#listeners.add(listener)
  }

  /** Tells now; inside a listener, after the event that is being told. */
  emit(event: HostEvent): void {
    if (this.#listeners.size === 0) return
    if (this.#queue.length >= QUEUED_MAX) {
      this.#dropped += 1
      return
    }
    this.#queue.push(event)
    if (this.#isDelivering) return
    this.#isDelivering = true
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) this.#listeners.tell(next)
    this.#isDelivering = false
  }
}
