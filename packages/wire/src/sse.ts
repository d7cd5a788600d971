// Server-sent events as bytes, by the rules of the HTML standard. The data of an event is handed on without decoding: when it is one line, as JSON
// always is, and lies in one chunk, it is not even copied.
import { ByteList } from './byte-list.ts'

/** Takes what an event stream says. */
export interface EventSink {
  /** One event. `bytes[start, end)` is its data, valid only during the call; it may be empty. `type` is `''` when the server named none. */
  event(bytes: Buffer, start: number, end: number, type: string): void
  /** The data of an event passed the cap and was dropped. `head` and `tail` are its first and last bytes (512 each), enough to find a JSON-RPC id in. */
  oversized(head: Buffer, tail: Buffer, length: number): void
  /** The id that a resumption starts from, as the bytes of the stream in Latin-1. `''` takes an earlier one back. Comes before its event. */
  id(id: string): void
  /** The reconnection time, in ms. */
  retry(ms: number): void
}

const NEWLINE = 10,
  CARRIAGE_RETURN = 13,
  SPACE = 32,
  COLON = 58
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
/** Of a line that is no data: name and value. Longer ones are ignored. */
const FIELD_BYTES_MAX = 8 * 1024
const RETRY_DIGITS_MAX = 12
const EDGE_BYTES = 512
const NOTHING = Buffer.alloc(0)
const LINE_FEED = Buffer.from('\n')

/** Cuts an event stream into events. Bounded: it keeps at most one event of `eventBytesMax`, and one line of another field of 8 KiB. */
export class EventReader {
  readonly #sink: EventSink
  readonly #eventBytesMax: number
  /** The start of a line whose end has not come. */
  readonly #line: ByteList = new ByteList()
  #lineKind: 'undecided' | 'data' | 'field' | 'ignored' = 'undecided'
  /** The data of the event so far: one line in place, or several, joined. */
  #first: Buffer | undefined
  readonly #more: ByteList = new ByteList()
  #dataLines = 0
  #dropped: { head: Buffer; tail: Buffer; length: number } | undefined
  #type = ''
  #id: string | undefined
  #afterReturn = false
  #bytesBefore = 0

  constructor(sink: EventSink, eventBytesMax: number) {
    this.#sink = sink
    this.#eventBytesMax = eventBytesMax
  }

  /** The next bytes of the stream. Data of complete events goes to the sink at once; a view of `chunk` is kept until its event is complete. */
  push(chunk: Buffer): void {
    let at = this.#bytesBefore < 3 ? this.#skipMark(chunk) : 0
    if (at >= chunk.length) return
    if (this.#afterReturn) {
      this.#afterReturn = false
      if (chunk[at] === NEWLINE) at++
    }
    let newline = -1
    let carriageReturn = -1
    while (at < chunk.length) {
      newline = from(newline, at, chunk, NEWLINE)
      carriageReturn = from(carriageReturn, at, chunk, CARRIAGE_RETURN)
      const end = Math.min(newline, carriageReturn)
      if (end === chunk.length) return this.#keep(chunk, at, end)
      if (this.#line.length === 0 && this.#lineKind === 'undecided') this.#whole(chunk, at, end)
      else this.#completed(chunk, at, end)
      at = end + 1
      if (end === newline) continue
      if (at === chunk.length) this.#afterReturn = true
      else if (chunk[at] === NEWLINE) at++
    }
  }

  /** The stream is over. An event that no blank line ended is dropped, as the standard says. */
  end(): void {
    this.#line.clear()
    this.#forget()
  }

  /** One byte order mark at the very start is not part of the stream; it may come in pieces. Returns where the rest begins. */
  #skipMark(chunk: Buffer): number {
    const had = this.#bytesBefore
    const length = Math.min(3 - had, chunk.length)
    if (chunk.compare(BYTE_ORDER_MARK, had, had + length, 0, length) !== 0) {
      this.#bytesBefore = 3
      if (had > 0) this.#keep(BYTE_ORDER_MARK, 0, had)
      return 0
    }
    this.#bytesBefore += length
    return length
  }

