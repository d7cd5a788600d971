/** Deeper values are refused, so that hostile nesting cannot exhaust the stack. */
const DEPTH_MAX = 200

/**
 * JSON with the keys of every object in code-unit order: equal content, equal text. Members that are `undefined` are left out.
 * @throws {RangeError} for values nested deeper than 200 levels.
 */
export function canonicalJson(value: unknown): string {
  return write(value, 0)
}

function write(value: unknown, depth: number): string {
  if (depth > DEPTH_MAX) throw new RangeError(`nested deeper than ${DEPTH_MAX} levels`)
  if (Array.isArray(value)) return `[${value.map((item) => write(item ?? null, depth + 1)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, member]) => `${JSON.stringify(key)}:${write(member, depth + 1)}`)
  return `{${members.join(',')}}`
}

/** Do two JSON values have the same content? Stops at the first difference; key order does not matter. */
export function sameJson(one: unknown, other: unknown, depth = 0): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (depth > DEPTH_MAX || Array.isArray(one) !== Array.isArray(other)) return false
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => sameJson(item, other[index], depth + 1))
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(other).length &&
    keys.every(
      (key) =>
        Object.hasOwn(other, key) &&
        sameJson((one as Record<string, unknown>)[key], (other as Record<string, unknown>)[key], depth + 1),
    )
  )
}
