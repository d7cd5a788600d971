// Locks between those who wait in one process. First come, first served.
import { untilAborted } from '../base/index.ts'
import { LOCK_WAIT_MS, LockError, type LockOptions, type StoreLock } from './key-value-store.ts'

/** The timers of the platform. */
export interface LockTimers {
  setTimer(callback: () => void, ms: number): object
  clearTimer(timer: object | undefined): void
}

/** Lets one holder of each name in at a time. */
export class LocalLocks {
  readonly #timers: LockTimers
  /** Names that are held, and who waits for them in which order. */
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(timers: LockTimers) {
    this.#timers = timers
  }

  /**
   * @throws {LockError} `busy`
   * @throws {HostError} `CANCELLED`
   */
  async take(name: string, { waitMs = LOCK_WAIT_MS, signal }: LockOptions): Promise<StoreLock> {
    await untilAborted(Promise.resolve(), signal)
    if (this.#waiting.has(name)) await this.#wait(name, waitMs, signal)
    else this.#waiting.set(name, [])
    return this.#held(name)
  }

  async #wait(name: string, waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const busy = (): LockError => new LockError('busy', `"${name}" was held by others for more than ${waitMs} ms`)
    const queue = this.#waiting.get(name)
    if (queue === undefined || waitMs <= 0) throw busy()
    let timer: object | undefined
    let enter: () => void = () => {}
    const turn = new Promise<void>((resolve, reject) => {
      enter = resolve
      queue.push(resolve)
      timer = this.#timers.setTimer(() => reject(busy()), waitMs)
    })
    try {
      await untilAborted(turn, signal)
    } catch (error) {
      const at = queue.indexOf(enter)
      // Whose turn came in the same moment passes it on.
      if (at === -1) this.#leave(name)
      else queue.splice(at, 1)
      throw error
    } finally {
      this.#timers.clearTimer(timer)
    }
  }

  #held(name: string): StoreLock {
    let isHeld = true
    return {
      isHeld: async () => isHeld,
      [Symbol.asyncDispose]: async () => {
        if (!isHeld) return
        isHeld = false
        this.#leave(name)
      },
    }
  }

  #leave(name: string): void {
    const next = this.#waiting.get(name)?.shift()
    if (next === undefined) this.#waiting.delete(name)
    else next()
  }
}
