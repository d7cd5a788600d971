// Server text on its way to people and models: hidden characters are taken out of every string of a value.
import { cleanText, type JsonObject } from '@convoke/host'

const DEPTH_MAX = 32

/** The value without hidden characters in its strings; what is nested deeper than 32 levels is left out. */
export function cleanValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return cleanText(value).text
  if (typeof value !== 'object' || value === null) return value
  if (depth >= DEPTH_MAX) return null
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [cleanText(key).text, cleanValue(inner, depth + 1)]),
  )
}

/** A progress notification with a clean message. */
export function cleanProgress(progress: JsonObject): JsonObject {
  const { message } = progress
  return typeof message === 'string' ? { ...progress, message: cleanText(message).text } : progress
}
