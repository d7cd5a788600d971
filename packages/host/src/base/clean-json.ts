import { cleanText, needsCleaning } from './clean-text.ts'

/** One text that was changed: where, and the code points that were taken out. */
export interface CleanedField {
  /** Keys and indexes joined by dots, cut to 200 characters. */
  readonly path: string
  readonly removed: readonly string[]
}

/** A JSON value without hidden characters. */
export interface CleanedJson<Value> {
  /** The same object when nothing had to be changed. */
  readonly value: Value
  /** At most 20 fields. */
  readonly fields: readonly CleanedField[]
  /** Characters in all texts and keys. */
  readonly chars: number
}

/** Limits of {@link cleanJson}. */
export interface CleanLimits {
  /** Default 1,048,576. */
  readonly charsMax?: number
  /** Default 100. */
  readonly depthMax?: number
}

const CHARS_MAX = 1024 * 1024
const DEPTH_MAX = 100
const FIELDS_MAX = 20
const PATH_CHARS_MAX = 200
const NONE: readonly CleanedField[] = []
const SHORT_CHARS_MAX = 64

/** Anything but printable ASCII, tab and line feed: what needs a closer look. */
const UNUSUAL = /[^\t\n\x20-\x7e]/

/**
 * Takes hidden characters out of every text and key of a JSON value. What has none is returned by reference, so that the ordinary case
 * costs a walk and no copy.
 * @throws {RangeError} for a value with more text or deeper nesting than the limits allow.
 */
export function cleanJson<Value>(value: Value, limits: CleanLimits = {}): CleanedJson<Value> {
  const { charsMax = CHARS_MAX, depthMax = DEPTH_MAX } = limits
  const scan: Scan = { charsLeft: charsMax, isPlain: true, depthMax }
  look(value, 0, scan)
  if (scan.charsLeft < 0) throw new RangeError(`more than ${charsMax} characters of text`)
  const chars = charsMax - scan.charsLeft
  if (scan.isPlain) return { value, fields: NONE, chars }
  const walker = new Walker()
  return { value: walker.clean(value) as Value, fields: walker.fields, chars }
}

interface Scan {
  charsLeft: number
  isPlain: boolean
  readonly depthMax: number
}

/** Short texts, which most are, are looked at sooner than an expression is entered. */
function isPlain(text: string): boolean {
  if (text.length > SHORT_CHARS_MAX) return !UNUSUAL.test(text)
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code > 0x7e || (code < 0x20 && code !== 0x09 && code !== 0x0a)) return false
  }
  return true
}

/** The cheap first look; it allocates nothing. */
function look(value: unknown, depth: number, scan: Scan): void {
  if (typeof value === 'string') {
    scan.charsLeft -= value.length
    if (scan.isPlain && !isPlain(value)) scan.isPlain = false
    return
  }
  if (typeof value !== 'object' || value === null || scan.charsLeft < 0) return
  if (depth >= scan.depthMax) throw new RangeError(`nested deeper than ${scan.depthMax} levels`)
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) look(value[index], depth + 1, scan)
    return
  }
  for (const key in value) {
    look(key, depth + 1, scan)
    look((value as Record<string, unknown>)[key], depth + 1, scan)
  }
}

/** The second look, at the few values that are not plain: knows where it is, and copies what it changes. */
class Walker {
  readonly fields: CleanedField[] = []
  readonly #path: (string | number)[] = []

  clean(value: unknown): unknown {
    if (typeof value === 'string') return this.#text(value)
    if (typeof value !== 'object' || value === null) return value
    return Array.isArray(value) ? this.#list(value) : this.#object(value as Record<string, unknown>)
  }

  #text(text: string): string {
    if (!needsCleaning(text)) return text
    const { text: clean, removed } = cleanText(text)
    if (removed.length > 0 && this.fields.length < FIELDS_MAX)
      this.fields.push({ path: this.#path.join('.').slice(0, PATH_CHARS_MAX), removed })
    return clean
  }

  #list(list: readonly unknown[]): readonly unknown[] {
    let copy: unknown[] | undefined
    for (let index = 0; index < list.length; index++) {
      const item = list[index]
      this.#path.push(index)
      const clean = this.clean(item)
      this.#path.pop()
      if (clean !== item) (copy ??= [...list])[index] = clean
    }
    return copy ?? list
  }

  #object(object: Record<string, unknown>): Record<string, unknown> {
    let hasChanged = false
    const members: [string, unknown][] = []
    for (const key of Object.keys(object)) {
      this.#path.push(key)
      const cleanKey = this.#text(key)
      const clean = this.clean(object[key])
      this.#path.pop()
      hasChanged ||= clean !== object[key] || cleanKey !== key
      members.push([cleanKey, clean])
    }
    return hasChanged ? Object.fromEntries(members) : object
  }
}
