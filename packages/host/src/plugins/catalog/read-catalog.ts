// What a provider answered, judged before anything is kept of it. Pure.
import { cleanLine, isObject } from '../../base/index.ts'
import type { PluginCatalog, PluginEntry } from './catalog.ts'
import { identityKey, readEntry } from './read-entry.ts'

const ENTRIES_MAX = 1_024
/** Of all entries together, as JSON. */
const CATALOG_CHARS_MAX = 1_048_576
const WARNINGS_MAX = 16
const WARNING_CHARS_MAX = 300

/**
 * A copy of what is well-formed. Entries that are not, or are over a limit, are left out with a warning, and the catalog is partial then: what they would have said is not
 * known. Of two entries for one plugin the first counts.
 * @returns undefined for an answer that is no catalog at all.
 */
export function readCatalog(raw: unknown): PluginCatalog | undefined {
  if (!isObject(raw) || !Array.isArray(raw['entries'])) return undefined
  const { entries, malformed, repeated, tooMany } = readEntries(raw['entries'])
  const counts = [
    ['left out as malformed', malformed],
    ['listed more than once', repeated],
    [`left out, over ${ENTRIES_MAX} plugins or ${CATALOG_CHARS_MAX} characters`, tooMany],
  ] as const
  const counted = counts.flatMap(([what, count]) => (count > 0 ? [`${what}: ${count}`] : []))
  return {
    entries,
    warnings: [...counted, ...readWarnings(raw['warnings'])].slice(0, WARNINGS_MAX),
    isPartial: raw['isPartial'] === true || malformed + tooMany > 0,
  }
}

interface ReadEntries {
  readonly entries: readonly PluginEntry[]
  readonly malformed: number
  readonly repeated: number
  readonly tooMany: number
}

function readEntries(raw: readonly unknown[]): ReadEntries {
  const entries = new Map<string, PluginEntry>()
  let [malformed, repeated, chars] = [0, 0, 0]
  for (const [index, one] of raw.slice(0, ENTRIES_MAX).entries()) {
    const entry = readEntry(one)
    if (entry === undefined) {
      malformed += 1
      continue
    }
    chars += JSON.stringify(entry).length
    if (chars > CATALOG_CHARS_MAX)
      return { entries: [...entries.values()], malformed, repeated, tooMany: raw.length - index }
    const key = identityKey(entry.id)
    if (entries.has(key)) repeated += 1
    else entries.set(key, entry)
  }
  return { entries: [...entries.values()], malformed, repeated, tooMany: Math.max(0, raw.length - ENTRIES_MAX) }
}

function readWarnings(raw: unknown): string[] {
  if (!Array.isArray(raw)) return []
  return raw.slice(0, WARNINGS_MAX).flatMap((text) => {
    const line = typeof text === 'string' ? cleanLine(text, WARNING_CHARS_MAX) : ''
    return line === '' ? [] : [line]
  })
}
