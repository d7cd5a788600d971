/** The number of a call in an id or token that a server sent back: numbers, and the strings that some servers make of them. NaN for anything else. */
export function callIdOf(id: unknown): number {
  if (typeof id === 'number') return id
  return typeof id === 'string' && /^[1-9]\d{0,15}$/.test(id) ? Number(id) : Number.NaN
}

/** The same for an id that is still JSON text: `7` or `"7"`. */
export function callIdInJson(text: string): number {
  return callIdOf(text.startsWith('"') ? text.slice(1, -1) : text)
}
