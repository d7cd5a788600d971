// Finds the id and the result of a JSON-RPC answer without parsing it, so that a gateway can pass the bytes on.

export interface Envelope {
  id: string // the id as JSON text: `7` or `"7"`
  kind: 'result' | 'error'
  start: number // span of the result or error value
  end: number
  /** The result object has a top-level `resultType`. */
  typed: boolean
}

const QUOTE = 34,
  BACKSLASH = 92,
  COLON = 58,
  COMMA = 44,
  OPEN_OBJECT = 123,
  CLOSE_OBJECT = 125,
  OPEN_ARRAY = 91,
  CLOSE_ARRAY = 93

/**
 * Walks every member of the outer object, so a forged second `id` or `result` inside or after the payload cannot be mistaken for the real one.
 * Undefined when the line is no single well-bracketed answer: then parse it.
 */
export function scanEnvelope(bytes: Buffer, start: number, end: number): Envelope | undefined {
  let at = skipSpace(bytes, start, end)
  if (bytes[at] !== OPEN_OBJECT) return undefined
  let id: string | undefined
  let kind: Envelope['kind'] | undefined
  let [valueStart, valueEnd] = [0, 0]
  for (at = skipSpace(bytes, at + 1, end); bytes[at] === QUOTE; at = skipSpace(bytes, at + 1, end)) {
    const keyEnd = skipString(bytes, at, end)
    const key = bytes.toString('latin1', at + 1, keyEnd - 1)
    at = skipSpace(bytes, keyEnd, end)
    if (bytes[at] !== COLON) return undefined
    const from = skipSpace(bytes, at + 1, end)
    const to = skipValue(bytes, from, end)
    if (to <= from) return undefined
    if (key === 'id') {
      if (id !== undefined) return undefined
      id = bytes.toString('latin1', from, to)
    } else if (key === 'result' || key === 'error') {
      if (kind !== undefined) return undefined
      ;[kind, valueStart, valueEnd] = [key, from, to]
    } else if (key !== 'jsonrpc') return undefined
    at = skipSpace(bytes, to, end)
    if (bytes[at] !== COMMA) break
  }
  if (bytes[at] !== CLOSE_OBJECT || skipSpace(bytes, at + 1, end) !== end) return undefined
  if (id === undefined || kind === undefined || bytes[valueStart] !== OPEN_OBJECT) return undefined
  return {
    id,
    kind,
    start: valueStart,
    end: valueEnd,
    typed: kind === 'result' && hasKey(bytes, valueStart, valueEnd, 'resultType'),
  }
}

/** The id near the edge of a line that was too long to keep. Servers write it first (Python, Rust, ours) or last (the TypeScript SDK). */
export function recoverId(head: Buffer, tail: Buffer): string | undefined {
  const first = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+|"[^"\\]*")\s*,/.exec(
    head.toString('latin1'),
  )
  const last = /,\s*"id"\s*:\s*(\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail.toString('latin1'))
  return first?.[1] ?? last?.[1]
}

function hasKey(bytes: Buffer, start: number, end: number, wanted: string): boolean {
  for (let at = skipSpace(bytes, start + 1, end); bytes[at] === QUOTE; at = skipSpace(bytes, at + 1, end)) {
    const keyEnd = skipString(bytes, at, end)
    if (keyEnd - at - 2 === wanted.length && bytes.toString('latin1', at + 1, keyEnd - 1) === wanted) return true
    at = skipSpace(bytes, keyEnd, end)
    at = skipSpace(bytes, skipValue(bytes, skipSpace(bytes, at + 1, end), end), end)
    if (bytes[at] !== COMMA) return false
  }
  return false
}

function skipSpace(bytes: Buffer, at: number, end: number): number {
  for (; at < end; at++) {
    const byte = bytes[at]
    if (byte !== 32 && byte !== 10 && byte !== 13 && byte !== 9) return at
  }
  return end
}

/** `at` is on the opening quote; returns the place after the closing one. */
function skipString(bytes: Buffer, at: number, end: number): number {
  for (at++; at < end; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) at++
  }
  return end
}

function skipValue(bytes: Buffer, at: number, end: number): number {
  const first = bytes[at]
  if (first === QUOTE) return skipString(bytes, at, end)
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) {
    for (; at < end; at++) {
      const byte = bytes[at]
      if (
        byte === COMMA ||
        byte === CLOSE_OBJECT ||
        byte === CLOSE_ARRAY ||
        byte === 32 ||
        byte === 10 ||
        byte === 13 ||
        byte === 9
      )
        return at
    }
    return end
  }
  for (let depth = 0; at < end; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = skipString(bytes, at, end) - 1
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++
    else if ((byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) && --depth === 0) return at + 1
  }
  return at - 1 > end ? end : at
}
