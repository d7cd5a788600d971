// A bound on what a parser would build. Brackets are cheap to send and dear to keep: 64 MiB of them would become gigabytes of objects.

/** Messages up to this size are parsed as they are: what they can become is bounded by their size. */
export const UNCHECKED_BYTES_MAX: number = 4 * 1024 * 1024
const ELEMENTS_MAX = 4_000_000

const COMMA = 44,
  OPEN_ARRAY = 91,
  OPEN_OBJECT = 123,
  QUOTE = 34,
  BACKSLASH = 92

/** True: more values than a message may hold. Text inside strings does not count. */
export function isTooStructured(bytes: Buffer, start: number, end: number): boolean {
  let elements = 0
  let inString = false
  for (let at = start; at < end; at++) {
    const byte = bytes[at]
    if (inString) {
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === COMMA || byte === OPEN_ARRAY || byte === OPEN_OBJECT) elements++
  }
  return elements > ELEMENTS_MAX
}
