// The port through which anything is kept beyond the life of a process. Values are small, keys are plain; what they mean is up to the owner.

/** What every store holds to. */
export interface StoreLimits {
  /** One value, in bytes of UTF-8. */
  readonly valueBytesMax: number
  /** All values together, in bytes. */
  readonly totalBytesMax: number
  /** Keys. */
  readonly keysMax: number
  /** When the store is full: refuse to take more, or let go of what was written longest ago. */
  readonly whenFull: 'refuse' | 'drop-oldest'
}

/** Kept text by key. Every failure is a {@link StoreError}; what is damaged counts as absent and says why. */
export interface KeyValueStore {
  /** @throws {StoreError} `key-invalid`, `failed` */
  get(key: string): Promise<StoredValue>
  /** Readers see the old or the new value, and nothing between. @throws {StoreError} `key-invalid`, `too-large`, `full`, `failed` */
  set(key: string, value: string): Promise<void>
  /** Nothing happens if it is not there. @throws {StoreError} `key-invalid`, `failed` */
  remove(key: string): Promise<void>
  /** The keys that begin with `prefix`, in code-unit order. @throws {StoreError} `failed` */
  keys(prefix?: string): Promise<readonly string[]>
  /**
   * Sets the value if it still is `expected` (`undefined`: if there is none); one of several that try at once succeeds, also when they are
   * different processes.
   * @returns whether it was set.
   * @throws {StoreError} as {@link set}, and `busy` when another process does not let go of the key.
   */
  compareAndSwap(key: string, expected: string | undefined, value: string): Promise<boolean>
}

/** What stands under a key. */
export type StoredValue =
  | { readonly kind: 'found'; readonly value: string; readonly writtenAtMs: number }
  | { readonly kind: 'absent' }
  /** There is something, and it is not used. */
  | { readonly kind: 'damaged'; readonly because: string }

/** How a store can fail. */
export type StoreFailure = 'key-invalid' | 'too-large' | 'full' | 'busy' | 'failed'

/** A store could not do what it was asked to. Its text holds no value. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly failure: StoreFailure

  constructor(failure: StoreFailure, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.failure = failure
  }
}

/** Longest key, in characters. */
export const KEY_CHARS_MAX = 128
/** What every file system keeps apart, and none takes for something else: no upper case, no path. */
const KEY = /^[a-z0-9][a-z0-9_-]*$/

/** @throws {StoreError} `key-invalid` */
export function checkKey(key: string): void {
  if (key.length > KEY_CHARS_MAX || !KEY.test(key))
    throw new StoreError('key-invalid', `A key has 1 to ${KEY_CHARS_MAX} characters of a-z, 0-9, "_" and "-"`)
}

/** The size of a value in bytes. @throws {StoreError} `too-large` */
export function checkedBytes(value: string, { valueBytesMax }: StoreLimits): number {
  const bytes = Buffer.byteLength(value)
  if (bytes > valueBytesMax) throw new StoreError('too-large', `A value has at most ${valueBytesMax} bytes`)
  return bytes
}
