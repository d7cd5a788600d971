// Cuts a byte stream into lines. Looks at each byte once, copies only lines that span chunks, and survives a line over the cap.

export interface LineSink {
  /** One line without its newline: bytes [start, end) of `bytes`. Valid only during the call. */
  line(bytes: Buffer, start: number, end: number): void
  /** A line over the cap was skipped. `head` and `tail` are its first and last bytes, enough to find a JSON-RPC id in. */
  oversized(head: Buffer, tail: Buffer, length: number): void
}

const NEWLINE = 10
const EDGE_BYTES = 512

export class LineReader {
  #parts: Buffer[] = []
  #length = 0
  #skipping: { head: Buffer; tail: Buffer } | undefined

  readonly sink: LineSink
  readonly lineBytesMax: number

  constructor(sink: LineSink, lineBytesMax: number) {
    this.sink = sink
    this.lineBytesMax = lineBytesMax
  }

  push(chunk: Buffer): void {
    let at = 0
    for (let newline = chunk.indexOf(NEWLINE); newline !== -1; newline = chunk.indexOf(NEWLINE, at)) {
      if (this.#length === 0 && newline - at <= this.lineBytesMax) this.sink.line(chunk, at, newline)
      else this.#finish(chunk.subarray(at, newline))
      at = newline + 1
    }
    if (at < chunk.length) this.#keep(at === 0 ? chunk : chunk.subarray(at))
  }

  /** Bytes after the last newline, if any: a last line that was never ended. */
  flush(): void {
    if (this.#length > 0) this.#finish(Buffer.alloc(0))
  }

  #keep(part: Buffer): void {
    this.#length += part.length
    if (this.#skipping !== undefined) {
      this.#skipping.tail = lastBytes(this.#skipping.tail, part)
      return
    }
    this.#parts.push(part)
    if (this.#length > this.lineBytesMax) this.#startSkipping()
  }

  #startSkipping(): void {
    const [first, last] = [this.#parts[0], this.#parts.at(-1)]
    if (first === undefined || last === undefined) return
    const before = this.#parts.at(-2) ?? Buffer.alloc(0)
    this.#skipping = { head: Buffer.from(first.subarray(0, EDGE_BYTES)), tail: lastBytes(before, last) }
    this.#parts = []
  }

  #finish(part: Buffer): void {
    this.#keep(part)
    const { sink } = this
    const [parts, length, skipping] = [this.#parts, this.#length, this.#skipping]
    this.#parts = []
    this.#length = 0
    this.#skipping = undefined
    if (skipping !== undefined) return sink.oversized(skipping.head, skipping.tail, length)
    const whole = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, length)
    sink.line(whole, 0, whole.length)
  }
}

function lastBytes(before: Buffer, part: Buffer): Buffer {
  if (part.length >= EDGE_BYTES) return Buffer.from(part.subarray(part.length - EDGE_BYTES))
  return Buffer.concat([before.subarray(Math.max(0, before.length - (EDGE_BYTES - part.length))), part])
}
