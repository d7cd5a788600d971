// Who is told of the changes of an account.
import type { AccountChange } from '../account.ts'

export class AccountListeners {
  readonly #listeners = new Set<(change: AccountChange) => void>()

  /** @returns a function that ends the subscription. */
  add(listener: (change: AccountChange) => void): () => void {
    // A wrapper of its own, so that the same function may listen twice.
    const mine = (change: AccountChange): void => listener(change)
    this.#listeners.add(mine)
    return () => void this.#listeners.delete(mine)
  }

  /** What they read then has to be true already: they look at once. */
  tell(change: AccountChange): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(change)
      } catch {
        // Its own affair; the others are told all the same.
      }
    }
  }

  clear(): void {
    this.#listeners.clear()
  }
}
