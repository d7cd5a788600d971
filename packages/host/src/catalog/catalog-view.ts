// One member's view of a catalog: the same listing may be shown to several generations, each with the filter and the modes of its own day.
import { type JsonObject, sameJson } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { CatalogNote } from '../events/index.ts'
import { type ToolFilter, toolFilter } from './filter.ts'
import type { ToolListing } from './listing.ts'
import type { ServerCatalog } from './server-catalog.ts'
import { memberFacts, type ToolSnapshot, toolSnapshot } from './snapshot.ts'

/** What the traits of a server decide about its catalog. */
export interface CatalogTraits {
  readonly isHosted: boolean
}

/** What a view is made of. */
export interface CatalogViewInit {
  readonly catalog: ServerCatalog
  readonly definition: ServerDefinition
  readonly traits: CatalogTraits
  /** The view before this one: what it made of a listing stays when nothing that is read of the definition has changed. */
  readonly previous?: CatalogView | undefined
}

/** What one member shows of what one server listed. Nothing here connects, asks or waits. */
export class CatalogView {
  readonly catalog: ServerCatalog
  readonly definition: ServerDefinition
  /** Does the member's configuration allow the tool of this raw name? */
  readonly allows: ToolFilter
  #live: { readonly listing: ToolListing; readonly snapshot: ToolSnapshot } | undefined

  constructor({ catalog, definition, previous }: CatalogViewInit) {
    this.catalog = catalog
    this.definition = definition
    this.allows = toolFilter(definition.tools)
    if (previous !== undefined && hasSamePolicy(previous.definition, definition)) this.#live = previous.#live
  }

  /** The tools of the connection's own last listing; undefined before the first one. Made once per listing. */
  get live(): ToolSnapshot | undefined {
    const { listing } = this.catalog
    if (listing === undefined) return undefined
    if (this.#live?.listing !== listing)
      this.#live = { listing, snapshot: toolSnapshot(listing, memberFacts(this.definition, 'live'), this.allows) }
    return this.#live.snapshot
  }

  /** The tools of an earlier listing, also of another process; undefined when none is kept. */
  get cached(): ToolSnapshot | undefined {
    return undefined
  }

  /** Is there a cached tool that passes the filter and may be shown to a model? */
  get hasVisibleCachedTools(): boolean {
    return this.cached?.tools.some(({ visibleToModel }) => visibleToModel) === true
  }

  /** What the server said of itself when its catalog was cached. */
  get serverInfo(): JsonObject | undefined {
    return undefined
  }

  /** What was left out, cleaned or cut: of the live tools if there are any, else of the cached ones. */
  get notes(): readonly CatalogNote[] {
    return (this.live ?? this.cached)?.notes ?? []
  }
}

/** Does everything that a snapshot takes from a definition agree? */
function hasSamePolicy(one: ServerDefinition, other: ServerDefinition): boolean {
  if (one === other) return true
  return sameJson(one.tools, other.tools) && sameJson(memberFacts(one, 'live'), memberFacts(other, 'live'))
}
