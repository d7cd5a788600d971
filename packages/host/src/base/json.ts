/** A JSON object whose members have not been looked at. */
export type JsonObject = Record<string, unknown>

/** Is `value` a JSON object (not null, not a list)? */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
