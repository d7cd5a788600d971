// One member's view of a catalog: the same listing may be shown to several generations, each with the filter and the modes of its own day.
import { type JsonObject, sameJson } from '../base/index.ts'
import type { ServerDefinition, ServerTraits } from '../config/index.ts'
import type { CatalogNote } from '../events/index.ts'
import { withoutAnnotations, withoutReadOnlyHint } from './annotations.ts'
import type { CatalogCacheEntry } from './cache-entry.ts'
import { type ToolFilter, toolFilter } from './filter.ts'
import type { ToolListing } from './listing.ts'
import type { ServerCatalog } from './server-catalog.ts'
import { type Attribution, NO_ATTRIBUTION } from './shaping.ts'
import { memberFacts, type ToolSnapshot, toolSnapshot } from './snapshot.ts'

/** What the traits of a server decide about its catalog. */
export type CatalogTraits = Pick<ServerTraits, 'isHosted'>

/** What a view is made of. */
export interface CatalogViewInit {
  readonly catalog: ServerCatalog
  readonly definition: ServerDefinition
  readonly traits: CatalogTraits
  /** Where the catalog is kept. Absent: nowhere. */
  readonly cache?: CatalogCacheEntry | undefined
  /** Why it is not kept. */
  readonly uncachedBecause?: string | undefined
  /** Which plugins use what. Default: what the definition itself says. */
  readonly attribution?: Attribution | undefined
  /** The view before this one: what it made of a listing stays when nothing that is read of the definition has changed. */
  readonly previous?: CatalogView | undefined
}

interface Made {
  readonly listing: ToolListing
  readonly snapshot: ToolSnapshot
  /** The same listing as others are to see it, who know more of plugins. */
  readonly attributed: WeakMap<Attribution, ToolSnapshot>
}

/** What one member shows of what one server listed. Nothing here connects, asks or waits. */
export class CatalogView {
  readonly catalog: ServerCatalog
  readonly definition: ServerDefinition
  readonly traits: CatalogTraits
  readonly cache: CatalogCacheEntry | undefined
  /** Why the catalog is not kept; undefined when it is. */
  readonly uncachedBecause: string | undefined
  /** Does the member's configuration allow the tool of this raw name? */
  readonly allows: ToolFilter
  readonly #given: Attribution | undefined
  readonly #attribution: Attribution
  #live: Made | undefined
  #cached: Made | undefined

