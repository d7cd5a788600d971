// What one server offers: its tools kept and versioned, its resources and prompts asked for when somebody wants them.
import {
  canonicalJson,
  digestHex,
  HostError,
  type HostErrorCode,
  type JsonObject,
  Lane,
  sameJson,
} from '../base/index.ts'
import type { HostEvent } from '../events/index.ts'
import type { Listing, ListKind, ListRequest, Platform, ServerSession, Subscription } from '../protocol/index.ts'
import type { CatalogCacheEntry } from './cache-entry.ts'
import { identityOf, type NegotiatedIdentity, optsOutOfCache } from './cached-catalog.ts'
import { type ServerKind, type ToolListing, toolListing } from './listing.ts'
import type { LiveMembership } from './live-scope.ts'
import { Offers } from './offers.ts'
import { ReadLock } from './read-lock.ts'
import { Refresher } from './refresher.ts'

/** What a catalog is made of. */
export interface ServerCatalogOptions {
  readonly server: string
  /** For one listing, in milliseconds. */
  readonly listTimeoutMs: number
  /** Tools of one listing. Default 2,048. */
  readonly listItemsMax?: number | undefined
  readonly platform: Platform
  readonly emit: (event: HostEvent) => void
  /** `none`: a modern server is not asked to tell about changes. */
  readonly watch: 'changes' | 'none'
  /** Hosted servers may say which connector a tool acts on. Default `ordinary`. */
  readonly kind?: ServerKind | undefined
  /** Where listings are kept beyond the connection. Absent: nowhere. */
  readonly cache?: CatalogCacheEntry | undefined
  /** `liveKey` of this connection's own scope: with whom it runs one listing. Default: with nobody. */
  readonly liveKey?: string | undefined
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
  readonly #options: Omit<ServerCatalogOptions, 'previous'>
  readonly #offers: Offers
  readonly #lock: ReadLock
  /** One refresh after the other. */
  readonly #refreshes = new Lane()
  #listing: ToolListing | undefined
  #before: ToolListing | undefined
  #identity: NegotiatedIdentity | undefined
  #revision = 0
  #listedAtMs: number | undefined
  #countTools: (() => number | undefined) | undefined
  #session: ServerSession | undefined
  #refresher: Refresher | undefined
  #subscription: Promise<Subscription | undefined> | undefined
  #problem: CatalogProblem | undefined
  /** Taken before connecting; for the first listing of the attempt. */
  #begun: number | undefined
  #peers: LiveMembership | undefined
  /** Listings are numbered when they are asked for: an older one that comes late changes nothing. */
  #lastTicket = 0
  #acceptedTicket = 0

  constructor(options: ServerCatalogOptions) {
    // The one before is not held: each would keep all that ever were.
    const { previous, ...own } = options
    this.#options = own
    this.#offers = new Offers(options.platform)
    this.#lock = new ReadLock(options.platform)
    this.#before = previous?.listing ?? previous?.before
  }

