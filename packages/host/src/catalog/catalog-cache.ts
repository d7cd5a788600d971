// The catalogs of all servers beyond the life of their connections: in memory by use, and on disk by age.
import { BoundedList } from '../base/index.ts'
import type { Platform, TimerHandle } from '../protocol/index.ts'
import type { KeyValueStore, StoreLimits } from '../store/index.ts'
import { CatalogCacheEntry } from './cache-entry.ts'
import type { CacheScope } from './cache-scope.ts'
import { ageOf, type CachedCatalog } from './cached-catalog.ts'
import { catalogText, readCatalog } from './catalog-file.ts'

/** What a {@link CatalogCache} is made of. */
export interface CatalogCacheOptions {
  readonly platform: Pick<Platform, 'dateMs' | 'setTimer' | 'clearTimer'>
  /** Where catalogs outlive the process. Absent: in memory only. Its limits should be {@link CATALOG_STORE_LIMITS}. */
  readonly store?: KeyValueStore | undefined
  /** Entries in memory; never fewer than were loaded at once. Default 256. */
  readonly entriesMax?: number
}

/** A kept catalog that is not used, and why. */
export interface CacheProblem {
  readonly server: string
  readonly because: string
}

/** Entries in memory. */
const ENTRIES_MAX = 256
/** What the disk holds; the catalog that was written longest ago goes first. */
export const CATALOG_STORE_LIMITS: StoreLimits = {
  valueBytesMax: 32 * 1024 * 1024,
  totalBytesMax: 64 * 1024 * 1024,
  keysMax: 1_024,
  whenFull: 'drop-oldest',
}
/** Catalogs that come one after the other are written together, in milliseconds. */
const WRITE_DELAY_MS = 1_000
/** A catalog that has not changed is written again after so long, in milliseconds: its age counts from its last listing. */
const REWRITE_AFTER_MS = 3_600_000
const READ_AT_ONCE = 64
const PROBLEMS_MAX = 100

interface Slot {
  readonly entry: CatalogCacheEntry
  /** It was looked for on disk: that happens once. */
  isLoaded: boolean
  /** What the disk holds, without its time. */
  written: { readonly catalog: CachedCatalog } | undefined
}

/** Finds the entry of a place. Entries that somebody still holds stay what they are when the cache forgets them. */
export class CatalogCache {
  readonly #options: CatalogCacheOptions
  readonly #slots = new Map<string, Slot>()
  readonly #environments = new WeakMap<object, number>()
  readonly #waiting = new Set<Slot>()
  readonly #problems = new BoundedList<CacheProblem>(PROBLEMS_MAX)
  #entriesMax: number
  #environmentCount = 0
  #timer: TimerHandle | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(options: CatalogCacheOptions) {
    this.#options = options
    this.#entriesMax = options.entriesMax ?? ENTRIES_MAX
  }

  /** Kept catalogs that were found and not used; the first 100. */
  get problems(): readonly CacheProblem[] {
    return this.#problems.items
  }

  /** The entry of a place; made if there is none. Asking for it counts as a use. */
  entry(scope: CacheScope): CatalogCacheEntry {
    return this.#slot(scope).entry
  }

  /** Brings what the disk keeps of these places into memory, side by side. Never rejects: what cannot be read is not there. */
  async load(scopes: readonly CacheScope[]): Promise<void> {
    this.#entriesMax = Math.max(this.#entriesMax, scopes.length)
    const slots = scopes.map((scope) => this.#slot(scope)).filter(({ isLoaded }) => !isLoaded)
    for (let at = 0; at < slots.length; at += READ_AT_ONCE)
      await Promise.all(slots.slice(at, at + READ_AT_ONCE).map((slot) => this.#restore(slot)))
  }

  /** Resolves when everything published so far is on disk, or could not be written. Never rejects. */
  async flush(): Promise<void> {
    this.#options.platform.clearTimer(this.#timer)
    this.#timer = undefined
    this.#writeWaiting()
    await this.#writing
  }

  #slot(scope: CacheScope): Slot {
    const key = `${this.#environmentNumber(scope.environment)}/${scope.key}`
    const known = this.#slots.get(key)
    const slot = known ?? this.#newSlot(scope)
    this.#slots.delete(key)
    this.#slots.set(key, slot)
    this.#makeRoom()
    return slot
  }

  #newSlot(scope: CacheScope): Slot {
    const { platform } = this.#options
    const slot: Slot = {
      entry: new CatalogCacheEntry({
        scope,
        dateMs: () => platform.dateMs(),
        onReplaced: () => this.#changed(slot),
      }),
      isLoaded: this.#options.store === undefined,
      written: undefined,
    }
    return slot
  }

  /** Number by object: the name of an environment may come again for another one. */
  #environmentNumber(environment: object): number {
    const known = this.#environments.get(environment)
    if (known !== undefined) return known
    this.#environmentCount += 1
    this.#environments.set(environment, this.#environmentCount)
    return this.#environmentCount
  }

  #makeRoom(): void {
    for (const key of this.#slots.keys()) {
      if (this.#slots.size <= this.#entriesMax) return
      this.#slots.delete(key)
    }
  }

  async #restore(slot: Slot): Promise<void> {
    slot.isLoaded = true
    const { store, platform } = this.#options
    const { scope } = slot.entry
    const ignore = (because: string): void => this.#problems.push({ server: scope.server, because })
    try {
      const stored = await store?.get(scope.key)
      if (stored === undefined || stored.kind === 'absent') return
      if (stored.kind === 'damaged') return ignore(stored.because)
      const read = readCatalog(scope, stored.value)
      if (read.kind === 'ignored') return ignore(read.because)
      if (ageOf(read.catalog, platform.dateMs()) === 'dropped') return ignore('it was listed more than 7 days ago')
      slot.written = { catalog: read.catalog }
      slot.entry.restore(read.catalog)
    } catch (error) {
      ignore((error as Error).message)
    }
  }

  /** Nobody waits for the disk; what is published meanwhile is written with it. */
  #changed(slot: Slot): void {
    if (this.#options.store === undefined) return
    this.#waiting.add(slot)
    this.#timer ??= this.#options.platform.setTimer(
      () => {
        this.#timer = undefined
        this.#writeWaiting()
      },
      WRITE_DELAY_MS,
      'background',
    )
  }

  /** One after the other, each with the newest that is there when its turn comes: an older listing never overwrites a newer one. */
  #writeWaiting(): void {
    const slots = [...this.#waiting]
    this.#waiting.clear()
    for (const slot of slots) this.#writing = this.#writing.then(() => this.#write(slot)).catch(() => {})
  }

  /** A cache that cannot be written is no failure: the next process lists anew. */
  async #write(slot: Slot): Promise<void> {
    const { store } = this.#options
    const { entry } = slot
    const { snapshot, scope } = entry
    if (snapshot === undefined) {
      slot.written = undefined
      if (entry.isDisabled) await store?.remove(scope.key)
      return
    }
    if (slot.written !== undefined && isWritten(slot.written.catalog, snapshot, scope)) return
    await store?.set(scope.key, catalogText(scope, snapshot))
    slot.written = { catalog: snapshot }
  }
}

/** Does the disk say the same already, and not from long ago? */
function isWritten(written: CachedCatalog, now: CachedCatalog, scope: CacheScope): boolean {
  if (now.listedAtMs - written.listedAtMs > REWRITE_AFTER_MS) return false
  const timeless = (catalog: CachedCatalog): string => catalogText(scope, { ...catalog, listedAtMs: 0 })
  return timeless(written) === timeless(now)
}
