import type { HostEvent } from './events.ts'

/** More are dropped, oldest first, while nothing is published. */
const HELD_MAX = 10_000

/** Holds back the events of something that may still be thrown away before anyone can see it. */
export class PublicationGate {
  readonly #emit: (event: HostEvent) => void
  #state: { readonly kind: 'holding'; readonly events: HostEvent[] } | { readonly kind: 'published' | 'discarded' } = {
    kind: 'holding',
    events: [],
  }

  constructor(emit: (event: HostEvent) => void) {
    this.#emit = emit
  }

  /** Passes on, holds or drops, depending on what has been decided. */
  emit(event: HostEvent): void {
    if (this.#state.kind === 'published') this.#emit(event)
    else if (this.#state.kind === 'holding') {
      this.#state.events.push(event)
      if (this.#state.events.length > HELD_MAX) this.#state.events.shift()
    }
  }

  /** Lets out what was held, in order, and everything after it. The first decision stands. */
  publish(): void {
    if (this.#state.kind !== 'holding') return
    const { events } = this.#state
    this.#state = { kind: 'published' }
    for (const event of events) this.#emit(event)
  }

  /** Nothing was said, and nothing will be. The first decision stands. */
  discard(): void {
    if (this.#state.kind === 'holding') this.#state = { kind: 'discarded' }
  }
}
