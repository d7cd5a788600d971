// One file per key below one directory. Only the user who runs the host may read or write there; anything else is not used.
import { Lane } from '../base/index.ts'
import {
  checkedBytes,
  checkKey,
  KEY_CHARS_MAX,
  type KeyValueStore,
  type StoredValue,
  StoreError,
  type StoreLimits,
} from './key-value-store.ts'
import { type KeptValue, planRoom } from './room.ts'

/** What is known of a path without following a link; part of the platform's files. */
export interface StoredFileFacts {
  readonly kind: 'file' | 'directory' | 'link' | 'other'
  readonly bytes: number
  readonly ownerId: number
  readonly mode: number
  readonly modifiedAtMs: number
}

/** What a {@link FileStore} needs of the platform. */
export interface StorePlatform {
  dateMs(): number
  setTimer(callback: () => void, ms: number): object
  readonly os: string
  /** -1 where there is no such number. */
  readonly userId: number
  randomBytes(count: number): Buffer
  readonly files: {
    read(path: string, bytesMax: number): Promise<Buffer>
    writeAtomic(
      path: string,
      data: string,
      options?: { mode?: number; durable?: boolean; onlyNew?: boolean },
    ): Promise<void>
    list(path: string): Promise<readonly string[]>
    inspect(path: string): Promise<StoredFileFacts | undefined>
    makeDirectory(path: string, mode?: number): Promise<void>
    remove(path: string): Promise<void>
  }
}

/** What a {@link FileStore} is made of. */
export interface FileStoreOptions {
  readonly platform: StorePlatform
  /** Made with mode 0700 when something is first written. */
  readonly directory: string
  readonly limits: StoreLimits
  /** `cache`: what a power cut takes can be made again, and writing does not wait for the disk. */
  readonly durability: 'durable' | 'cache'
}

const ENDING = '.json'
const LOCK_ENDING = '.lock'
/** How long one process waits for another to let go of a key, in milliseconds. */
const LOCK_WAIT_MS_MAX = 2_000
const LOCK_POLL_MS = 20
/** A lock that is older belongs to a process that ended while it held it, in milliseconds. */
const LOCK_ABANDONED_MS = 10_000
const LOCK_BYTES_MAX = 64
/** After so many writes it is looked anew at what other processes have done to the directory. */
const LOOK_AGAIN_AFTER = 64
/** Files that are looked at side by side. */
const INSPECTED_AT_ONCE = 32
const OTHERS_MAY_WRITE = 0o022
const OTHERS_MAY_ENTER = 0o077

/** Keeps values in files of mode 0600. */
export class FileStore implements KeyValueStore {
  readonly #options: FileStoreOptions
  /** One change after the other: what fits is decided on what is there. */
  readonly #lane = new Lane()
  #isPrepared = false
  #known: Map<string, KeptValue> | undefined
  #writesSinceLook = 0

  constructor(options: FileStoreOptions) {
    this.#options = options
  }