  /** What was listed last; undefined before the first listing. */
  get listing(): ToolListing | undefined {
    return this.#listing
  }
  /** What the connection before this one had listed, until this one has. */
  get before(): ToolListing | undefined {
    return this.#before
  }
  /** When the last good listing came, in milliseconds of the epoch. */
  get listedAtMs(): number | undefined {
    return this.#listedAtMs
  }
  /** What the server said of itself at the last handshake. */
  get identity(): NegotiatedIdentity | undefined {
    return this.#identity
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

  /** An attempt to connect begins: what an older one lists counts for less from now on. */
  begin(): void {
    this.#begun = this.#options.cache?.ticket()
  }

  /** The first listing of a session, or the first after it was renewed. @throws {HostError} */
  async load(session: ServerSession, request: ListRequest): Promise<void> {
    if (this.#session !== session) void session.closed.then(() => this.lost(session))
    this.#session = session
    this.#identity = identityOf(session)
    this.#offers.forget()
    this.#meet(session, this.#identity)
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
    const ticket = this.#begun
    this.#begun = undefined
    await this.#list(session, request, { which: 'first', cacheTicket: ticket })
  }

  /**
   * Lists again now, whether the server told of a change or not.
   * @returns the listing that holds then: what came, or what a newer listing brought meanwhile.
   * @throws {HostError} `SERVER_NOT_READY`, `CANCELLED`, or what the listing failed with.
   */
  async refresh(request: ListRequest = {}): Promise<ToolListing> {
    const leave = await this.#refreshes.enter(request.signal)
    try {
      const session = this.#session
      if (session === undefined) throw this.#notReady()
      await this.#list(session, { timeoutMs: this.#options.listTimeoutMs, ...request }, { which: 'again' })
      if (this.#listing === undefined) throw this.#notReady()
      return this.#listing
    } finally {
      leave()
    }
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
    this.#leavePeers()
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

  /** Before the first listing: what is kept may not be what this server lists, or must not be kept at all. */
  #meet({ capabilities }: ServerSession, identity: NegotiatedIdentity): void {
    const { cache } = this.#options
    if (!optsOutOfCache(capabilities)) return cache?.compare(identity)
    cache?.disable()
    this.#leavePeers()
  }

  async #list(session: ServerSession, request: ListRequest, { which, cacheTicket }: ListingTurn): Promise<void> {
    this.#lastTicket += 1
    const ticket = this.#lastTicket
    const kept = cacheTicket ?? this.#options.cache?.ticket()
    const isMine = (): boolean => this.#session === session && ticket >= this.#acceptedTicket
    const { listItemsMax: itemsMax } = this.#options
    const listed = await session.list('tools', itemsMax === undefined ? request : { ...request, itemsMax })
    if (!isMine()) return
    const own = this.#listingOf(listed)
    const listing = this.#publish(own, kept)
    // Calls of an earlier session have failed with it; only those of this one hold its next listing back.
    if (which === 'again' && listing !== this.#listing) await this.#lock.whenLeft()
    if (!isMine()) return
    this.#acceptedTicket = ticket
    this.#problem = undefined
    this.#listedAtMs = this.#options.platform.dateMs()
    this.#swap(listing)
  }

  /** Equal content, the same object. */
  #listingOf(listed: Listing): ToolListing {
    const before = this.#listing ?? this.#before
    if (before !== undefined && sameJson(before.raw, listed.items)) return before
    return toolListing(this.#options.server, listed, this.#options.kind)
  }

  /** Keeps a listing beyond the connection. @returns what this connection runs: its own listing, or a newer one of a peer. */
  #publish(own: ToolListing, ticket: number | undefined): ToolListing {
    const { cache, platform, liveKey = '' } = this.#options
    if (cache === undefined || ticket === undefined || this.#identity === undefined || cache.isDisabled) return own
    cache.publish(ticket, { listing: own, identity: this.#identity, listedAtMs: platform.dateMs() })
    if (cache.scope.sharing !== 'account' || liveKey === '') return own
    this.#peers ??= cache.join(peerKey(liveKey, this.#identity), (listing) => void this.#adopt(listing))
    const newest = this.#peers.publish(ticket, own)
    return this.#listing !== undefined && isSameListing(this.#listing, newest) ? this.#listing : newest
  }

  /** A connection that has everything in common with this one has listed something newer. Never rejects. */
  async #adopt(listing: ToolListing): Promise<void> {
    const session = this.#session
    if (this.#listing === undefined || isSameListing(this.#listing, listing)) return
    await this.#lock.whenLeft()
    if (this.#session === session && session !== undefined && this.#peers !== undefined) this.#swap(listing)
  }

  #leavePeers(): void {
    this.#peers?.leave()
    this.#peers = undefined
  }

  /** Publishes in one step: nobody sees a listing with the revision of another. */
  #swap(listing: ToolListing): void {
    const { server, emit } = this.#options
    const before = this.#listing ?? this.#before
    const isFirst = this.#listing === undefined
    this.#listing = listing
    this.#before = undefined
    if (before === listing) return
    if (!isFirst) this.#revision += 1
    if (listing.notes.length > 0) emit({ kind: 'tool-catalog.noted', server, notes: listing.notes })
    if (before !== undefined) emit({ kind: 'tool-catalog.changed', server, revision: listing.digest })
  }

  async #refresh(session: ServerSession): Promise<void> {
    try {
      await this.refresh()
    } catch (error) {
      if (this.#session !== session) return
      const { code, message } = HostError.is(error) ? error : { code: 'INTERNAL' as const, message: String(error) }
      this.#problem = { code, message: `${message}. The tools of the last good listing stay` }
    }
  }

  #notReady(): HostError {
    const { server } = this.#options
    return new HostError('SERVER_NOT_READY', `Server "${server}" is not connected`, { details: { server } })
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

interface ListingTurn {
  /** `again`: calls that were prepared on the listing before hold the new one back. */
  readonly which: 'first' | 'again'
  readonly cacheTicket?: number | undefined
}

/** What connections must have in common to run each other's tools: how they are set up, and what they met. */
function peerKey(liveKey: string, identity: NegotiatedIdentity): string {
  return `${liveKey}/${digestHex(canonicalJson(identity), 40)}`
}

function isSameListing(one: ToolListing, other: ToolListing): boolean {
  return one === other || sameJson(one.raw, other.raw)
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
