// A kept catalog as text. What is read was written by this host, into a directory that is its user's alone: it is looked at for its shape, and its texts
// are not cleaned a second time. Pure.
import { isObject, type JsonObject } from '../base/index.ts'
import type { CatalogNote } from '../events/index.ts'
import { withoutAnnotations } from './annotations.ts'
import type { CacheScope } from './cache-scope.ts'
import type { CachedCatalog, NegotiatedIdentity } from './cached-catalog.ts'
import { cleanListing, NOTES_MAX } from './listing.ts'

/** Another number, another shape, or other rules for cleaning: older files are ignored. */
const FILE_VERSION = 1
/** More tools are in no listing. */
const TOOLS_MAX = 8_192

/** A file's content, or why it is not used. */
export type ReadCatalog =
  | { readonly kind: 'read'; readonly catalog: CachedCatalog }
  | { readonly kind: 'ignored'; readonly because: string }

/** The text of a catalog. Annotations of ordinary servers are left out: only a live server may speak for the harmlessness of its tools. */
export function catalogText({ sharing }: CacheScope, { listing, identity, listedAtMs }: CachedCatalog): string {
  const { server } = listing
  const kept = sharing === 'account' ? listing : withoutAnnotations(listing)
  return JSON.stringify({
    version: FILE_VERSION,
    server,
    listedAtMs,
    identity,
    notes: listing.notes.map(({ item, kind, reason }) => ({ item, kind, reason })),
    tools: kept.tools.map(({ definition }) => definition),
  })
}

/** The catalog in a text. */
export function readCatalog({ server, sharing }: CacheScope, text: string): ReadCatalog {
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    return { kind: 'ignored', because: 'it is no JSON' }
  }
  if (!isObject(content)) return { kind: 'ignored', because: 'it is no object' }
  if (content['version'] !== FILE_VERSION) return { kind: 'ignored', because: 'another version of Convoke wrote it' }
  if (sharing === 'own' && content['server'] !== server) return { kind: 'ignored', because: 'it is of another server' }
  const { listedAtMs, tools } = content
  const identity = identityIn(content['identity'])
  const notes = notesIn(server, content['notes'])
  if (typeof listedAtMs !== 'number' || identity === undefined || notes === undefined || !areTools(tools))
    return { kind: 'ignored', because: 'its shape is wrong' }
  return { kind: 'read', catalog: { listing: cleanListing(server, tools, notes), identity, listedAtMs } }
}

function areTools(tools: unknown): tools is readonly JsonObject[] {
  return Array.isArray(tools) && tools.length <= TOOLS_MAX && tools.every(isTool)
}

function isTool(tool: unknown): boolean {
  return isObject(tool) && typeof tool['name'] === 'string' && isObject(tool['inputSchema'])
}

function identityIn(value: unknown): NegotiatedIdentity | undefined {
  if (!isObject(value)) return undefined
  const { protocolVersion, serverInfo, capabilities, instructions } = value
  if (typeof protocolVersion !== 'string' || !isObject(serverInfo) || !isObject(capabilities)) return undefined
  if (instructions !== undefined && typeof instructions !== 'string') return undefined
  return { protocolVersion, serverInfo, capabilities, instructions }
}

const KINDS: ReadonlySet<unknown> = new Set<CatalogNote['kind']>(['rejected', 'cleaned', 'cut'])

function notesIn(server: string, value: unknown): readonly CatalogNote[] | undefined {
  if (!Array.isArray(value) || value.length > NOTES_MAX) return undefined
  const notes: CatalogNote[] = []
  for (const note of value) {
    if (!isObject(note)) return undefined
    const { item, kind, reason } = note
    if (typeof item !== 'string' || typeof reason !== 'string' || !KINDS.has(kind)) return undefined
    notes.push({ server, item, kind: kind as CatalogNote['kind'], reason })
  }
  return notes
}
