// One event stream of MCP: messages out of events, and what is needed to resume it.
import { EventReader } from './sse.ts'

export interface EventStreamSink {
  /** The data of one `message` event: bytes [start, end). */
  message(bytes: Buffer, start: number, end: number): void
  /** A message over the cap was dropped. */
  oversized(head: Buffer, tail: Buffer, length: number): void
  /** An event of another type; only the older HTTP+SSE has one, `endpoint`. */
  other?(type: string, bytes: Buffer, start: number, end: number): void
}

/** Waited before a stream is opened again, where the server does not say. */
export const RETRY_MS = 1_000
/** A server that says 0 would be asked in a circle. */
export const RETRY_MS_MIN = 100
/** What a server may ask for; also keeps it below what a timer can hold. */
export const RETRY_MS_MAX = 3_600_000
const EVENT_ID_CHARS_MAX = 4_096

/** Reads the events of one answer. */
export class EventStream {
  readonly #reader: EventReader
  readonly #sink: EventStreamSink
  /** Where a resumption starts; undefined when the server gave no id, or none that a header can carry. */
  lastEventId: string | undefined
  /** Undefined until the server says. */
  retryMs: number | undefined
  /** An event has come. */
  progressed = false

  constructor(sink: EventStreamSink, messageBytesMax: number) {
    this.#sink = sink
    this.#reader = new EventReader(
      {
        event: (bytes, start, end, type) => this.#event(bytes, start, end, type),
        oversized: (head, tail, length) => sink.oversized(head, tail, length),
        id: (id) => this.#id(id),
        retry: (ms) => {
          this.retryMs = Math.min(Math.max(ms, RETRY_MS_MIN), RETRY_MS_MAX)
        },
      },
      messageBytesMax,
    )
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk)
  }

  /** What has not been completed is dropped. */
  end(): void {
    this.#reader.end()
  }

  #id(id: string): void {
    this.progressed = true
    this.lastEventId =
      id !== '' && id.length <= EVENT_ID_CHARS_MAX && /^[\x20-\x7e\x80-\xff]+$/.test(id) ? id : undefined
  }

  #event(bytes: Buffer, start: number, end: number, type: string): void {
    this.progressed = true
    if (type === '' || type === 'message') {
      if (end > start) this.#sink.message(bytes, start, end) // an empty one only brings an id
    } else this.#sink.other?.(type, bytes, start, end)
  }
}
