// Which sign-in belongs to which server, and where it is kept: read before any network and before any keyring. Nothing in it is secret.
import { canonicalJson, digestHex, isObject } from '../base/index.ts'
import type { KeyValueStore } from '../store/index.ts'
import type { Subject } from './grant.ts'

/** Where sign-ins are kept: the keyring of the operating system, files of our own, or this process. */
export type StoreKind = 'keyring' | 'file' | 'memory'

/** What is noted of one sign-in. */
export interface SignInEntry {
  readonly version: 1
  readonly server: { readonly name: string; readonly url: string }
  readonly recordId: string
  /** As in the record: another one is another sign-in. */
  readonly grantId: string
  readonly store: StoreKind
  readonly issuer: string
  readonly resource: string
  readonly clientId: string
  /** Milliseconds of the epoch. */
  readonly signedInAtMs: number
  readonly subject?: Subject
  /** What servers asked for that was not granted; the next sign-in asks for it, too. */
  readonly wantedScopes?: readonly string[]
}

/** What an index says of a server. */
export type IndexReading =
  | { readonly kind: 'entry'; readonly entry: SignInEntry; readonly text: string }
  | { readonly kind: 'none' }
  /** There is something that cannot be used. */
  | { readonly kind: 'unreadable'; readonly because: string }

const KEY_CHARS = 32

/** Entries by the name and the URL of a server. */
export class SignInIndex {
  readonly #store: KeyValueStore
  /** A listing under way: most servers have no entry, and one look at the folder tells that of all of them. */
  #listing: Promise<ReadonlySet<string>> | undefined

  constructor(store: KeyValueStore) {
    this.#store = store
  }

  /** Never rejects. */
  async read(server: SignInEntry['server']): Promise<IndexReading> {
    const key = keyOf(server)
    try {
      if (!(await this.#keys()).has(key)) return { kind: 'none' }
      const found = await this.#store.get(key)
      if (found.kind === 'absent') return { kind: 'none' }
      if (found.kind === 'damaged') return { kind: 'unreadable', because: found.because }
      const entry = readEntry(found.value)
      // The key is only a digest: what the entry says of itself counts.
      if (entry === undefined || keyOf(entry.server) !== key)
        return { kind: 'unreadable', because: 'it is no entry of this server' }
      return { kind: 'entry', entry, text: found.value }
    } catch (error) {
      return { kind: 'unreadable', because: error instanceof Error ? error.message : String(error) }
    }
  }

  /** Puts the entry in place of whatever there is. @throws {StoreError} */
  async write(entry: SignInEntry): Promise<void> {
    try {
      await this.#store.set(keyOf(entry.server), JSON.stringify(entry))
    } finally {
      this.#listing = undefined // one that began before may not show it
    }
  }

  /** Puts `entry` (undefined: nothing) in the place of what was read. @returns whether that was still there. @throws {StoreError} */
  swap(read: IndexReading & { readonly kind: 'entry' }, entry: SignInEntry | undefined): Promise<boolean> {
    const text = entry === undefined ? undefined : JSON.stringify(entry)
    return this.#store.compareAndSwap(keyOf(read.entry.server), read.text, text)
  }

  /** Takes away what cannot be read, too. @throws {StoreError} */
  async remove(server: SignInEntry['server']): Promise<void> {
    await this.#store.remove(keyOf(server))
  }

  #keys(): Promise<ReadonlySet<string>> {
    const listing: Promise<ReadonlySet<string>> = (this.#listing ??= this.#store
      .keys()
      .then((keys) => new Set(keys))
      .finally(() => {
        if (this.#listing === listing) this.#listing = undefined
      }))
    return listing
  }
}

function keyOf({ name, url }: SignInEntry['server']): string {
  return digestHex(canonicalJson([name, url]), KEY_CHARS)
}

function readEntry(text: string): SignInEntry | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  return isEntry(value) ? value : undefined
}

const TEXTS = ['recordId', 'grantId', 'issuer', 'resource', 'clientId'] as const

function isEntry(value: unknown): value is SignInEntry {
  if (!isObject(value) || value['version'] !== 1 || !TEXTS.every((name) => typeof value[name] === 'string'))
    return false
  const { server, store, wantedScopes, subject, signedInAtMs } = value
  return (
    isObject(server) &&
    typeof server['name'] === 'string' &&
    typeof server['url'] === 'string' &&
    (store === 'keyring' || store === 'file' || store === 'memory') &&
    typeof signedInAtMs === 'number' &&
    (subject === undefined || (isObject(subject) && typeof subject['id'] === 'string')) &&
    (wantedScopes === undefined ||
      (Array.isArray(wantedScopes) && wantedScopes.every((scope) => typeof scope === 'string')))
  )
}
