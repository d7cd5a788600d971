// Finds the id and the result of a JSON-RPC answer without building a value, so that a gateway can pass the bytes on. It is a full check of the JSON: what passes
// here, a parser takes.
import type * as NodeBuffer from 'node:buffer'

/** Where the id and the payload of an answer are. */
export interface Envelope {
  /** As JSON text: `7` or `"7"`. */
  id: string
  kind: 'result' | 'error'
  /** Span of the result or error object. */
  start: number
  end: number
  /** The result object has a top-level `resultType`. */
  typed: boolean
}

const QUOTE = 34,
  MINUS = 45,
  POINT = 46,
  ZERO = 48,
  NINE = 57,
  COLON = 58,
  COMMA = 44,
  BACKSLASH = 92,
  LETTER_U = 117,
  OPEN_OBJECT = 123,
  CLOSE_OBJECT = 125,
  OPEN_ARRAY = 91,
  SPACE = 32
/** From an opening bracket to its closing one, for both kinds. */
const TO_CLOSING = 2
/** What JSON.parse takes without complaint can still be too deep for those who walk it. */
const DEPTH_MAX = 1_000
const BAD = -1

const open = new Uint8Array(DEPTH_MAX)
const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text))
const escapes = new Uint8Array(128)
for (const char of '"\\/bfnrt') escapes[char.charCodeAt(0)] = 1
const RESULT_TYPE = Buffer.from('resultType')

/** What the last walk over a payload saw among the keys of its outermost object. */
let sawResultType = false
let sawEscapedKey = false

/**
 * Walks everything, so a forged second `id` or `result` inside or after the payload cannot be mistaken for the real one. Undefined when the bytes are not exactly
 * one well-formed answer, written plainly and nested at most 1,000 deep: then parse it.
 */
export function scanEnvelope(bytes: Buffer, start: number, end: number): Envelope | undefined {
  const members: Members = { id: undefined, kind: undefined, start: 0, end: 0 }
  let at = skipSpace(bytes, start, end)
  if (at >= end || bytes[at] !== OPEN_OBJECT) return undefined
  do {
    at = takeMember(bytes, skipSpace(bytes, at + 1, end), end, members)
    if (at === BAD) return undefined
  } while (bytes[at] === COMMA)
  if (bytes[at] !== CLOSE_OBJECT || skipSpace(bytes, at + 1, end) !== end) return undefined
  const { id, kind } = members
  if (id === undefined || kind === undefined || bytes[members.start] !== OPEN_OBJECT || sawEscapedKey) return undefined
  if (!isUtf8(bytes.subarray(start, end))) return undefined
  return { id, kind, start: members.start, end: members.end, typed: kind === 'result' && sawResultType }
}

interface Members {
  id: string | undefined
  kind: Envelope['kind'] | undefined
  start: number
  end: number
}

/** One member of the outer object; the place of what follows its value. */
function takeMember(bytes: Buffer, at: number, end: number, members: Members): number {
  const keyEnd = bytes[at] === QUOTE ? skipString(bytes, at, end) : BAD
  if (keyEnd === BAD) return BAD
  const key = bytes.toString('latin1', at + 1, keyEnd - 1)
  const colon = skipSpace(bytes, keyEnd, end)
  if (bytes[colon] !== COLON) return BAD
  const from = skipSpace(bytes, colon + 1, end)
  const isPayload = key === 'result' || key === 'error'
  if (isPayload) sawResultType = sawEscapedKey = false
  const to = skipValue(bytes, from, end)
  if (to === BAD || !keepMember(members, key, bytes, { from, to })) return BAD
  return skipSpace(bytes, to, end)
}

/** False for a stranger and for what was there before. */
function keepMember(members: Members, key: string, bytes: Buffer, { from, to }: { from: number; to: number }): boolean {
  if (key === 'jsonrpc') return true
  if (key === 'id') {
    if (members.id !== undefined) return false
    members.id = bytes.toString('latin1', from, to)
    return true
  }
  if ((key !== 'result' && key !== 'error') || members.kind !== undefined) return false
  members.kind = key
  members.start = from
  members.end = to
  return true
}

/** The id near the edge of a line that was too long to keep. Servers write it first (Python, Rust, ours) or last (the TypeScript SDK). */
export function recoverId(head: Buffer, tail: Buffer): string | undefined {
  const first = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+|"[^"\\]*")\s*,/.exec(
    head.toString('latin1'),
  )?.[1]
  const last = /,\s*"id"\s*:\s*(\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(
    tail.toString('latin1'),
  )?.[1]
  // Two ids are one too many: whose answer it is cannot be known.
  return first !== undefined && last !== undefined && first !== last ? undefined : (first ?? last)
}

function skipSpace(bytes: Buffer, from: number, end: number): number {
  let at = from
  for (; at < end; at++) {
    const byte = bytes[at]
    if (byte !== SPACE && byte !== 10 && byte !== 13 && byte !== 9) return at
  }
  return at
}

