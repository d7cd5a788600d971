// Looks at a JSON text before it is parsed: how deep, how many members, names that stand twice, numbers that a double cannot hold.
import { isExactNumber } from './exact-number.ts'

export interface StructureLimits {
  readonly depthMax: number
  readonly membersMax: number
}

/** What the walk found. The grammar is left to the parser. */
export interface Structure {
  /** Why the text is refused unparsed. */
  readonly fault?: string
  /** There is a number in it that reading and writing would change. */
  readonly lossy: boolean
}

const QUOTE = 34,
  BACKSLASH = 92,
  COLON = 58,
  COMMA = 44,
  MINUS = 45,
  OPEN_OBJECT = 123,
  CLOSE_OBJECT = 125,
  OPEN_ARRAY = 91,
  CLOSE_ARRAY = 93
/** Digits of which every number is exact in a double. */
const EXACT_CHARS = 15
/** Names are compared in the envelope and in its params. */
const NAMED_LEVELS = 2
const SHORT_STRING_BYTES = 48

/** Walks every byte once. */
export function scanStructure(bytes: Buffer, limits: StructureLimits): Structure {
  const walk = new Walk(bytes, limits)
  const { length } = bytes
  for (let at = 0; at < length && walk.fault === undefined; ) at = walk.step(at)
  return walk.fault === undefined ? { lossy: walk.lossy } : { fault: walk.fault, lossy: walk.lossy }
}

class Walk {
  fault: string | undefined
  lossy = false
  readonly #bytes: Buffer
  readonly #limits: StructureLimits
  /** Per level: the names so far if it is an object of the envelope, null if it is another object, undefined if it is a list. */
  readonly #levels: (string[] | null | undefined)[] = []
  #members = 0
  #wantsName = false
  /** How many levels are lists around the envelopes: 1 in a batch. */
  #outerLists = 0

  constructor(bytes: Buffer, limits: StructureLimits) {
    this.#bytes = bytes
    this.#limits = limits
  }

  step(at: number): number {
    const byte = this.#bytes[at] as number
    switch (byte) {
      case QUOTE:
        return this.#string(at)
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        this.#open(byte)
        return at + 1
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        this.#levels.pop()
        this.#wantsName = false
        return at + 1
      case COMMA:
        this.#count()
        this.#wantsName = this.#levels.at(-1) !== undefined
        return at + 1
      case COLON:
        this.#wantsName = false
        return at + 1
      default:
        return byte === MINUS || (byte >= 48 && byte <= 57) ? this.#number(at) : at + 1
    }
  }

  #open(byte: number): void {
    const depth = this.#levels.length
    if (depth >= this.#limits.depthMax) this.fault = `it is nested deeper than ${this.#limits.depthMax} levels`
    this.#count()
    if (byte === OPEN_ARRAY) {
      if (depth === 0) this.#outerLists = 1
      this.#levels.push(undefined)
    } else this.#levels.push(depth - this.#outerLists < NAMED_LEVELS ? [] : null)
    this.#wantsName = byte === OPEN_OBJECT
  }

  #count(): void {
    if (++this.#members > this.#limits.membersMax) this.fault = `it has more than ${this.#limits.membersMax} members`
  }

  #string(at: number): number {
    const end = stringEnd(this.#bytes, at)
    if (!this.#wantsName) return end
    this.#wantsName = false
    const names = this.#levels.at(-1)
    if (names === undefined || names === null) return end
    const name = nameIn(this.#bytes, at, end)
    if (names.includes(name)) this.fault = `the name ${JSON.stringify(name.slice(0, 64))} stands twice in one object`
    else names.push(name)
    return end
  }

  #number(at: number): number {
    const bytes = this.#bytes
    let end = at + 1
    while (end < bytes.length && isNumberByte(bytes[end] as number)) end++
    const exact = end - at <= EXACT_CHARS && !(bytes[at] === MINUS && bytes[at + 1] === 48)
    if (!exact && !this.lossy) this.lossy = !isExactNumber(bytes.toString('latin1', at, end))
    else if (exact && hasExponent(bytes, at, end)) this.lossy ||= !isExactNumber(bytes.toString('latin1', at, end))
    return end
  }
}

function isNumberByte(byte: number): boolean {
  return (byte >= 48 && byte <= 57) || byte === 46 || byte === MINUS || byte === 43 || byte === 101 || byte === 69
}

function hasExponent(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === 101 || bytes[at] === 69) return true
  return false
}

/** The place after the closing quote, or the end of the text. Short strings are walked, long ones searched. */
function stringEnd(bytes: Buffer, at: number): number {
  const near = Math.min(bytes.length, at + SHORT_STRING_BYTES)
  let next = at + 1
  for (; next < near; next++) {
    const byte = bytes[next]
    if (byte === QUOTE) return next + 1
    if (byte === BACKSLASH) next++
  }
  for (let quote = bytes.indexOf(QUOTE, next); quote !== -1; quote = bytes.indexOf(QUOTE, quote + 1)) {
    let first = quote
    while (first > next && bytes[first - 1] === BACKSLASH) first--
    if ((quote - first) % 2 === 0) return quote + 1
  }
  return bytes.length
}

function nameIn(bytes: Buffer, at: number, end: number): string {
  const text = bytes.toString('utf8', at, end)
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return String(JSON.parse(text))
  } catch {
    return text // the parser will refuse it
  }
}