  async get(key: string): Promise<StoredValue> {
    checkKey(key)
    const { platform, limits } = this.#options
    const path = this.#path(key)
    return this.#guarded(`reading "${key}"`, async () => {
      const facts = await platform.files.inspect(path)
      if (facts === undefined) return { kind: 'absent' }
      const because = this.#distrust(facts)
      if (because !== undefined) return { kind: 'damaged', because }
      if (facts.bytes > limits.valueBytesMax)
        return { kind: 'damaged', because: `it has more than ${limits.valueBytesMax} bytes` }
      return this.#read(path, facts)
    })
  }

  async set(key: string, value: string): Promise<void> {
    checkKey(key)
    const bytes = checkedBytes(value, this.#options.limits)
    await this.#alone(`writing "${key}"`, () => this.#write(key, value, bytes))
  }

  async remove(key: string): Promise<void> {
    checkKey(key)
    await this.#alone(`removing "${key}"`, async () => {
      await this.#options.platform.files.remove(this.#path(key))
      this.#known?.delete(key)
    })
  }

  async keys(prefix = ''): Promise<readonly string[]> {
    return this.#guarded('listing', async () => (await this.#keys()).filter((key) => key.startsWith(prefix)))
  }

  async compareAndSwap(key: string, expected: string | undefined, value: string): Promise<boolean> {
    checkKey(key)
    const bytes = checkedBytes(value, this.#options.limits)
    return this.#alone(`writing "${key}"`, async () => {
      await this.#prepare()
      const isStillMine = await this.#lock(key)
      try {
        const now = await this.get(key)
        const known = now.kind === 'found' ? now.value : undefined
        if (known !== expected || !(await isStillMine())) return false
        await this.#write(key, value, bytes)
        return true
      } finally {
        if (await isStillMine()) await this.#options.platform.files.remove(this.#path(key, LOCK_ENDING))
      }
    })
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
    await this.#prepare()
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
    const { files } = this.#options.platform
    const keys = await this.#keys()
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

  async #keys(): Promise<string[]> {
    const names = await this.#options.platform.files.list(this.#options.directory)
    return names.flatMap((name) => (name.endsWith(ENDING) ? keyIn(name) : [])).sort()
  }

  /** The directory is made, and is ours alone. @throws {StoreError} `failed` */
  async #prepare(): Promise<void> {
    if (this.#isPrepared) return
    const { directory, platform } = this.#options
    await platform.files.makeDirectory(directory)
    const facts = await platform.files.inspect(directory)
    const because =
      facts?.kind === 'directory'
        ? this.#distrustOwner(facts, OTHERS_MAY_ENTER)
        : 'it is no directory, or a link to one'
    if (because !== undefined) throw new StoreError('failed', `${directory} is not used: ${because}`)
    this.#isPrepared = true
  }

  #distrust(facts: StoredFileFacts): string | undefined {
    if (facts.kind !== 'file') return facts.kind === 'link' ? 'it is a link' : 'it is no regular file'
    return this.#distrustOwner(facts, OTHERS_MAY_WRITE)
  }

  #distrustOwner({ ownerId, mode }: StoredFileFacts, forbidden: number): string | undefined {
    const { os, userId } = this.#options.platform
    if (os === 'win32' || userId === -1) return undefined // no such bits there
    if (ownerId !== userId) return 'it belongs to another user'
    return (mode & forbidden) === 0 ? undefined : 'other users have access to it'
  }

  /** Takes the key for this process. @returns whether it still is. @throws {StoreError} `busy` */
  async #lock(key: string): Promise<() => Promise<boolean>> {
    const { platform } = this.#options
    const path = this.#path(key, LOCK_ENDING)
    const token = platform.randomBytes(16).toString('hex')
    for (let waitedMs = 0; waitedMs <= LOCK_WAIT_MS_MAX; waitedMs += LOCK_POLL_MS) {
      if (await this.#take(path, token))
        return () =>
          platform.files.read(path, LOCK_BYTES_MAX).then(
            (content) => content.toString('utf8') === token,
            () => false,
          )
      const holder = await platform.files.inspect(path)
      if (holder !== undefined && platform.dateMs() - holder.modifiedAtMs > LOCK_ABANDONED_MS)
        await platform.files.remove(path)
      else await new Promise<void>((resolve) => void platform.setTimer(resolve, LOCK_POLL_MS))
    }
    throw new StoreError('busy', `Another process has held "${key}" for more than ${LOCK_WAIT_MS_MAX} ms`)
  }

  async #take(path: string, token: string): Promise<boolean> {
    try {
      await this.#options.platform.files.writeAtomic(path, token, { durable: false, onlyNew: true })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw error
    }
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

  #path(key: string, ending: string = ENDING): string {
    return `${this.#options.directory}/${key}${ending}`
  }
}

/** A file that was put there by somebody else has no key, and is left alone. */
function keyIn(name: string): string[] {
  const key = name.slice(0, -ENDING.length)
  return key.length <= KEY_CHARS_MAX && /^[a-z0-9][a-z0-9_-]*$/.test(key) ? [key] : []
}
