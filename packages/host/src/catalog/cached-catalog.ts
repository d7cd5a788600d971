// What is kept of a catalog: the listing, who gave it, and when.
import { isObject, type JsonObject, sameJson } from '../base/index.ts'
import type { ServerSession } from '../protocol/index.ts'
import type { ToolListing } from './listing.ts'

/** What a server said of itself when it listed its tools. */
export interface NegotiatedIdentity {
  readonly protocolVersion: string
  readonly serverInfo: JsonObject
  readonly capabilities: JsonObject
  readonly instructions: string | undefined
}

/** A catalog that may be shown without its server. */
export interface CachedCatalog {
  readonly listing: ToolListing
  readonly identity: NegotiatedIdentity
  /** Milliseconds of the epoch. */
  readonly listedAtMs: number
}

/** Older ones are shown as stale, in milliseconds: 24 hours. */
export const STALE_AFTER_MS: number = 24 * 3_600_000
/** Older ones are not shown, in milliseconds: 7 days. */
export const DROPPED_AFTER_MS: number = 7 * 24 * 3_600_000

/** How old a catalog is in effect. A clock that was set back makes nothing older. */
export function ageOf(
  { listedAtMs }: Pick<CachedCatalog, 'listedAtMs'>,
  dateMs: number,
): 'fresh' | 'stale' | 'dropped' {
  const ageMs = dateMs - listedAtMs
  if (ageMs > DROPPED_AFTER_MS) return 'dropped'
  return ageMs > STALE_AFTER_MS ? 'stale' : 'fresh'
}

/** The identity of a session whose handshake is over. */
export function identityOf(session: ServerSession): NegotiatedIdentity {
  const { verdict, serverInfo, capabilities, instructions } = session
  return { protocolVersion: verdict.version, serverInfo, capabilities, instructions }
}

/** What differs between two identities, for a person; undefined when nothing does. */
export function identityDifference(kept: NegotiatedIdentity, live: NegotiatedIdentity): string | undefined {
  if (kept.protocolVersion !== live.protocolVersion)
    return `it spoke protocol ${kept.protocolVersion} then and speaks ${live.protocolVersion} now`
  if (!sameJson(kept.serverInfo, live.serverInfo)) return 'it introduces itself differently now'
  if (!sameJson(kept.capabilities, live.capabilities)) return 'it declares other capabilities now'
  return kept.instructions === live.instructions ? undefined : 'it gives other instructions now'
}

/** The `experimental` capability with which a server says that its catalog must not be kept; the second name is another family's. */
const CACHE_CAPABILITIES = ['convoke/tool-catalog-cache', 'codex/tool-catalog-cache'] as const

/** Does the server ask that nothing is kept of its catalog? */
export function optsOutOfCache({ experimental }: JsonObject): boolean {
  if (!isObject(experimental)) return false
  return CACHE_CAPABILITIES.some((name) => {
    const said = experimental[name]
    return isObject(said) && said['cacheable'] === false
  })
}