  /** The middle of a line: keeps what may be needed of it. */
  #keep(bytes: Buffer, start: number, end: number): void {
    if (start === end) return
    if (this.#lineKind === 'undecided') {
      const known = this.#line.length
      if (known === 0 && bytes[start] === COLON) this.#lineKind = 'ignored'
      else if (known + end - start >= 5) {
        const name = Buffer.concat([this.#line.join(), bytes.subarray(start, Math.min(end, start + 5))])
        this.#lineKind = name.toString('latin1', 0, 5) === 'data:' ? 'data' : 'field'
      }
    }
    if (this.#lineKind === 'ignored') return
    if (this.#lineKind === 'data') return this.#keepData(bytes, start, end)
    if (this.#line.length + end - start <= FIELD_BYTES_MAX) return this.#line.add(bytes.subarray(start, end))
    this.#line.clear()
    this.#lineKind = 'ignored'
  }

  #keepData(bytes: Buffer, start: number, end: number): void {
    if (this.#dropped !== undefined) return this.#drop(bytes, start, end)
    this.#line.add(bytes.subarray(start, end))
    if (this.#dataBytes + this.#line.length <= this.#eventBytesMax + 6) return
    const line = this.#line.join()
    this.#startDropping(line, valueStart(line, 0, line.length, 4), line.length)
    this.#line.clear()
  }

  /** The end of a line whose start was kept. */
  #completed(bytes: Buffer, start: number, end: number): void {
    this.#keep(bytes, start, end)
    const line = this.#line.join()
    this.#line.clear()
    this.#lineKind = 'undecided'
    if (line.length > 0) this.#whole(line, 0, line.length) // else: ignored, or data that was dropped as it came
  }

  #whole(bytes: Buffer, start: number, end: number): void {
    if (start === end) return this.#dispatch()
    if (isNamed(bytes, start, end, 'data')) return this.#data(bytes, valueStart(bytes, start, end, 4), end)
    if (bytes[start] === COLON || end - start > FIELD_BYTES_MAX) return // a comment keeps the connection alive
    if (isNamed(bytes, start, end, 'event')) this.#type = bytes.toString('utf8', valueStart(bytes, start, end, 5), end)
    else if (isNamed(bytes, start, end, 'id')) {
      const id = bytes.toString('latin1', valueStart(bytes, start, end, 2), end)
      if (!id.includes('\0')) this.#id = id
    } else if (isNamed(bytes, start, end, 'retry'))
      this.#retry(bytes.toString('latin1', valueStart(bytes, start, end, 5), end))
  }

  #retry(digits: string): void {
    if (/^\d+$/.test(digits) && digits.length <= RETRY_DIGITS_MAX) this.#sink.retry(Number(digits))
  }

  get #dataBytes(): number {
    return (this.#first?.length ?? 0) + this.#more.length
  }

  #data(bytes: Buffer, start: number, end: number): void {
    if (this.#dropped !== undefined) {
      this.#dropped.length++
      return this.#drop(bytes, start, end)
    }
    if (this.#dataBytes + (this.#dataLines > 0 ? 1 : 0) + end - start > this.#eventBytesMax)
      return this.#startDropping(bytes, start, end)
    this.#dataLines++
    if (this.#dataLines === 1) {
      this.#first = bytes.subarray(start, end)
      return
    }
    if (this.#first !== undefined) this.#more.add(this.#first)
    this.#first = undefined
    this.#more.add(LINE_FEED)
    this.#more.add(bytes.subarray(start, end))
  }

  #startDropping(bytes: Buffer, start: number, end: number): void {
    const before = this.#first ?? this.#more.join()
    const line = bytes.subarray(start, end)
    const head = Buffer.concat([before.subarray(0, EDGE_BYTES), line.subarray(0, EDGE_BYTES)]).subarray(0, EDGE_BYTES)
    this.#dropped = { head, tail: lastBytes(before, NOTHING), length: before.length + (this.#dataLines > 0 ? 1 : 0) }
    this.#dataLines++
    this.#first = undefined
    this.#more.clear()
    this.#drop(bytes, start, end)
  }

  #drop(bytes: Buffer, start: number, end: number): void {
    if (this.#dropped === undefined) return
    this.#dropped.length += end - start
    this.#dropped.tail = lastBytes(this.#dropped.tail, bytes.subarray(start, end))
  }

  #dispatch(): void {
    const dropped = this.#dropped
    const lines = this.#dataLines
    const whole = this.#first ?? (lines > 0 ? this.#more.join() : NOTHING)
    const type = this.#type
    if (this.#id !== undefined) this.#sink.id(this.#id)
    this.#forget()
    if (dropped !== undefined) this.#sink.oversized(dropped.head, dropped.tail, dropped.length)
    else if (lines > 0) this.#sink.event(whole, 0, whole.length, type)
  }

  #forget(): void {
    this.#first = undefined
    this.#dropped = undefined
    this.#id = undefined
    this.#type = ''
    if (this.#dataLines > 1) this.#more.clear()
    this.#dataLines = 0
  }
}

/** Where this byte comes next; `known` is where it came last time. The length of the chunk: not any more. */
function from(known: number, at: number, chunk: Buffer, byte: number): number {
  if (known >= at) return known
  const found = chunk.indexOf(byte, at)
  return found === -1 ? chunk.length : found
}

/** Is the field of this line called so? The name ends at the first colon, or is the whole line. */
function isNamed(bytes: Buffer, start: number, end: number, name: string): boolean {
  const { length } = name
  if (end - start < length || (end - start > length && bytes[start + length] !== COLON)) return false
  for (let index = 0; index < length; index++) if (bytes[start + index] !== name.charCodeAt(index)) return false
  return true
}

/** Where the value begins: after the colon, and after one space. */
function valueStart(bytes: Buffer, start: number, end: number, nameLength: number): number {
  const at = start + nameLength + 1
  return Math.min(end, at < end && bytes[at] === SPACE ? at + 1 : at)
}

function lastBytes(before: Buffer, part: Buffer): Buffer {
  if (part.length >= EDGE_BYTES) return Buffer.from(part.subarray(part.length - EDGE_BYTES))
  const kept = before.subarray(Math.max(0, before.length - (EDGE_BYTES - part.length)))
  return Buffer.concat([kept, part])
}