  constructor(init: CatalogViewInit) {
    const { catalog, definition, traits, cache, previous } = init
    this.catalog = catalog
    this.definition = definition
    this.traits = traits
    this.cache = cache
    this.uncachedBecause = cache === undefined ? init.uncachedBecause : undefined
    this.allows = toolFilter(definition.tools)
    this.#given = init.attribution
    this.#attribution = init.attribution ?? ownAttribution(definition)
    if (previous === undefined || previous.#given !== init.attribution || !hasSamePolicy(previous, init)) return
    this.#live = previous.#live
    this.#cached = previous.#cached
  }

  /** The tools of the connection's own last listing; undefined before the first one. Made once per listing. */
  get live(): ToolSnapshot | undefined {
    return this.#madeLive()?.snapshot
  }

  #madeLive(): Made | undefined {
    const { listing, identity } = this.catalog
    if (listing === undefined) return undefined
    if (this.#live?.listing !== listing) this.#live = this.#made(listing, 'live', identity?.instructions)
    return this.#live
  }

  /**
   * The tools of an earlier listing, also of another process or of another connection of the same account; undefined when none is kept. Whoever
   * took it may go on with it when it expires, and may not when `isCacheDisabled` becomes true.
   */
  get cached(): ToolSnapshot | undefined {
    const kept = this.cache?.snapshot
    if (this.cache === undefined || kept === undefined) return undefined
    const { sharing } = this.cache.scope
    // What is said to be harmless may have changed since; what is said to be harmful still counts where it was kept.
    const listing = sharing === 'account' ? withoutReadOnlyHint(kept.listing) : withoutAnnotations(kept.listing)
    if (this.#cached?.listing !== listing) this.#cached = this.#made(listing, 'cached', kept.identity.instructions)
    return this.#cached.snapshot
  }

  /** `snapshot`, which is one of this view, with what somebody knows of plugins besides. Made once for each who knows. */
  attributed(snapshot: ToolSnapshot, attribution: Attribution): ToolSnapshot {
    const made = [this.#live, this.#cached].find((one) => one?.snapshot === snapshot)
    if (made === undefined) return snapshot
    let known = made.attributed.get(attribution)
    if (known === undefined) {
      const { facts } = snapshot
      known = toolSnapshot(made.listing, {
        facts,
        allows: this.allows,
        attribution: joined(this.#attribution, attribution),
      })
      made.attributed.set(attribution, known)
    }
    return known
  }

  /** For looking around, never for calling: what the account lists by now for a hosted server, else the own tools, else the cached ones. */
  get discovered(): ToolSnapshot | undefined {
    const { cache, catalog } = this
    const isOther = cache?.scope.sharing === 'account' && cache.snapshot?.listing !== catalog.listing
    return isOther ? (this.cached ?? this.live) : (this.live ?? this.cached)
  }

  /** Is there a cached tool that passes the filter and may be shown to a model? */
  get hasVisibleCachedTools(): boolean {
    return this.cached?.tools.some(({ visibleToModel }) => visibleToModel) === true
  }

  /** The server asked that nothing is kept of its catalog. */
  get isCacheDisabled(): boolean {
    return this.cache?.isDisabled === true
  }

  /** When the cached catalog was listed, in milliseconds of the epoch. */
  get cachedAtMs(): number | undefined {
    return this.cache?.snapshot?.listedAtMs
  }

  /** Why the cached catalog may not be what the server lists today. */
  get staleBecause(): string | undefined {
    return this.cache?.staleBecause
  }

  /** What the server said of itself when its catalog was cached. */
  get serverInfo(): JsonObject | undefined {
    return this.cache?.snapshot?.identity.serverInfo
  }

  /** What was left out, cleaned or cut: of the live tools if there are any, else of the cached ones. */
  get notes(): readonly CatalogNote[] {
    return (this.live ?? this.cached)?.notes ?? []
  }

  #made(listing: ToolListing, state: 'live' | 'cached', instructions: string | undefined): Made {
    const facts = memberFacts(this.definition, { state, isHosted: this.traits.isHosted, instructions })
    const snapshot = toolSnapshot(listing, { facts, allows: this.allows, attribution: this.#attribution })
    return { listing, snapshot, attributed: new WeakMap() }
  }
}

/** Both know; a connector is shown only where both show it. */
function joined(own: Attribution, other: Attribution): Attribution {
  const both = (one: readonly string[], more: readonly string[]): readonly string[] => [...new Set([...one, ...more])]
  return {
    pluginsOfServer: (server) => both(own.pluginsOfServer(server), other.pluginsOfServer(server)),
    pluginsOfConnector: (id) => both(own.pluginsOfConnector(id), other.pluginsOfConnector(id)),
    allowsConnector: (id) => own.allowsConnector(id) && other.allowsConnector(id),
  }
}

function ownAttribution({ plugin }: ServerDefinition): Attribution {
  return plugin === undefined ? NO_ATTRIBUTION : { ...NO_ATTRIBUTION, pluginsOfServer: () => [plugin.displayName] }
}

/** Does everything that a snapshot takes from a member agree? */
function hasSamePolicy(previous: CatalogView, { definition, traits }: CatalogViewInit): boolean {
  if (previous.traits.isHosted !== traits.isHosted) return false
  const { definition: before } = previous
  if (before === definition) return true
  const facts = { state: 'live', isHosted: traits.isHosted, instructions: undefined } as const
  return (
    sameJson(before.tools, definition.tools) &&
    sameJson(before.plugin, definition.plugin) &&
    sameJson(memberFacts(before, facts), memberFacts(definition, facts))
  )
}
