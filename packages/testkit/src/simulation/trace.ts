// What happened, line by line, as a digest and as the last lines: two runs of one seed are equal when their digests are.

const LINES_KEPT = 80
/** FNV-1a, twice with different beginnings: 64 bits are enough to tell two runs apart. */
const PRIME = 0x01000193

/** The record of one run. */
export class Trace {
  /** Hears every line, for `--trace`. */
  onLine: ((line: string) => void) | undefined
  readonly #kept: string[] = []
  #one = 0x811c9dc5
  #two = 0x9dc5811c
  #count = 0

  add(line: string): void {
    this.#count += 1
    for (let at = 0; at < line.length; at++) {
      const code = line.charCodeAt(at)
      this.#one = Math.imul(this.#one ^ code, PRIME)
      this.#two = Math.imul(this.#two ^ (code + at), PRIME)
    }
    this.#one = Math.imul(this.#one ^ 10, PRIME)
    this.#two = Math.imul(this.#two ^ 13, PRIME)
    this.#kept.push(line)
    if (this.#kept.length > 2 * LINES_KEPT) this.#kept.splice(0, LINES_KEPT)
    this.onLine?.(line)
  }

  get count(): number {
    return this.#count
  }

  /** 16 hexadecimal digits. */
  get digest(): string {
    return [this.#one, this.#two].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('')
  }

  /** The last lines, oldest first. */
  get tail(): readonly string[] {
    return this.#kept.slice(-LINES_KEPT)
  }
}
