// Values in the keyring of the system. It knows no locks and no limits of ours: both are kept here.
import { Lane } from '../base/index.ts'
import { FileLock } from './file-lock.ts'
import {
  checkedBytes,
  checkKey,
  KEY_CHARS_MAX,
  type KeyValueStore,
  LOCK_WAIT_MS,
  type LockOptions,
  type StoredValue,
  StoreError,
  type StoreLimits,
  type StoreLock,
} from './key-value-store.ts'
import { KeyringClient, type KeyringPlatform } from './keyring-client.ts'
import {
  type KeyringFault,
  type KeyringOrder,
  type KeyringOutcome,
  readWritten,
  writtenText,
} from './keyring-protocol.ts'
import { type KeptValue, planRoom } from './room.ts'

/** Whose items they are, as other programs show it. */
export const KEYRING_SERVICE = 'Convoke MCP credentials'

/** What a {@link KeyringStore} is made of. */
export interface KeyringStoreOptions {
  readonly platform: KeyringPlatform
  /** Where the claims of its locks are: all hosts of a user have to name the same folder. */
  readonly lockDirectory: string
  readonly limits: StoreLimits
  /** Default {@link KEYRING_SERVICE}. */
  readonly service?: string
  /** How long the keyring may take to answer, in milliseconds. Default 10,000. */
  readonly answerMs?: number
}

/** The keyring could not do it. It says nothing of what is kept there. */
export class KeyringError extends StoreError {
  override readonly name: string = 'KeyringError'
  readonly because: KeyringFault

  constructor(because: KeyringFault, message: string) {
    super('failed', message)
    this.because = because
  }
}

const ANSWER_MS = 10_000
/** Windows keeps 2,560 bytes in an item, as UTF-16. Some are left for what it adds. */
const WINDOWS_PART_CHARS = 1_200
const KEY = /^[a-z0-9][a-z0-9_-]*$/

/** Keeps values in the keyring, one item each. */
export class KeyringStore implements KeyValueStore, AsyncDisposable {
  readonly #options: KeyringStoreOptions
  readonly #client: KeyringClient
  readonly #fileLock: FileLock
  /** One change after the other: what fits is decided on what is there. */
  readonly #lane = new Lane()

  constructor(options: KeyringStoreOptions) {
    const { platform, service = KEYRING_SERVICE, lockDirectory } = options
    this.#options = options
    this.#client = new KeyringClient({ platform, service })
    this.#fileLock = new FileLock({ platform, directory: lockDirectory })
  }

  async get(key: string): Promise<StoredValue> {
    checkKey(key)
    const outcome = await this.#ask({ kind: 'get', account: key })
    switch (outcome.kind) {
      case 'found': {
        const written = readWritten(outcome.text)
        return written === undefined
          ? { kind: 'damaged', because: 'another program has written it' }
          : { kind: 'found', ...written }
      }
      case 'damaged':
        return outcome
      default:
        return { kind: 'absent' }
    }
  }

  async set(key: string, value: string): Promise<void> {
    checkKey(key)
    const bytes = checkedBytes(value, this.#options.limits)
    await this.#swapping(key, () => this.#write(key, value, bytes))
  }

  async remove(key: string): Promise<void> {
    checkKey(key)
    await this.#swapping(key, () => this.#remove(key))
  }

  async keys(prefix = ''): Promise<readonly string[]> {
    const kept = await this.#kept()
    return kept
      .map(({ key }) => key)
      .filter((key) => key.startsWith(prefix))
      .sort()
  }

  async compareAndSwap(key: string, expected: string | undefined, value: string | undefined): Promise<boolean> {
    checkKey(key)
    const bytes = value === undefined ? 0 : checkedBytes(value, this.#options.limits)
    return this.#swapping(key, async (lock) => {
      const now = await this.get(key)
      if (now.kind === 'damaged' || (now.kind === 'found' ? now.value : undefined) !== expected) return false
      if (!(await lock.isHeld())) return false
      await (value === undefined ? this.#remove(key) : this.#write(key, value, bytes))
      return true
    })
  }

  async lock(key: string, options: LockOptions = {}): Promise<StoreLock> {
    checkKey(key)
    return this.#fileLock.acquire(`${key}.hold`, options)
  }

  /** Ends the program that speaks with the keyring. It is started again if something is asked later. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#client.close()
  }

  async #swapping<Value>(key: string, task: (lock: StoreLock) => Promise<Value>): Promise<Value> {
    const lock = await this.#fileLock.acquire(`${key}.swap`, { waitMs: LOCK_WAIT_MS })
    try {
      return await task(lock)
    } finally {
      // What was done is done, whether or not the claim can be taken back now: it is tried again, and ends with this process.
      await lock[Symbol.asyncDispose]().catch(() => {})
    }
  }

  get #parts(): { readonly partChars?: number } {
    return this.#options.platform.os === 'win32' ? { partChars: WINDOWS_PART_CHARS } : {}
  }

  async #write(key: string, value: string, bytes: number): Promise<void> {
    const { platform, limits } = this.#options
    const leave = await this.#lane.enter()
    try {
      const plan = planRoom(await this.#kept(), { key, bytes }, limits)
      if (plan.kind === 'full') throw new StoreError('full', 'The store is full')
      for (const dropped of plan.drop) await this.#remove(dropped)
      await this.#ask({ kind: 'set', account: key, text: writtenText(value, platform.dateMs()), ...this.#parts })
    } finally {
      leave()
    }
  }

  async #remove(key: string): Promise<void> {
    await this.#ask({ kind: 'remove', account: key, ...this.#parts })
  }

  /** What is there and ours. Parts of a value are counted with none: only Windows has them. */
  async #kept(): Promise<readonly KeptValue[]> {
    const outcome = await this.#ask({ kind: 'list' })
    const items = outcome.kind === 'listed' ? outcome.items : []
    return items
      .filter(({ account }) => account.length <= KEY_CHARS_MAX && KEY.test(account))
      .map(({ account, bytes, writtenAtMs }) => ({ key: account, bytes, writtenAtMs }))
  }

  /** @throws {KeyringError} */
  async #ask(order: KeyringOrder): Promise<Exclude<KeyringOutcome, { kind: 'failed' }>> {
    const outcome = await this.#client.ask(order, this.#options.answerMs ?? ANSWER_MS)
    if (outcome.kind === 'failed')
      throw new KeyringError(outcome.because, `The keyring could not be used: ${outcome.detail}`)
    return outcome
  }
}
