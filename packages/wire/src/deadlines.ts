// One timer for every pending call on a platform. It is set to the nearest deadline and does nothing per call while later ones come and go.
import type { Platform, TimerHandle } from './platform.ts'

/** Something that has deadlines. */
export interface DeadlineSource {
  /** Fails what is due, and returns the next deadline (ms on the platform's clock), or Infinity. */
  sweep(nowMs: number): number
}

/** Timers of Node hold 31 bits; a longer wait is looked at again when this has passed. */
const TIMER_MS_MAX = 2_147_483_647

/** One timer for all sources of a platform. */
export class Deadlines {
  readonly #platform: Platform
  readonly #sources = new Set<DeadlineSource>()
  #armedForMs = Infinity
  #timer: TimerHandle | undefined

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** Makes sure that `source.sweep` runs at `atMs` or soon after. A source is kept until it has no deadline left at a sweep. */
  watch(source: DeadlineSource, atMs: number): void {
    this.#sources.add(source)
    if (atMs < this.#armedForMs) this.#arm(atMs)
  }

  /** Nothing of it is due any more. The last one takes the timer along. */
  forget(source: DeadlineSource): void {
    if (!this.#sources.delete(source) || this.#sources.size > 0) return
    this.#platform.clearTimer(this.#timer)
    this.#timer = undefined
    this.#armedForMs = Number.POSITIVE_INFINITY
  }

  #arm(atMs: number): void {
    this.#platform.clearTimer(this.#timer)
    this.#armedForMs = atMs
    // Children and sockets keep the process alive, never the clock.
    this.#timer = this.#platform.setTimer(
      this.#fire,
      Math.min(TIMER_MS_MAX, Math.max(1, Math.ceil(atMs - this.#platform.now()))),
      'background',
    )
  }

  readonly #fire = (): void => {
    this.#armedForMs = Infinity
    const nowMs = this.#platform.now()
    let nextMs = Infinity
    for (const source of this.#sources) {
      const sourceNextMs = source.sweep(nowMs)
      if (sourceNextMs === Infinity) this.#sources.delete(source)
      else nextMs = Math.min(nextMs, sourceNextMs)
    }
    if (nextMs < this.#armedForMs) this.#arm(nextMs) // a sweep may have armed a nearer one
  }
}

const perPlatform = new WeakMap<Platform, Deadlines>()

/** The deadlines of everything that runs on this platform. */
export function deadlinesOf(platform: Platform): Deadlines {
  let deadlines = perPlatform.get(platform)
  if (deadlines === undefined) perPlatform.set(platform, (deadlines = new Deadlines(platform)))
  return deadlines
}
