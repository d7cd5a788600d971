// Cuts a byte stream into lines. Looks at each byte once, copies only lines that span chunks, and survives a line over the cap.

/** Takes the lines, at once and in order. */
export interface LineSink {
  /** One line without its newline: bytes [start, end) of `bytes`. Valid only during the call. */
  line(bytes: Buffer, start: number, end: number): void
  /** A line over the cap was skipped. `head` and `tail` are its first and last bytes, enough to find a JSON-RPC id in. */
  oversized(head: Buffer, tail: Buffer, length: number): void
}

const NEWLINE = 10
const EDGE_BYTES = 512
/** Parts smaller than this are copied together: a stream that trickles must not cost an object per byte. */
const SMALL_BYTES = 2_048
const SLAB_BYTES = 4_096
const EMPTY = Buffer.alloc(0)

/** Chunks in, lines out. Keeps at most one line of `lineBytesMax` bytes. */
export class LineReader {
  readonly sink: LineSink
  readonly lineBytesMax: number
  #parts: Buffer[] = []
  #length = 0
  /** Where small parts are copied to; its filled beginning is the last of `#parts`. */
  #slab: { bytes: Buffer; used: number } | undefined
  #skipping: { head: Buffer; tail: Buffer } | undefined

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
    if (this.#length > 0) this.#finish(EMPTY)
  }

  #keep(part: Buffer): void {
    this.#length += part.length
    if (this.#skipping !== undefined) {
      const { head, tail } = this.#skipping
      if (head.length < EDGE_BYTES) this.#skipping.head = firstBytes([head, part])
      this.#skipping.tail = lastBytes([tail, part])
      return
    }
    if (part.length < SMALL_BYTES) this.#keepSmall(part)
    else {
      this.#slab = undefined
      this.#parts.push(part)
    }
    if (this.#length > this.lineBytesMax) this.#startSkipping()
  }

  #keepSmall(part: Buffer): void {
    let slab = this.#slab
    if (slab === undefined || slab.used + part.length > SLAB_BYTES) {
      slab = this.#slab = { bytes: Buffer.allocUnsafeSlow(SLAB_BYTES), used: 0 }
      this.#parts.push(EMPTY)
    }
    part.copy(slab.bytes, slab.used)
    slab.used += part.length
    this.#parts[this.#parts.length - 1] = slab.bytes.subarray(0, slab.used)
  }

  #startSkipping(): void {
    this.#skipping = { head: firstBytes(this.#parts), tail: lastBytes(this.#parts) }
    this.#parts = []
    this.#slab = undefined
  }

  #finish(part: Buffer): void {
    if (part.length > 0) this.#keep(part)
    const { sink } = this
    const [parts, length, skipping] = [this.#parts, this.#length, this.#skipping]
    this.#parts = []
    this.#slab = undefined
    this.#length = 0
    this.#skipping = undefined
    if (skipping !== undefined) return sink.oversized(skipping.head, skipping.tail, length)
    const whole = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, length)
    sink.line(whole, 0, whole.length)
  }
}

function firstBytes(parts: readonly Buffer[]): Buffer {
  const taken: Buffer[] = []
  let length = 0
  for (const part of parts) {
    if (length >= EDGE_BYTES) break
    taken.push(part.subarray(0, EDGE_BYTES - length))
    length += part.length
  }
  return Buffer.concat(taken)
}

function lastBytes(parts: readonly Buffer[]): Buffer {
  const taken: Buffer[] = []
  let length = 0
  for (let index = parts.length - 1; index >= 0 && length < EDGE_BYTES; index--) {
    const part = parts[index] as Buffer
    taken.unshift(part.subarray(Math.max(0, part.length - (EDGE_BYTES - length))))
    length += part.length
  }
  return Buffer.concat(taken)
}
