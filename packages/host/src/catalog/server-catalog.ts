// What one server offers: its tools kept and versioned, its resources and prompts asked for when somebody wants them.
import { HostError, type HostErrorCode, type JsonObject, sameJson } from '../base/index.ts'
import type { HostEvent } from '../events/index.ts'
import type { Listing, ListKind, ListRequest, Platform, ServerSession, Subscription } from '../protocol/index.ts'
import { type ToolListing, toolListing } from './listing.ts'
import { Offers } from './offers.ts'
import { ReadLock } from './read-lock.ts'
import { Refresher } from './refresher.ts'

/** What a catalog is made of. */
export interface ServerCatalogOptions {
  readonly server: string
  /** For one listing, in milliseconds. */
  readonly listTimeoutMs: number
  readonly platform: Platform
  readonly emit: (event: HostEvent) => void
  /** `none`: a modern server is not asked to tell about changes. */
  readonly watch: 'changes' | 'none'
  /** The catalog of the connection that this one's connection replaces: equal tools are no change. */
  readonly previous?: ServerCatalog | undefined
}

interface CatalogProblem {
  readonly code: HostErrorCode
  readonly message: string
}

/**
 * What one connection lists, before anybody's filter. It outlives the sessions that feed it; only the session that fed it last may change
 * it. The object itself is its identity: together with `revision` it says whether a prepared call still means what was shown.
 */
export class ServerCatalog {
  readonly #options: ServerCatalogOptions
  readonly #offers: Offers
  readonly #lock: ReadLock
  #listing: ToolListing | undefined
  #before: ToolListing | undefined
  #revision = 0
  #countTools: (() => number | undefined) | undefined
  #session: ServerSession | undefined
  #refresher: Refresher | undefined
  #subscription: Promise<Subscription | undefined> | undefined
  #problem: CatalogProblem | undefined
  /** Listings are numbered when they are asked for: an older one that comes late changes nothing. */
  #lastTicket = 0
  #acceptedTicket = 0

  constructor(options: ServerCatalogOptions) {
    this.#options = options
    this.#offers = new Offers(options.platform)
    this.#lock = new ReadLock(options.platform)
    this.#before = options.previous?.listing ?? options.previous?.before
  }

  /** What was listed last; undefined before the first listing. */
  get listing(): ToolListing | undefined {
    return this.#listing
  }
  /** What the connection before this one had listed, until this one has. */
  get before(): ToolListing | undefined {
    return this.#before
  }
  /** 0 for the first listing, one more whenever a later one differs in content. */
  get revision(): number {
    return this.#revision
  }
  /** Tools as the published member counts them: after its filter. */
  get toolCount(): number | undefined {
    return this.#countTools === undefined ? this.#listing?.tools.length : this.#countTools()
  }
  /** Says how the published member counts the tools; the one that was published last counts. */
  countWith(countTools: () => number | undefined): void {
    this.#countTools = countTools
  }
  /**
   * Reads the catalog: while it is read, a refresh waits with its new listing, for at most 10 s. Never waits itself.
   * @returns what ends the reading.
   */
  read(): Promise<() => void> {
    return Promise.resolve(this.#lock.read())
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
    await this.#list(session, request, 'first')
  }

  /** The server is ready: a modern one is asked to tell about changes. */
  watch(session: ServerSession): void {
    if (this.#session !== session) return
    if (this.#options.watch === 'changes' && session.era === 'modern') this.#subscribe(session)
  }

  /** A notice of the server. Those about catalogs are answered here. */
  notified(session: ServerSession, method: string, _params: JsonObject): void {
    if (this.#session !== session) return
    const { server } = this.#options
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
    const timeoutMs = this.#options.listTimeoutMs
    return this.#offers.get({ session, kind, maxAgeMs, timeoutMs })
  }

  async #list(session: ServerSession, request: ListRequest, which: 'first' | 'again'): Promise<void> {
    this.#lastTicket += 1
    const ticket = this.#lastTicket
    const isMine = (): boolean => this.#session === session && ticket >= this.#acceptedTicket
    const listing = await session.list('tools', request)
    if (!isMine()) return
    // Calls of an earlier session have failed with it; only those of this one hold its next listing back.
    if (which === 'again' && this.#differs(listing)) await this.#lock.whenLeft()
    if (!isMine()) return
    this.#acceptedTicket = ticket
    this.#problem = undefined
    this.#accept(listing)
  }

  #differs({ items }: Listing): boolean {
    return this.#listing === undefined || !sameJson(this.#listing.raw, items)
  }

  /** Publishes in one step: nobody sees a listing with the revision of another. */
  #accept(listed: Listing): void {
    if (!this.#differs(listed)) return
    const { server, emit } = this.#options
    const before = this.#listing ?? this.#before
    const isSame = before !== undefined && sameJson(before.raw, listed.items)
    const listing = isSame ? before : toolListing(server, listed)
    if (this.#listing !== undefined) this.#revision += 1
    this.#listing = listing
    this.#before = undefined
    if (isSame) return
    if (listing.notes.length > 0) emit({ kind: 'tool-catalog.noted', server, notes: listing.notes })
    if (before !== undefined) emit({ kind: 'tool-catalog.changed', server, revision: listing.digest })
  }

  async #refresh(session: ServerSession): Promise<void> {
    const { listTimeoutMs: timeoutMs } = this.#options
    try {
      await this.#list(session, { timeoutMs }, 'again')
    } catch (error) {
      if (this.#session !== session) return
      const { code, message } = HostError.is(error) ? error : { code: 'INTERNAL' as const, message: String(error) }
      this.#problem = { code, message: `${message}. The tools of the last good listing stay` }
    }
  }

  #pause(refreshes: number, ms: number): void {
    this.#problem = {
      code: 'CATALOG_STORM',
      message: `Server "${this.#options.server}" said ${refreshes} times within a minute that its tools changed; it is not asked again for ${ms} ms`,
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
