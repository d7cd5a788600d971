// The end of what a process wrote to stderr, bounded, for the message that says why it failed.
import { cleanText } from './clean-text.ts'

const BYTES_KEPT = 16 * 1024
const QUOTED_CHARS_MAX = 200

/** A ring of 16 KiB. */
export class StderrTail {
  #parts: Buffer[] = []
  #bytes = 0

  push(chunk: Buffer): void {
    // A view would keep its whole read buffer alive.
    const kept = Buffer.from(chunk.length > BYTES_KEPT ? chunk.subarray(-BYTES_KEPT) : chunk)
    this.#parts.push(kept)
    this.#bytes += kept.length
    while (this.#bytes - (this.#parts[0]?.length ?? 0) >= BYTES_KEPT) this.#bytes -= this.#parts.shift()?.length ?? 0
    if (this.#parts.length > 64) this.#parts = [Buffer.concat(this.#parts)]
  }

  /** At most 16 KiB of text, without control characters. */
  get text(): string {
    return cleanText(Buffer.concat(this.#parts).subarray(-BYTES_KEPT).toString('utf8'))
  }

  /** The last line that says something, cut to 200 characters; undefined when there is none. */
  get lastLine(): string | undefined {
    const line = this.text
      .split('\n')
      .map((one) => one.trim())
      .findLast((one) => one !== '')
    return line === undefined || line.length <= QUOTED_CHARS_MAX ? line : `${line.slice(0, QUOTED_CHARS_MAX)}…`
  }
}
