// One file per key below one directory. Only the user who runs the host may read or write there; anything else is not used.
import { Lane } from '../base/index.ts'
import { FileLock } from './file-lock.ts'
import {
  checkedBytes,
  checkKey,
  KEY_CHARS_MAX,
  type KeyValueStore,
  LOCK_WAIT_MS,
  LockError,
  type LockOptions,
  type StoredValue,
  StoreError,
  type StoreLimits,
  type StoreLock,
} from './key-value-store.ts'
import type { StoredFileFacts, StorePlatform } from './platform.ts'
import { type KeptValue, planRoom } from './room.ts'
import { distrustFile, prepareDirectory, removeLeftovers } from './trusted-files.ts'

/** What a {@link FileStore} is made of. */
export interface FileStoreOptions {
  readonly platform: StorePlatform
  /** Made with mode 0700 when something is first written. */
  readonly directory: string
  readonly limits: StoreLimits
  /** `cache`: what a power cut takes can be made again, and writing waits neither for the disk nor for a swap of the same key. */
  readonly durability: 'durable' | 'cache'
  /** How long a change waits for the swap of another process, in milliseconds. Default 60,000. */
  readonly swapWaitMs?: number
}

const ENDING = '.json'
/** Claims are files of a folder of their own: what waits is not among what is kept. */
const LOCKS = 'locks'
/** After so many writes it is looked anew at what other processes have done to the directory. */
const LOOK_AGAIN_AFTER = 64
/** Files that are looked at side by side. */
const INSPECTED_AT_ONCE = 32

/** Keeps values in files of mode 0600. */
export class FileStore implements KeyValueStore {
  readonly #options: FileStoreOptions
  /** One change after the other: what fits is decided on what is there. */
  readonly #lane = new Lane()
  readonly #fileLock: FileLock
  #known: Map<string, KeptValue> | undefined
  #writesSinceLook = 0

  constructor(options: FileStoreOptions) {
    this.#options = options
    this.#fileLock = new FileLock({ platform: options.platform, directory: `${options.directory}/${LOCKS}` })
  }

