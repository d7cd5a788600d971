// What one server offers: its tools kept and versioned, its resources and prompts asked for when somebody wants them.
import { HostError, type HostErrorCode, type JsonObject, sameJson } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { HostEvent } from '../events/index.ts'
import type { Listing, ListKind, ListRequest, Platform, ServerSession, Subscription } from '../protocol/index.ts'
import { type ToolFilter, toolFilter } from './filter.ts'
import { Offers } from './offers.ts'
import { Refresher } from './refresher.ts'
import { type ToolSnapshot, toolSnapshot } from './snapshot.ts'

/** What a catalog is made of. */
export interface ServerCatalogOptions {
  readonly definition: ServerDefinition
  readonly platform: Platform
  readonly emit: (event: HostEvent) => void
  /** `none`: a modern server is not asked to tell about changes. */
  readonly watch: 'changes' | 'none'
}

interface CatalogProblem {
  readonly code: HostErrorCode
  readonly message: string
}

/** The catalog of one server. It outlives the sessions that feed it; only the session that fed it last may change it. */
export class ServerCatalog {
  readonly allows: ToolFilter
  readonly #options: ServerCatalogOptions
  readonly #offers: Offers
  #snapshot: ToolSnapshot | undefined
  #session: ServerSession | undefined
  #refresher: Refresher | undefined
  #subscription: Promise<Subscription | undefined> | undefined
  #problem: CatalogProblem | undefined
  /** Listings are numbered when they are asked for: an older one that comes late changes nothing. */
  #lastTicket = 0
  #acceptedTicket = 0

  constructor(options: ServerCatalogOptions) {
    this.#options = options
    this.allows = toolFilter(options.definition.tools)
    this.#offers = new Offers(options.platform)
  }

  /** The tools as they were listed last; undefined before the first listing. */
  get snapshot(): ToolSnapshot | undefined {
    return this.#snapshot
  }
  get toolCount(): number | undefined {
    return this.#snapshot?.tools.length
  }
  /** Why the catalog may be out of date. */
  get problem(): CatalogProblem | undefined {
    return this.#problem
  }

  /** The first listing of a session. @throws {HostError} */
  async load(session: ServerSession, request: ListRequest): Promise<void> {
    this.#session = session
    this.#offers.forget()
    this.#refresher?.stop()
    // From now on: a list that changes while its pages are fetched is asked for again.
    this.#refresher = new Refresher({
      platform: this.#options.platform,
      refresh: () => this.#refresh(session),
      onPause: (refreshes, ms) => this.#pause(refreshes, ms),
      onResume: () => {
        this.#problem = undefined
      },
    })
    await this.#list(session, request)
  }

  /** The server is ready: a modern one is asked to tell about changes. */
  watch(session: ServerSession): void {
    if (this.#session !== session) return
    if (this.#options.watch === 'changes' && session.era === 'modern') this.#subscribe(session)
  }

  /** A notice of the server. Those about catalogs are answered here. */
  notified(session: ServerSession, method: string, _params: JsonObject): void {
    if (this.#session !== session) return
    const server = this.#options.definition.name
    switch (method) {
      case 'notifications/tools/list_changed':
        this.#refresher?.notice()
        break
      case 'notifications/resources/list_changed':
        this.#offers.forget('resources', 'resourceTemplates')
        this.#options.emit({ kind: 'resource-catalog.changed', server })
        break
      case 'notifications/prompts/list_changed':
        this.#offers.forget('prompts')
        this.#options.emit({ kind: 'prompt-catalog.changed', server })
        break
    }
  }

  /** The session is over. What was listed stays known. */
  lost(session: ServerSession): void {
    if (this.#session !== session) return
    this.#session = undefined
    this.#refresher?.stop()
    this.#refresher = undefined
    this.#subscription = undefined // it ended with its session
    this.#problem = undefined
    this.#offers.forget()
  }

  /**
   * Resources, templates or prompts of a session, no older than `maxAgeMs`. Callers that ask together share one listing.
   * @throws {HostError}
   */
  offered(session: ServerSession, kind: Exclude<ListKind, 'tools'>, maxAgeMs: number): Promise<Listing> {
    const timeoutMs = this.#options.definition.startupTimeoutMs
    return this.#offers.get({ session, kind, maxAgeMs, timeoutMs })
  }

  async #list(session: ServerSession, request: ListRequest): Promise<void> {
    this.#lastTicket += 1
    const ticket = this.#lastTicket
    const listing = await session.list('tools', request)
    if (this.#session !== session || ticket < this.#acceptedTicket) return
    this.#acceptedTicket = ticket
    this.#problem = undefined
    this.#accept(listing)
  }

  #accept(listing: Listing): void {
    const { definition, emit } = this.#options
    if (this.#snapshot !== undefined && sameJson(this.#snapshot.raw, listing.items)) return
    const snapshot = toolSnapshot(definition.name, listing, this.allows)
    const isFirst = this.#snapshot === undefined
    this.#snapshot = snapshot
    const server = definition.name
    if (snapshot.notes.length > 0) emit({ kind: 'tool-catalog.noted', server, notes: snapshot.notes })
    if (!isFirst) emit({ kind: 'tool-catalog.changed', server, revision: snapshot.revision })
  }

  async #refresh(session: ServerSession): Promise<void> {
    const { definition } = this.#options
    try {
      await this.#list(session, { timeoutMs: definition.startupTimeoutMs })
    } catch (error) {
      if (this.#session !== session) return
      const { code, message } = HostError.is(error) ? error : { code: 'INTERNAL' as const, message: String(error) }
      this.#problem = { code, message: `${message}. The tools of the last good listing stay` }
    }
  }

  #pause(refreshes: number, ms: number): void {
    const { name } = this.#options.definition
    this.#problem = {
      code: 'CATALOG_STORM',
      message: `Server "${name}" said ${refreshes} times within a minute that its tools changed; it is not asked again for ${ms} ms`,
    }
  }

  /** Only a notice channel is lost when this fails: the server may offer none. */
  #subscribe(session: ServerSession): void {
    const wanted = changesToldBy(session.capabilities)
    if (wanted === undefined) return
    this.#subscription = session.subscribe(wanted).catch(() => undefined)
    void this.#subscription.then((subscription) => {
      if (this.#session !== session) void subscription?.close().catch(() => {})
    })
  }
}

/** What a modern server can tell about; undefined when nothing. */
function changesToldBy(capabilities: JsonObject): Parameters<ServerSession['subscribe']>[0] | undefined {
  const tells = (name: string): boolean => (capabilities[name] as JsonObject | undefined)?.['listChanged'] === true
  const filter = {
    ...(tells('tools') ? { toolsListChanged: true } : {}),
    ...(tells('resources') ? { resourcesListChanged: true } : {}),
    ...(tells('prompts') ? { promptsListChanged: true } : {}),
  }
  return Object.keys(filter).length === 0 ? undefined : filter
}
