// The one source of chance in a simulation: the same seed gives the same numbers for ever.

/** A small generator (mulberry32): fast, and good enough to choose with. Nothing secret comes out of it. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From now on as if it had been made with this seed. */
  reseed(seed: number): void {
    this.#state = seed >>> 0
  }

  /** A whole number of 32 bits. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** From 0 up to, but not including, `end`. */
  below(end: number): number {
    return this.next() % Math.max(1, end)
  }

  /** From `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1)
  }

  /** True in `percent` of a hundred cases. */
  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  /** A key, each as likely as its weight. */
  weighted<Key extends string>(weights: Readonly<Partial<Record<Key, number>>>): Key {
    const entries = Object.entries(weights) as [Key, number][]
    let at = this.below(entries.reduce((sum, [, weight]) => sum + weight, 0))
    for (const [key, weight] of entries) {
      if (at < weight) return key
      at -= weight
    }
    return (entries[0] as [Key, number])[0]
  }
}
