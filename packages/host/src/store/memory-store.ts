import {
  checkedBytes,
  checkKey,
  type KeyValueStore,
  type LockOptions,
  type StoredValue,
  StoreError,
  type StoreLimits,
  type StoreLock,
} from './key-value-store.ts'
import { LocalLocks } from './local-locks.ts'
import { planRoom } from './room.ts'

/** What a {@link MemoryStore} is made of. */
export interface MemoryStoreOptions {
  readonly limits: StoreLimits
  /** Milliseconds of the epoch. */
  dateMs(): number
  /** For those who wait for a lock, in milliseconds. Default: a timer of this process. */
  setTimer?(callback: () => void, ms: number): object
  clearTimer?(timer: object | undefined): void
}

interface Kept {
  readonly value: string
  readonly bytes: number
  readonly writtenAtMs: number
}

/** Keeps until the process ends. */
export class MemoryStore implements KeyValueStore {
  readonly #options: MemoryStoreOptions
  readonly #kept = new Map<string, Kept>()
  readonly #locks: LocalLocks

  constructor(options: MemoryStoreOptions) {
    this.#options = options
    this.#locks = new LocalLocks({
      setTimer: options.setTimer ?? ((callback, ms) => setTimeout(callback, ms)),
      clearTimer: options.clearTimer ?? ((timer) => clearTimeout(timer as NodeJS.Timeout | undefined)),
    })
  }

  async get(key: string): Promise<StoredValue> {
    checkKey(key)
    const kept = this.#kept.get(key)
    return kept === undefined ? { kind: 'absent' } : { kind: 'found', value: kept.value, writtenAtMs: kept.writtenAtMs }
  }

  async set(key: string, value: string): Promise<void> {
    this.#set(key, value)
  }

  async remove(key: string): Promise<void> {
    checkKey(key)
    this.#kept.delete(key)
  }

  async keys(prefix = ''): Promise<readonly string[]> {
    return [...this.#kept.keys()].filter((key) => key.startsWith(prefix)).sort()
  }

  async compareAndSwap(key: string, expected: string | undefined, value: string | undefined): Promise<boolean> {
    checkKey(key)
    if (value !== undefined) checkedBytes(value, this.#options.limits)
    if (this.#kept.get(key)?.value !== expected) return false
    if (value === undefined) this.#kept.delete(key)
    else this.#set(key, value)
    return true
  }

  async lock(key: string, options: LockOptions = {}): Promise<StoreLock> {
    checkKey(key)
    return this.#locks.take(key, options)
  }

  #set(key: string, value: string): void {
    const { limits } = this.#options
    checkKey(key)
    const bytes = checkedBytes(value, limits)
    const kept = [...this.#kept].map(([known, one]) => ({ key: known, ...one }))
    const plan = planRoom(kept, { key, bytes }, limits)
    if (plan.kind === 'full') throw new StoreError('full', 'The store is full')
    for (const dropped of plan.drop) this.#kept.delete(dropped)
    this.#kept.delete(key) // what is written last stands last
    this.#kept.set(key, { value, bytes, writtenAtMs: this.#options.dateMs() })
  }
}
