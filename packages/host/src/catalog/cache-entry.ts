// What is kept of one catalog, and who may replace it.
import type { CacheScope } from './cache-scope.ts'
import { ageOf, type CachedCatalog, identityDifference, type NegotiatedIdentity } from './cached-catalog.ts'
import { type LiveMembership, LiveScopes, type PeerListener } from './live-scope.ts'

/** What an entry tells the cache it is in. */
export interface CatalogCacheEntryOptions {
  readonly scope: CacheScope
  /** Milliseconds of the epoch. */
  dateMs(): number
  /** The snapshot was replaced or taken away. */
  onReplaced(entry: CatalogCacheEntry): void
}

/** Whoever listens longer than its server lives has forgotten to stop. */
const LISTENERS_MAX = 10_000

/** The place of one catalog. It is the same object for everybody who shares the place. */
export class CatalogCacheEntry {
  readonly scope: CacheScope
  readonly #options: CatalogCacheEntryOptions
  readonly #listeners = new Set<() => void>()
  readonly #live = new LiveScopes()
  #snapshot: CachedCatalog | undefined
  #staleBecause: string | undefined
  #lastTicket = 0
  #acceptedTicket = 0
  #revision = 0
  #isDisabled = false
  #grace: { readonly graceMs: number; readonly deadlineMs: number } | undefined

  constructor(options: CatalogCacheEntryOptions) {
    this.scope = options.scope
    this.#options = options
  }

  /** What was listed last, if that is not too long ago. */
  get snapshot(): CachedCatalog | undefined {
    const known = this.#snapshot
    return known === undefined || ageOf(known, this.#options.dateMs()) === 'dropped' ? undefined : known
  }

  /** Why the snapshot may not be what the server lists today; undefined while nothing speaks against it. */
  get staleBecause(): string | undefined {
    if (this.snapshot === undefined) return undefined
    if (this.#staleBecause !== undefined) return this.#staleBecause
    return ageOf(this.snapshot, this.#options.dateMs()) === 'stale' ? 'it was listed more than 24 hours ago' : undefined
  }

  /** One more with every change of the snapshot. */
  get revision(): number {
    return this.#revision
  }

  /** Nothing is kept here any more: the server does not want it. */
  get isDisabled(): boolean {
    return this.#isDisabled
  }

  /** To be taken before connecting: of two listings the one whose ticket was taken later counts, whichever arrives first. */
  ticket(): number {
    this.#lastTicket += 1
    return this.#lastTicket
  }

  /** @returns whether it was taken; an older ticket, and a disabled entry, take nothing. */
  publish(ticket: number, catalog: CachedCatalog): boolean {
    if (this.#isDisabled || ticket <= this.#acceptedTicket) return false
    this.#acceptedTicket = ticket
    this.#replace(catalog)
    return true
  }

  /** What an earlier process kept; nothing that was listed since is replaced. */
  restore(catalog: CachedCatalog): void {
    if (this.#isDisabled || this.#acceptedTicket > 0 || this.#snapshot !== undefined) return
    this.#snapshot = catalog
    this.#told()
  }

  /** Takes the catalog away for good. */
  disable(): void {
    if (this.#isDisabled) return
    this.#isDisabled = true
    this.#replace(undefined)
  }

  /** A server is there: if it is not the one that was kept, what was kept is stale. */
  compare(identity: NegotiatedIdentity): void {
    if (this.#snapshot === undefined) return
    const because = identityDifference(this.#snapshot.identity, identity)
    if (because === this.#staleBecause) return
    this.#staleBecause = because
    this.#told()
  }

  /**
   * Until when everybody who waits for this server waits, in monotonic milliseconds: one grace for all, however many ask. Another length is
   * another grace, a published catalog ends it.
   * @returns undefined when the entry has no say, because it has a catalog or wants none: then the set's own deadline holds.
   */
  graceDeadlineMs(graceMs: number, nowMs: number): number | undefined {
    if (this.#isDisabled || this.snapshot !== undefined) return undefined
    if (this.#grace?.graceMs !== graceMs) this.#grace = { graceMs, deadlineMs: nowMs + graceMs }
    return this.#grace.deadlineMs
  }

  /** Joins the connections that run each other's tools. */
  join(key: string, listener: PeerListener): LiveMembership {
    return this.#live.join(key, listener)
  }

  /**
   * Told after every change of the snapshot and of what is said about it.
   * @returns how to stop listening.
   * @throws {RangeError} for more than 10,000 listeners.
   */
  onChange(listener: () => void): () => void {
    if (this.#listeners.size >= LISTENERS_MAX) throw new RangeError(`more than ${LISTENERS_MAX} listeners`)
    const mine = (): void => listener()
    this.#listeners.add(mine)
    return () => void this.#listeners.delete(mine)
  }

  #replace(snapshot: CachedCatalog | undefined): void {
    this.#snapshot = snapshot
    this.#staleBecause = undefined
    this.#grace = undefined
    this.#told()
    this.#options.onReplaced(this)
  }

  #told(): void {
    this.#revision += 1
    for (const listener of [...this.#listeners]) listener()
  }
}
