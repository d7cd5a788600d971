// What extensions keep with a session, a thread, a turn or a step: values by key, one map per scope. The key is the type; no two extensions share one by accident.

/** Names a value of an {@link ExtensionStore}. Two keys are the same only if they are the same object. */
export class StoreKey<Value> {
  /** For people. */
  readonly name: string
  /** Only for the compiler: what is kept under the key. */
  declare readonly value: Value

  constructor(name: string) {
    this.name = name
  }
}

/** Which thing of the host a store belongs to. */
export type StoreLevel = 'session' | 'thread' | 'turn' | 'step'

/** Most values in one store; a store is a place for states, not for data that grows. */
export const STORE_VALUES_MAX = 1_024

/** The values of one session, thread, turn or step. They are shared by reference and replaced whole. */
export class ExtensionStore {
  readonly level: StoreLevel
  /** Id of the thing it belongs to. */
  readonly levelId: string
  readonly #values = new Map<StoreKey<unknown>, unknown>()

  /** @param initial Frozen start values. */
  constructor(level: StoreLevel, levelId: string, initial: readonly StoreEntry[] = []) {
    this.level = level
    this.levelId = levelId
    for (const { key, value } of initial) this.#values.set(key, value)
  }

  get<Value>(key: StoreKey<Value>): Value | undefined {
    return this.#values.get(key) as Value | undefined
  }

  /** The value that is there, or the one that `make` returns, which stays. `make` runs at once and waits for nothing. */
  getOrInit<Value>(key: StoreKey<Value>, make: () => Value): Value {
    if (this.#values.has(key)) return this.#values.get(key) as Value
    const value = make()
    this.insert(key, value)
    return value
  }

  /** @returns what was there before. @throws {RangeError} for more than 1,024 values. */
  insert<Value>(key: StoreKey<Value>, value: Value): Value | undefined {
    const before = this.get(key)
    if (!this.#values.has(key) && this.#values.size >= STORE_VALUES_MAX)
      throw new RangeError(`The ${this.level} store "${this.levelId}" holds ${STORE_VALUES_MAX} values already`)
    this.#values.set(key, value)
    return before
  }

  /** @returns what was there. */
  remove<Value>(key: StoreKey<Value>): Value | undefined {
    const before = this.get(key)
    this.#values.delete(key)
    return before
  }
}

/** A value that a store begins with; made by {@link storeEntry}, so that key and value fit. */
export interface StoreEntry {
  readonly key: StoreKey<unknown>
  readonly value: unknown
}

/** @returns a start value of a store. */
export function storeEntry<Value>(key: StoreKey<Value>, value: Value): StoreEntry {
  return { key: key as StoreKey<unknown>, value }
}
