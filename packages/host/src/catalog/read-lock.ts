// Calls read the catalog they were prepared from, a refresh replaces it: a call that runs holds the replacement back.
import type { Platform } from '../protocol/index.ts'

/** A call that runs for longer does not hold a new listing back any more, in milliseconds. */
export const HELD_BACK_MS_MAX = 10_000

/**
 * Lets readers in at once, always: a new call never waits for an old one. A writer waits for the readers that were there before it, and for
 * each of them no longer than {@link HELD_BACK_MS_MAX}: a call of an hour must not hide for an hour what its server offers by now.
 */
export class ReadLock {
  readonly #platform: Platform
  readonly #readers = new Set<Reader>()

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** How many read right now. */
  get readerCount(): number {
    return this.#readers.size
  }

  /** @returns what ends the reading; calling it twice is a no-op. */
  read(): () => void {
    const reader: Reader = { onLeft: undefined }
    this.#readers.add(reader)
    return () => {
      if (this.#readers.delete(reader)) reader.onLeft?.()
    }
  }

  /** Resolves when those who read now have left, or have read for long enough. */
  async whenLeft(): Promise<void> {
    if (this.#readers.size === 0) return
    let timer: object | undefined
    const overtime = new Promise<void>((resolve) => {
      timer = this.#platform.setTimer(resolve, HELD_BACK_MS_MAX, 'background')
    })
    await Promise.race([Promise.all([...this.#readers].map(left)), overtime])
    this.#platform.clearTimer(timer)
  }
}

interface Reader {
  onLeft: (() => void) | undefined
}

/** One writer waits at a time: refreshes are serialised. */
function left(reader: Reader): Promise<void> {
  return new Promise((resolve) => {
    reader.onLeft = resolve
  })
}