  async get(key: string): Promise<StoredValue> {
    checkKey(key)
    const { platform, limits } = this.#options
    const path = this.#path(key)
    return this.#guarded(`reading "${key}"`, async () => {
      const facts = await platform.files.inspect(path)
      if (facts === undefined) return { kind: 'absent' }
      const because = distrustFile(platform, facts)
      if (because !== undefined) return { kind: 'damaged', because }
      if (facts.bytes > limits.valueBytesMax)
        return { kind: 'damaged', because: `it has more than ${limits.valueBytesMax} bytes` }
      return this.#read(path, facts)
    })
  }

  async set(key: string, value: string): Promise<void> {
    checkKey(key)
    const bytes = checkedBytes(value, this.#options.limits)
    await this.#change(key, () => this.#alone(`writing "${key}"`, () => this.#write(key, value, bytes)))
  }

  async remove(key: string): Promise<void> {
    checkKey(key)
    // Nothing has to be locked for what is not there, so that a folder that is missing is not made for it.
    if ((await this.get(key)).kind === 'absent') return
    await this.#change(key, () => this.#alone(`removing "${key}"`, () => this.#drop(key)))
  }

  async keys(prefix = ''): Promise<readonly string[]> {
    return this.#guarded('listing', async () =>
      keysIn(await this.#options.platform.files.list(this.#options.directory)).filter((key) => key.startsWith(prefix)),
    )
  }

  async compareAndSwap(key: string, expected: string | undefined, value: string | undefined): Promise<boolean> {
    checkKey(key)
    const bytes = value === undefined ? 0 : checkedBytes(value, this.#options.limits)
    return this.#swapping(key, async (lock) => {
      const now = await this.get(key)
      const isExpected = now.kind === 'found' ? now.value === expected : now.kind === 'absent' && expected === undefined
      if (!isExpected || !(await lock.isHeld())) return false
      if (value === undefined) await this.#alone(`removing "${key}"`, () => this.#drop(key))
      else await this.#alone(`writing "${key}"`, () => this.#write(key, value, bytes))
      return true
    })
  }

  async lock(key: string, options: LockOptions = {}): Promise<StoreLock> {
    checkKey(key)
    return this.#acquire(`${key}.hold`, options)
  }

  /** What is written between the two looks of a swap would be lost, or would bring back what was removed. */
  async #change(key: string, task: () => Promise<void>): Promise<void> {
    await (this.#options.durability === 'cache' ? task() : this.#swapping(key, task))
  }

  /** Another lock than the one that callers hold: they swap what they have locked. Waits before anything else of the store has to. */
  async #swapping<Value>(key: string, task: (lock: StoreLock) => Promise<Value>): Promise<Value> {
    const { swapWaitMs: waitMs = LOCK_WAIT_MS } = this.#options
    const lock = await this.#acquire(`${key}.swap`, { waitMs })
    try {
      return await task(lock)
    } finally {
      // What was done is done, whether or not the claim can be taken back now: it is tried again, and ends with this process.
      await lock[Symbol.asyncDispose]().catch(() => {})
    }
  }

  async #acquire(name: string, options: LockOptions): Promise<StoreLock> {
    try {
      await this.#prepare()
    } catch (error) {
      throw new LockError('failed', (error as Error).message, { cause: error })
    }
    return this.#fileLock.acquire(name, options)
  }

  async #drop(key: string): Promise<void> {
    await this.#options.platform.files.remove(this.#path(key))
    this.#known?.delete(key)
  }

  async #read(path: string, { bytes, modifiedAtMs }: StoredFileFacts): Promise<StoredValue> {
    try {
      // No more than was there a moment ago: what grows while it is read is not what this host wrote.
      const content = await this.#options.platform.files.read(path, bytes)
      return { kind: 'found', value: content.toString('utf8'), writtenAtMs: modifiedAtMs }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return { kind: 'absent' }
      if (code === 'EFBIG') return { kind: 'damaged', because: 'it changed while it was read' }
      if (code === 'ELOOP') return { kind: 'damaged', because: 'it is a link' }
      throw error
    }
  }

  async #write(key: string, value: string, bytes: number): Promise<void> {
    const { platform, limits, durability } = this.#options
    if (durability === 'cache') await this.#prepare()
    const kept = await this.#kept()
    const plan = planRoom([...kept.values()], { key, bytes }, limits)
    if (plan.kind === 'full') throw new StoreError('full', 'The store is full')
    for (const dropped of plan.drop) {
      await platform.files.remove(this.#path(dropped))
      kept.delete(dropped)
    }
    await platform.files.writeAtomic(this.#path(key), value, { durable: durability === 'durable' })
    kept.set(key, { key, bytes, writtenAtMs: platform.dateMs() })
    this.#writesSinceLook += 1
  }

  async #kept(): Promise<Map<string, KeptValue>> {
    if (this.#known !== undefined && this.#writesSinceLook < LOOK_AGAIN_AFTER) return this.#known
    const { platform, directory } = this.#options
    const { files } = platform
    const names = await files.list(directory)
    await removeLeftovers(platform, directory, names)
    const keys = keysIn(names)
    const kept = new Map<string, KeptValue>()
    for (let at = 0; at < keys.length; at += INSPECTED_AT_ONCE) {
      const some = keys.slice(at, at + INSPECTED_AT_ONCE)
      const facts = await Promise.all(some.map((key) => files.inspect(this.#path(key))))
      for (const [index, one] of facts.entries()) {
        const key = some[index]
        if (one !== undefined && key !== undefined)
          kept.set(key, { key, bytes: one.bytes, writtenAtMs: one.modifiedAtMs })
      }
    }
    this.#known = kept
    this.#writesSinceLook = 0
    return kept
  }

  /** The directory is made, and is ours alone. @throws {StoreError} `failed` */
  async #prepare(): Promise<void> {
    const { directory, platform } = this.#options
    await this.#guarded('preparing', async () => {
      const because = await prepareDirectory(platform, directory)
      if (because !== undefined) throw new StoreError('failed', `${directory} is not used: ${because}`)
    })
  }

  async #alone<Value>(what: string, task: () => Promise<Value>): Promise<Value> {
    const leave = await this.#lane.enter()
    try {
      return await this.#guarded(what, task)
    } finally {
      leave()
    }
  }

  async #guarded<Value>(what: string, task: () => Promise<Value>): Promise<Value> {
    try {
      return await task()
    } catch (error) {
      if (error instanceof StoreError) throw error
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown'
      throw new StoreError('failed', `${this.#options.directory}: ${what} failed (${code})`, { cause: error })
    }
  }

  #path(key: string): string {
    return `${this.#options.directory}/${key}${ENDING}`
  }
}

/** A file that was put there by somebody else has no key, and is left alone. */
function keysIn(names: readonly string[]): string[] {
  return names
    .filter((name) => name.endsWith(ENDING))
    .map((name) => name.slice(0, -ENDING.length))
    .filter((key) => key.length <= KEY_CHARS_MAX && /^[a-z0-9][a-z0-9_-]*$/.test(key))
    .sort()
}
