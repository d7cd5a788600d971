// The virtual clock: everything that will happen, in the order in which it will. Nothing happens until somebody asks for the next thing.
import type { TimerHandle } from '@convoke/wire'
import type { Random } from './random.ts'

/** Something that is going to happen. */
interface Due {
  readonly atMs: number
  /** Decides between what is due at the same moment. */
  readonly tie: number
  readonly order: number
  readonly run: () => void
  /** Where a timer was set, when that is kept. */
  readonly place?: string
  cancelled: boolean
}

/** A timer of a loaded machine is late by up to so much, in milliseconds, in some cases. */
const LATE_MS_MAX = 12
const LATE_PERCENT = 15

/** The clock and everything that waits for it. Times are in ms. */
export class Timeline {
  nowMs = 0
  /** Keeps where each timer was set: slow, for finding one that is left. */
  keepsPlaces = false
  readonly #random: Random
  readonly #heap: Due[] = []
  readonly #timers = new Set<Due>()
  #order = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** Timers of the host that have neither rung nor been cleared. */
  get timerCount(): number {
    return this.#timers.size
  }

  /** What is left of them, for a person. */
  get timersLeft(): readonly string[] {
    return [...this.#timers].map(({ atMs, place = '' }) => `in ${atMs - this.nowMs} ms ${place}`.trim())
  }

  /** For the platform: as Node's timers, never before their time and never in the tick that sets them. */
  setTimer(callback: () => void, ms: number, kind?: 'background'): TimerHandle {
    const lateMs = this.#random.chance(LATE_PERCENT) ? this.#random.below(LATE_MS_MAX) : 0
    const due = this.#push(this.nowMs + Math.max(1, ms) + lateMs, callback, kind ?? 'timer')
    this.#timers.add(due)
    return due
  }

  clearTimer(timer: TimerHandle | undefined): void {
    const due = timer as Due | undefined
    if (due === undefined) return
    due.cancelled = true
    this.#timers.delete(due)
  }

  /** The world does something, after `minMs` to `maxMs`. */
  later(minMs: number, maxMs: number, run: () => void): void {
    this.#push(this.nowMs + this.#random.between(minMs, maxMs), run, 'world')
  }

  /** The world does something at a given time. */
  at(atMs: number, run: () => void): void {
    this.#push(Math.max(this.nowMs, atMs), run, 'world')
  }

  /** When the next thing happens; undefined: nothing ever will. */
  get nextAtMs(): number | undefined {
    this.#dropCancelled()
    return this.#heap[0]?.atMs
  }

  /** Makes the next thing happen. False when there is none. */
  step(): boolean {
    this.#dropCancelled()
    const due = this.#pop()
    if (due === undefined) return false
    if (due.atMs > this.nowMs) this.nowMs = due.atMs
    this.#timers.delete(due)
    due.run()
    return true
  }

  #push(atMs: number, run: () => void, kind: 'timer' | 'background' | 'world'): Due {
    const due: Due = {
      atMs,
      tie: this.#random.next(),
      order: this.#order++,
      run,
      ...(this.keepsPlaces && kind !== 'world' ? { place: placeOf(new Error().stack) } : {}),
      cancelled: false,
    }
    const heap = this.#heap
    let at = heap.push(due) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!isBefore(due, heap[above] as Due)) break
      heap[at] = heap[above] as Due
      at = above
    }
    heap[at] = due
    return due
  }

  #dropCancelled(): void {
    while (this.#heap[0]?.cancelled === true) this.#pop()
  }

  #pop(): Due | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && isBefore(heap[below + 1] as Due, heap[below] as Due)) below += 1
      if (!isBefore(heap[below] as Due, last)) break
      heap[at] = heap[below] as Due
      at = below
    }
    heap[at] = last
    return first
  }
}

/** What goes through it keeps its order, whatever chance says about the moments. */
export class Pipe {
  readonly #timeline: Timeline
  readonly #steps: (() => void)[] = []
  #lastAtMs = 0

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  /** After `ms`, and after everything that was put in before. */
  put(ms: number, step: () => void): void {
    this.#lastAtMs = Math.max(this.#lastAtMs, this.#timeline.nowMs + ms)
    this.#steps.push(step)
    this.#timeline.at(this.#lastAtMs, () => this.#steps.shift()?.())
  }
}

function isBefore(one: Due, other: Due): boolean {
  if (one.atMs !== other.atMs) return one.atMs < other.atMs
  return one.tie === other.tie ? one.order < other.order : one.tie < other.tie
}

const FRAMES_SHOWN = 4

/** The frames outside of the simulation. */
function placeOf(stack = ''): string {
  const frames = stack
    .split('\n')
    .slice(1)
    .filter((frame) => !frame.includes('/simulation/'))
  return frames
    .slice(0, FRAMES_SHOWN)
    .map((frame) => frame.trim().replace(/\(?file:.*\/packages\//, '('))
    .join(' < ')
}

/** After so many turns nothing of Node's own queues is left: what one callback puts off by `setImmediate`, the next turn has done. */
const TURNS = 3

/** Lets every microtask, tick and stream callback run that is due now. Virtual time stands still. */
export async function drain(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
