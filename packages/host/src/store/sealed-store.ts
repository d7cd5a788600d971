// Values that only the holder of a key can read, kept in another store. Who may write to that store can still remove them or bring back an older one.
import type * as Crypto from 'node:crypto'
import {
  checkedBytes,
  checkKey,
  type KeyValueStore,
  type LockOptions,
  type StoredValue,
  type StoreLimits,
  type StoreLock,
} from './key-value-store.ts'
import { SEALING_KEY_BYTES } from './sealing-key.ts'

/** What a {@link SealedStore} is made of. */
export interface SealedStoreOptions {
  /** Its limits have to be {@link sealedLimits} of `limits`. */
  readonly inner: KeyValueStore
  /**
   * 32 bytes, as from `openSealingKey`; or who has them now. A program that runs for weeks must not seal with a key whose file has been replaced: nobody else
   * could read it, nor itself the next day.
   */
  readonly key: Uint8Array | (() => Promise<Uint8Array>)
  /** For what is sealed. */
  readonly limits: StoreLimits
}

const CIPHER = 'aes-256-gcm'
/** The first version of the form of a sealed value: nonce, tag and ciphertext as one row of hexadecimal digits. */
const VERSION = 'sealed-1:'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SEAL_BYTES = VERSION.length + 2 * (NONCE_BYTES + TAG_BYTES)
const DIGITS = /^(?:[0-9a-f]{2})*$/

/** Encrypts each value under its key name: moved to another name it does not open. */
export class SealedStore implements KeyValueStore {
  readonly #inner: KeyValueStore
  readonly #key: SealedStoreOptions['key']
  readonly #limits: StoreLimits

  /** @throws {RangeError} for a key that has not 32 bytes. */
  constructor({ inner, key, limits }: SealedStoreOptions) {
    if (key instanceof Uint8Array) checkSize(key)
    this.#inner = inner
    this.#key = key
    this.#limits = limits
  }

  async get(key: string): Promise<StoredValue> {
    const found = await this.#inner.get(key)
    return found.kind === 'found' ? open(await this.#sealingKey(), key, found) : found
  }

  async set(key: string, value: string): Promise<void> {
    await this.#inner.set(key, await this.#seal(key, value))
  }

  async remove(key: string): Promise<void> {
    await this.#inner.remove(key)
  }

  keys(prefix?: string): Promise<readonly string[]> {
    return this.#inner.keys(prefix)
  }

  /** The same value has another form each time it is sealed: what is compared is what it says, what is swapped is what was read. */
  async compareAndSwap(key: string, expected: string | undefined, value: string | undefined): Promise<boolean> {
    const sealed = value === undefined ? undefined : await this.#seal(key, value)
    const sealingKey = await this.#sealingKey()
    for (;;) {
      const found = await this.#inner.get(key)
      const now = found.kind === 'found' ? open(sealingKey, key, found) : found
      if (now.kind === 'damaged' || (now.kind === 'found' ? now.value : undefined) !== expected) return false
      if (await this.#inner.compareAndSwap(key, found.kind === 'found' ? found.value : undefined, sealed)) return true
      // Somebody has written meanwhile, perhaps the same value: whoever fails here has let another one get on.
    }
  }

  lock(key: string, options?: LockOptions): Promise<StoreLock> {
    return this.#inner.lock(key, options)
  }

  async #sealingKey(): Promise<Uint8Array> {
    return this.#key instanceof Uint8Array ? this.#key : checkSize(await this.#key())
  }

  async #seal(key: string, value: string): Promise<string> {
    checkKey(key)
    checkedBytes(value, this.#limits)
    const sealingKey = await this.#sealingKey()
    const { createCipheriv, randomBytes } = crypto()
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, sealingKey, nonce, { authTagLength: TAG_BYTES }).setAAD(nameOf(key))
    const text = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()])
    return VERSION + Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('hex')
  }
}

function open(
  sealingKey: Uint8Array,
  key: string,
  { value, writtenAtMs }: StoredValue & { kind: 'found' },
): StoredValue {
  const digits = value.slice(VERSION.length)
  if (!value.startsWith(VERSION)) return { kind: 'damaged', because: 'it is not sealed in a known way' }
  if (value.length < SEAL_BYTES || !DIGITS.test(digits)) return { kind: 'damaged', because: 'its seal is incomplete' }
  const bytes = Buffer.from(digits, 'hex')
  const tagEnd = NONCE_BYTES + TAG_BYTES
  try {
    const opener = crypto()
      .createDecipheriv(CIPHER, sealingKey, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      .setAAD(nameOf(key))
      .setAuthTag(bytes.subarray(NONCE_BYTES, tagEnd))
    const text = Buffer.concat([opener.update(bytes.subarray(tagEnd)), opener.final()]).toString('utf8')
    return { kind: 'found', value: text, writtenAtMs }
  } catch {
    return { kind: 'damaged', because: 'it does not open with this key, or was changed or moved' }
  }
}

/** @throws {RangeError} */
function checkSize(key: Uint8Array): Uint8Array {
  if (key.length !== SEALING_KEY_BYTES) throw new RangeError(`A sealing key has ${SEALING_KEY_BYTES} bytes`)
  return key
}

/** The limits of a store that keeps sealed values of the given limits. */
export function sealedLimits(limits: StoreLimits): StoreLimits {
  const { keysMax, valueBytesMax, totalBytesMax } = limits
  return {
    ...limits,
    valueBytesMax: SEAL_BYTES + 2 * valueBytesMax,
    totalBytesMax: keysMax * SEAL_BYTES + 2 * totalBytesMax,
  }
}

function nameOf(key: string): Buffer {
  return Buffer.from(`${VERSION}${key}`)
}

/** Loaded when something is sealed: it costs 15 ms. */
function crypto(): typeof Crypto {
  return process.getBuiltinModule('node:crypto') as typeof Crypto
}
