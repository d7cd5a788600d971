import {
  checkedBytes,
  checkKey,
  type KeyValueStore,
  type StoredValue,
  StoreError,
  type StoreLimits,
} from './key-value-store.ts'
import { planRoom } from './room.ts'

/** What a {@link MemoryStore} is made of. */
export interface MemoryStoreOptions {
  readonly limits: StoreLimits
  /** Milliseconds of the epoch. */
  dateMs(): number
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

  constructor(options: MemoryStoreOptions) {
    this.#options = options
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

  async compareAndSwap(key: string, expected: string | undefined, value: string): Promise<boolean> {
    checkKey(key)
    if (this.#kept.get(key)?.value !== expected) return false
    this.#set(key, value)
    return true
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
