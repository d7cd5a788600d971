// What is kept of hosted plugins with one thread: the state, and the lock that a refresh holds from its decision to its publication.
import { Lane } from '../../base/index.ts'
import type { ExtensionMetrics } from '../../extensions/index.ts'
import { OFF, type PluginsThreadState } from './state.ts'

/** Whom a thread tells. */
export interface ThreadEars {
  readonly metrics: ExtensionMetrics
  warn(text: string): void
}

/** Different warnings of one thread; more are not told. */
const WARNINGS_MAX = 256

/** The hosted plugins of one thread. */
export class ThreadPlugins {
  state: PluginsThreadState = OFF
  /** The value of the lock: the refresh that held it last has published its answer. */
  lastSucceeded = false
  readonly #lane = new Lane()
  #present = 0
  #ears: ThreadEars | undefined
  readonly #warned = new Set<string>()
  readonly #stopped = new AbortController()

  /** Somebody holds the lock, or waits for it. */
  get isBusy(): boolean {
    return this.#present > 0
  }

  /** Aborts with the thread. */
  get stopped(): AbortSignal {
    return this.#stopped.signal
  }

  hear(ears: ThreadEars): void {
    this.#ears = ears
  }

  /**
   * Waits for the lock, in the order of asking.
   * @returns what gives it back.
   * @throws {HostError} `CANCELLED` on abort; those behind go on waiting for those before.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    this.#present += 1
    try {
      const leave = await this.#lane.enter(signal)
      return () => {
        this.#present -= 1
        leave()
      }
    } catch (error) {
      this.#present -= 1
      throw error
    }
  }

  count(name: string): void {
    this.#ears?.metrics.count(name)
  }

  /** Each text once. */
  warn(text: string): void {
    if (this.#ears === undefined || this.#warned.has(text) || this.#warned.size >= WARNINGS_MAX) return
    this.#warned.add(text)
    this.#ears.warn(text)
  }

  /** The thread has ended: nothing is shown, and what is still on its way is not waited for. */
  stop(): void {
    this.state = OFF
    this.#stopped.abort()
  }
}