/** `at` is on the opening quote; returns the place after the closing one. */
function skipString(bytes: Buffer, from: number, end: number): number {
  for (let at = from + 1; at < end; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) return at + 1
    if (byte < SPACE) return BAD
    if (byte === BACKSLASH) {
      at = skipEscape(bytes, at + 1)
      if (at === BAD) return BAD
    }
  }
  return BAD
}

/** `at` is behind the backslash; returns the last place of the escape. */
function skipEscape(bytes: Buffer, at: number): number {
  const byte = bytes[at] ?? 0
  if (byte < 128 && escapes[byte] === 1) return at
  if (byte !== LETTER_U) return BAD
  for (let digit = at + 1; digit <= at + 4; digit++) if (!isHexDigit(bytes[digit] ?? 0)) return BAD
  return at + 4
}

function isHexDigit(byte: number): boolean {
  return isDigit(byte) || ((byte | 32) >= 97 && (byte | 32) <= 102)
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

/** The open brackets around the place where the walk is, and whether its last step went into one. */
let depth = 0
let wentIn = false

/** `at` is on the first byte of a value; returns the place after it. Without recursion, so that depth costs no stack. */
function skipValue(bytes: Buffer, from: number, end: number): number {
  depth = 0
  let at = from
  do {
    at = stepIn(bytes, at, end)
    if (!wentIn) at = stepOut(bytes, at, end)
  } while (at !== BAD && depth > 0)
  return at
}

/** Over a scalar or an empty bracket, or to the first value inside a bracket. */
function stepIn(bytes: Buffer, at: number, end: number): number {
  const byte = bytes[at]
  wentIn = false
  if (byte !== OPEN_OBJECT && byte !== OPEN_ARRAY) return skipScalar(bytes, at, end)
  const next = skipSpace(bytes, at + 1, end)
  if (bytes[next] === byte + TO_CLOSING) return next + 1
  wentIn = true
  if (depth === DEPTH_MAX) return BAD
  open[depth++] = byte
  return byte === OPEN_OBJECT ? skipKey(bytes, next, end) : next
}

/** After a value: to the next one of the same bracket, or out of all brackets that end here. */
function stepOut(bytes: Buffer, from: number, end: number): number {
  let at = from
  if (at === BAD || at > end) return BAD
  while (depth > 0) {
    at = skipSpace(bytes, at, end)
    const bracket = open[depth - 1] as number
    if (bytes[at] === COMMA) {
      at = skipSpace(bytes, at + 1, end)
      return bracket === OPEN_OBJECT ? skipKey(bytes, at, end) : at
    }
    if (bytes[at] !== bracket + TO_CLOSING) return BAD
    depth--
    at++
  }
  return at
}

/** A key and its colon; returns the place of the value. */
function skipKey(bytes: Buffer, at: number, end: number): number {
  if (bytes[at] !== QUOTE) return BAD
  const keyEnd = skipString(bytes, at, end)
  if (keyEnd === BAD) return BAD
  if (depth === 1) noteKey(bytes, at + 1, keyEnd - 1)
  const colon = skipSpace(bytes, keyEnd, end)
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1, end) : BAD
}

function noteKey(bytes: Buffer, start: number, end: number): void {
  if (end - start === RESULT_TYPE.length && bytes.compare(RESULT_TYPE, 0, RESULT_TYPE.length, start, end) === 0)
    sawResultType = true
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) sawEscapedKey = true
}

function skipScalar(bytes: Buffer, at: number, end: number): number {
  const byte = bytes[at]
  if (byte === QUOTE) return skipString(bytes, at, end)
  if (byte === MINUS || isDigit(byte)) return skipNumber(bytes, at, end)
  for (const literal of literals)
    if (byte === literal[0] && at + literal.length <= end)
      return bytes.compare(literal, 0, literal.length, at, at + literal.length) === 0 ? at + literal.length : BAD
  return BAD
}

function skipNumber(bytes: Buffer, from: number, end: number): number {
  let at = bytes[from] === MINUS ? from + 1 : from
  if (bytes[at] === ZERO) at++
  else at = skipDigits(bytes, at, end)
  if (at !== BAD && at < end && bytes[at] === POINT) at = skipDigits(bytes, at + 1, end)
  if (at !== BAD && at < end && ((bytes[at] as number) | 32) === 101) {
    const sign = bytes[at + 1]
    at = skipDigits(bytes, sign === 43 || sign === MINUS ? at + 2 : at + 1, end)
  }
  return at
}

/** At least one digit. */
function skipDigits(bytes: Buffer, from: number, end: number): number {
  let at = from
  while (at < end && isDigit(bytes[at])) at++
  return at === from ? BAD : at
}

const isUtf8 = (process.getBuiltinModule('node:buffer') as typeof NodeBuffer).isUtf8
