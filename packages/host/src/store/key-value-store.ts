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

/** Kept text by key. Every failure is a {@link StoreError}; what is damaged is not used, and says why. */
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
   * Sets the value if it still is `expected` (`undefined`: if there is nothing at all), or removes it when `value` is `undefined`; one of
   * several that try at once succeeds, also when they are different processes. What is damaged is never what was expected. It may be called
   * by who holds the {@link lock} of the key, and by who does not.
   * @returns whether it was done.
   * @throws {StoreError} as {@link set}; a {@link LockError} when others do not let go of the key, or the swap cannot be made alone.
   */
  compareAndSwap(key: string, expected: string | undefined, value: string | undefined): Promise<boolean>
  /**
   * Waits until nobody else holds the key, in this process or in another one. Reading and writing do not ask for it: who uses it agrees
   * with others who do. Locks of different keys never wait for each other.
   * @throws {LockError} `busy`, `failed`
   * @throws {StoreError} `key-invalid`
   * @throws {HostError} `CANCELLED` with the reason of the signal as its cause.
   */
  lock(key: string, options?: LockOptions): Promise<StoreLock>
}

/** How long a lock is waited for. */
export interface LockOptions {
  /** In milliseconds; 0 looks once. Default 60,000. */
  readonly waitMs?: number
  /** Ends the waiting. What is held already is not let go. */
  readonly signal?: AbortSignal
}

/** A key that nobody else holds. Disposing lets go of it; doing so twice is a no-op. */
export interface StoreLock extends AsyncDisposable {
  /** Looks anew: somebody may have taken it for abandoned, or removed the folder it lives in. Never rejects. */
  isHeld(): Promise<boolean>
  /** @throws {LockError} `failed`: others still see it as held, until this process ends. */
  [Symbol.asyncDispose](): Promise<void>
}

/** How long a lock is waited for unless the caller says otherwise, in milliseconds. */
export const LOCK_WAIT_MS = 60_000

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
  override readonly name: string = 'StoreError'
  readonly failure: StoreFailure

  constructor(failure: StoreFailure, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.failure = failure
  }
}

/**
 * A lock could not be had: `busy` when others held it all the time, `failed` when it cannot be made at all, as in a folder that nobody may
 * write to. It says nothing of the values, which may be there and well.
 */
export class LockError extends StoreError {
  override readonly name: string = 'LockError'
  declare readonly failure: 'busy' | 'failed'

  constructor(failure: 'busy' | 'failed', message: string, options: { readonly cause?: unknown } = {}) {
    super(failure, message, options)
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
