// Server-sent events as bytes: the data of an event is handed on without decoding when it is one line, as JSON always is.
import { LineReader } from './line-reader.ts'

export interface EventSink {
  data(bytes: Buffer, start: number, end: number): void
  oversized(head: Buffer, tail: Buffer, length: number): void
  id(id: string): void
  retry(ms: number): void
}

const CARRIAGE_RETURN = 13,
  SPACE = 32,
  COLON = 58

export class EventReader {
  readonly #reader: LineReader
  #first: Buffer | undefined
  #more: Buffer[] = []

  readonly sink: EventSink

  constructor(sink: EventSink, eventBytesMax: number) {
    this.sink = sink
    this.#reader = new LineReader(
      {
        line: (bytes, start, end) => this.#line(bytes, start, end),
        oversized: (head, tail, length) => sink.oversized(head.subarray(head.indexOf('{')), tail, length),
      },
      eventBytesMax,
    )
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk)
  }

  /** The stream is over. An event that the blank line never ended is dropped, as the standard says. */
  end(): void {
    this.#first = undefined
  }

  #line(bytes: Buffer, start: number, end: number): void {
    if (end > start && bytes[end - 1] === CARRIAGE_RETURN) end--
    if (end === start) return this.#dispatch()
    let colon = bytes.indexOf(COLON, start)
    if (colon === start) return // a comment, sent to keep the connection alive
    if (colon === -1 || colon > end) colon = end
    const field = bytes.toString('latin1', start, colon)
    const from = bytes[colon + 1] === SPACE ? colon + 2 : colon + 1
    if (field === 'data') {
      const value = bytes.subarray(Math.min(from, end), end)
      if (this.#first === undefined) this.#first = value
      else this.#more.push(value)
    } else if (field === 'id') this.sink.id(bytes.toString('utf8', from, end))
    else if (field === 'retry' && /^\d+$/.test(bytes.toString('latin1', from, end)))
      this.sink.retry(Number(bytes.toString('latin1', from, end)))
  }

  #dispatch(): void {
    const first = this.#first
    if (first === undefined) return
    const whole =
      this.#more.length === 0
        ? first
        : Buffer.concat([first, ...this.#more.flatMap((part) => [Buffer.from('\n'), part])])
    this.#first = undefined
    this.#more = []
    if (whole.length > 0) this.sink.data(whole, 0, whole.length)
  }
}
