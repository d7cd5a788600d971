// Where sign-ins are kept, and why there. What has been decided for a sign-in is written down with it and never decided again.
import { HostError } from '../base/index.ts'
import type { KeyValueStore } from '../store/index.ts'
import type { StoreKind } from './sign-in-index.ts'

/** Which stores may be used. `auto`: the keyring if it proves itself, else the file. */
export type StoreMode = 'auto' | 'keyring' | 'file' | 'memory'

/** What a keyring proved before anything was trusted to it. */
export type KeyringProof =
  | { readonly kind: 'usable' }
  | { readonly kind: 'unusable'; readonly because: string; readonly detail: string }

/** How stores are opened. Nothing is opened before it is needed. */
export interface StoreOpeners {
  readonly keyring?: { probe(): Promise<KeyringProof>; open(): Promise<KeyValueStore & AsyncDisposable> }
  file?(): Promise<KeyValueStore>
  memory(): KeyValueStore
}

/** Where a new sign-in will be kept. */
export interface StoreChoice {
  readonly kind: StoreKind
  /** For a person. */
  readonly because: string
}

/** Written and removed before a page is opened. No record has such a name. */
const PROOF_KEY = 'proof'
/** About as long as a sign-in. */
const PROOF = '-'.repeat(4_096)

/** The stores of one host. */
export class SignInStores {
  readonly mode: StoreMode
  readonly #openers: StoreOpeners
  readonly #opened = new Map<StoreKind, Promise<KeyValueStore>>()

  constructor(mode: StoreMode, openers: StoreOpeners) {
    this.mode = mode
    this.#openers = openers
  }

  /** May a sign-in that is kept there be used? */
  reads(kind: StoreKind): boolean {
    return this.mode === 'auto' ? kind !== 'memory' || this.#openers.file === undefined : this.mode === kind
  }

  /**
   * Decides where the next sign-in is kept, before any page is opened: somebody who has consented must not learn then that nothing can be kept.
   * @throws {HostError} `CREDENTIALS_UNAVAILABLE` when the only store that may be used cannot be.
   */
  async choose(): Promise<StoreChoice> {
    switch (this.mode) {
      case 'memory':
        return { kind: 'memory', because: 'sign-ins of this host are kept in memory only' }
      case 'file':
        await this.#proveFile()
        return { kind: 'file', because: 'the file was chosen' }
      case 'keyring':
      case 'auto':
        return this.#chooseByProof()
    }
  }

  async #chooseByProof(): Promise<StoreChoice> {
    const { keyring, file } = this.#openers
    const proof: KeyringProof =
      keyring === undefined
        ? { kind: 'unusable', because: 'not-configured', detail: 'this host uses none' }
        : await keyring.probe()
    if (proof.kind === 'usable')
      return {
        kind: 'keyring',
        because: this.mode === 'auto' ? 'the keyring of this system works' : 'the keyring was chosen',
      }
    if (this.mode === 'keyring')
      throw new HostError('CREDENTIALS_UNAVAILABLE', `The keyring cannot be used: ${proof.detail}`, {
        details: { store: 'keyring', because: proof.because },
      })
    if (file === undefined) return { kind: 'memory', because: 'this host has no folder to keep sign-ins in' }
    await this.#proveFile()
    return { kind: 'file', because: `the keyring cannot be used: ${proof.detail}` }
  }

  /** A disk that is full and a folder that is read-only show only when something is written. */
  async #proveFile(): Promise<void> {
    try {
      const store = await this.open('file')
      await store.set(PROOF_KEY, PROOF)
      await store.remove(PROOF_KEY)
    } catch (error) {
      if (HostError.is(error)) throw error
      const why = error instanceof Error ? error.message : String(error)
      throw new HostError('CREDENTIALS_UNAVAILABLE', `Nothing can be kept in the files of this user: ${why}`, {
        details: { store: 'file' },
        cause: error,
      })
    }
  }

  /** @throws {HostError} `CREDENTIALS_UNAVAILABLE`: this host has no such store. */
  open(kind: StoreKind): Promise<KeyValueStore> {
    const known = this.#opened.get(kind)
    if (known !== undefined) return known
    const opened = this.#open(kind)
    this.#opened.set(kind, opened)
    // What could not be opened now may be opened another time.
    opened.catch(() => {
      if (this.#opened.get(kind) === opened) this.#opened.delete(kind)
    })
    return opened
  }

  /** What the keyring has open is closed; it can be used again. Idempotent. */
  async close(): Promise<void> {
    if (this.#opened.has('keyring')) await (await this.#openers.keyring?.open())?.[Symbol.asyncDispose]()
  }

  async #open(kind: StoreKind): Promise<KeyValueStore> {
    const { keyring, file, memory } = this.#openers
    if (kind === 'memory') return memory()
    const store = await (kind === 'keyring' ? keyring?.open() : file?.())
    if (store !== undefined) return store
    throw new HostError('CREDENTIALS_UNAVAILABLE', `The sign-in is kept in the ${kind}, which this host does not use`, {
      details: { store: kind },
    })
  }
}
