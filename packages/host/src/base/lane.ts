import { HostError } from './errors.ts'

/** Lets one holder in at a time, in the order of asking. */
export class Lane {
  #tail: Promise<void> = Promise.resolve()
  #waiting = 0
  readonly #waitersMax: number

  /** @param waitersMax More are refused. Default 10,000. */
  constructor(waitersMax = 10_000) {
    this.#waitersMax = waitersMax
  }

  /**
   * Waits for its turn. An abort leaves the queue at once.
   * @returns what ends the turn; calling it twice is a no-op.
   * @throws {HostError} `CANCELLED` on abort, `INTERNAL` when too many wait.
   */
  async enter(signal?: AbortSignal): Promise<() => void> {
    if (this.#waiting >= this.#waitersMax) throw new HostError('INTERNAL', `More than ${this.#waitersMax} calls wait`)
    const before = this.#tail
    let leave: () => void = () => {}
    this.#tail = new Promise((resolve) => {
      leave = resolve
    })
    this.#waiting += 1
    try {
      await untilAborted(before, signal)
    } catch (error) {
      void before.then(leave) // those behind still wait for those before
      throw error
    } finally {
      this.#waiting -= 1
    }
    return leave
  }
}

/**
 * `promise`, but no longer than until the abort; the listener is taken off again.
 * @throws {HostError} `CANCELLED` on abort; otherwise what `promise` throws.
 */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new HostError('CANCELLED', 'Cancelled by the caller', { cause: signal.reason }))
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}
