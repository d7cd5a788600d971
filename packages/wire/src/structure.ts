// A bound on what a parser would build. Brackets are cheap to send and dear to take: 64 MiB of them become gigabytes of objects, and a million of them inside
// each other keep the parser busy for seconds.

/**
 * Messages up to this size are parsed as they are: what they can become is bounded by their size (40 MB at worst, for a moment). Walking every page of a
 * listing byte by byte would cost as much as parsing it.
 */
export const UNCHECKED_BYTES_MAX: number = 1024 * 1024
const ELEMENTS_MAX = 4_000_000
const DEPTH_MAX = 1_000

const QUOTE = 34,
  COMMA = 44,
  OPEN_ARRAY = 91,
  BACKSLASH = 92,
  CLOSE_ARRAY = 93,
  OPEN_OBJECT = 123,
  CLOSE_OBJECT = 125
/** Beyond so many bytes of a string its end is looked for by the system's own search. */
const STRIDE_BYTES = 32

/** Why a message should not be parsed; undefined = it may be. What is inside strings does not count. */
export function structureFault(bytes: Buffer, start: number, end: number): string | undefined {
  let elements = 0
  let depth = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = stringEnd(bytes, at, end)
    else if (byte === COMMA) elements++
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      elements++
      if (++depth > DEPTH_MAX) return `is nested more than ${DEPTH_MAX} deep`
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
  }
  return elements > ELEMENTS_MAX ? `holds more than ${ELEMENTS_MAX} values` : undefined
}

/** `at` is on the opening quote; returns the place of the closing one. */
function stringEnd(bytes: Buffer, at: number, end: number): number {
  const nearEnd = Math.min(end, at + STRIDE_BYTES)
  let next = at + 1
  for (; next < nearEnd; next++) {
    const byte = bytes[next]
    if (byte === QUOTE) return next
    if (byte === BACKSLASH) next++
  }
  for (;;) {
    const quote = bytes.indexOf(QUOTE, next)
    if (quote === -1 || quote >= end) return end
    let before = quote
    while (before > next && bytes[before - 1] === BACKSLASH) before--
    if ((quote - before) % 2 === 0) return quote
    next = quote + 1
  }
}
