/** Whoever wants to be told of something. One that throws disturbs neither its neighbours nor the teller. */
export class Listeners<Told> {
  readonly #listeners = new Set<(told: Told) => void>()

  get size(): number {
    return this.#listeners.size
  }

  /** @returns how to stop listening; calling it twice is a no-op. */
  add(listener: (told: Told) => void): () => void {
    // A wrapper of its own, so that the same function may listen twice.
    const mine = (told: Told): void => listener(told)
    this.#listeners.add(mine)
    return () => void this.#listeners.delete(mine)
  }

  /** Tells everybody who listens now, in the order of their coming. What they read then has to be true already: they look at once. */
  tell(told: Told): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(told)
      } catch {
        // Its own affair; the others are told all the same.
      }
    }
  }

  clear(): void {
    this.#listeners.clear()
  }
}
