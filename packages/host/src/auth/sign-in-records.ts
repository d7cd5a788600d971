// Saves and deletes sign-ins: the record with its secrets in its store, and the entry that leads to it in the index.
import { type KeyValueStore, LockError, StoreError } from '../store/index.ts'
import { type CredentialRecord, readRecord, recordId, recordText, refusedRefresh } from './record.ts'
import type { IndexReading, SignInEntry, SignInIndex, StoreKind } from './sign-in-index.ts'
import type { SignInStores } from './sign-in-stores.ts'

/** Where a sign-in is to be kept. */
export interface Place {
  readonly store: KeyValueStore
  readonly kind: StoreKind
  /** Ends the waiting for others who hold the record. */
  readonly signal?: AbortSignal | undefined
}

/** The records of one host. Failures are those of the stores. */
export class SignInRecords {
  readonly #stores: SignInStores
  readonly #index: SignInIndex

  constructor(stores: SignInStores, index: SignInIndex) {
    this.#stores = stores
    this.#index = index
  }

  /** That of the entry; undefined: it is not there any more. @throws {StoreError} @throws {HostError} `CREDENTIALS_UNAVAILABLE` */
  async of({ recordId: id, store: kind, grantId }: SignInEntry): Promise<CredentialRecord | undefined> {
    const store = await this.#stores.open(kind)
    const found = await store.get(id)
    if (found.kind === 'damaged') throw new StoreError('failed', found.because)
    const record = found.kind === 'found' ? readRecord(found.value) : undefined
    return record?.grantId === grantId ? record : undefined
  }

  /**
   * As {@link of}, for whoever tells how it is. A record that says "a renewal was begun" says so of one that was cut off and of one that is under way: only
   * whether somebody holds it tells them apart, at once and without any guess about clocks and limits.
   */
  async look(
    entry: SignInEntry,
  ): Promise<{ readonly record: CredentialRecord | undefined; readonly isRenewing: boolean }> {
    const record = await this.of(entry)
    if (record === undefined || refusedRefresh(record) !== 'refresh-interrupted') return { record, isRenewing: false }
    if (await this.#isHeld(entry)) return { record, isRenewing: true }
    // It may have ended between the two looks.
    return { record: await this.of(entry), isRenewing: false }
  }

  async #isHeld({ recordId: id, store: kind }: SignInEntry): Promise<boolean> {
    try {
      const store = await this.#stores.open(kind)
      const lock = await store.lock(id, { waitMs: 0 })
      await lock[Symbol.asyncDispose]()
      return false
    } catch (error) {
      return error instanceof LockError && error.failure === 'busy'
    }
  }

  /**
   * Saves a sign-in. What was there before is still there if that fails: the record of the same client at the same issuer stands where the new one goes.
   * @returns its entry, and what it has taken the place of.
   */
  async keep(record: CredentialRecord, { store, kind, signal }: Place): Promise<Kept> {
    const entry = entryOf(record, kind)
    const { recordId: id } = entry
    const lock = await store.lock(id, signal === undefined ? {} : { signal })
    let before: Before
    try {
      before = { index: await this.#index.read(record.server), stored: await store.get(id) }
      try {
        await store.set(id, recordText(record))
        await this.#index.write(entry)
      } catch (error) {
        await this.#putBack(store, entry, before)
        throw error
      }
    } finally {
      await lock[Symbol.asyncDispose]()
    }
    const { index, stored } = before
    const overwritten = stored.kind === 'found' ? readRecord(stored.value) : undefined
    if (index.kind !== 'entry') return { entry, replaced: overwritten === undefined ? [] : [overwritten] }
    const forgotten = await this.#forget(index.entry, entry)
    return {
      entry,
      former: index.entry,
      replaced: [overwritten, forgotten].filter((one): one is CredentialRecord => one !== undefined),
    }
  }

  /** A store that fails may have written all the same. Each part by itself: one that cannot be put back keeps the other from nothing. */
  async #putBack(store: KeyValueStore, { recordId: id, grantId, server }: SignInEntry, before: Before): Promise<void> {
    const { stored, index } = before
    const now = await this.#index.read(server)
    const isWritten = now.kind === 'entry' && now.entry.grantId === grantId
    await Promise.allSettled([
      stored.kind === 'found' ? store.set(id, stored.value) : store.remove(id),
      isWritten && this.#index.swap(now, index.kind === 'entry' ? index.entry : undefined),
    ])
  }

  /** It can be reached no more, so nothing depends on whether this works. @returns what was there. */
  async #forget(former: SignInEntry, now: SignInEntry): Promise<CredentialRecord | undefined> {
    const { recordId: id, store: kind } = former
    if (id === now.recordId && kind === now.store) return undefined
    try {
      // What is damaged goes, too.
      const record = await this.of(former).catch(() => undefined)
      await (await this.#stores.open(kind)).remove(id)
      return record
    } catch {
      return undefined // a keyring that is not there any more
    }
  }

  /** Deletes exactly what was read. @returns the record that was there; undefined: none, or that of another sign-in, which stays. */
  async take(
    reading: IndexReading & { readonly kind: 'entry' },
    signal: AbortSignal | undefined,
  ): Promise<CredentialRecord | undefined> {
    const { recordId: id, store: kind, grantId } = reading.entry
    const store = await this.#stores.open(kind)
    const lock = await store.lock(id, signal === undefined ? {} : { signal })
    try {
      const found = await store.get(id)
      const record = found.kind === 'found' ? readRecord(found.value) : undefined
      // Somebody has signed in anew meanwhile.
      if (record !== undefined && record.grantId !== grantId) return undefined
      await store.remove(id)
      await this.#index.swap(reading, undefined)
      return record
    } finally {
      await lock[Symbol.asyncDispose]()
    }
  }
}

/** What {@link SignInRecords.keep} has done. */
export interface Kept {
  readonly entry: SignInEntry
  /** What the index led to before. */
  readonly former?: SignInEntry
  /** They can be reached no more. */
  readonly replaced: readonly CredentialRecord[]
}

/** What a sign-in takes the place of. */
interface Before {
  readonly index: IndexReading
  readonly stored: Awaited<ReturnType<KeyValueStore['get']>>
}

function entryOf(record: CredentialRecord, store: StoreKind): SignInEntry {
  const { server, grantId, issuer, resource, client, signedInAtMs, subject } = record
  return {
    version: 1,
    server,
    recordId: recordId({ issuer: issuer.issuer, resource, clientId: client.id, server: server.name }),
    grantId,
    store,
    issuer: issuer.issuer,
    resource,
    clientId: client.id,
    signedInAtMs,
    ...(subject === undefined ? {} : { subject }),
  }
}
