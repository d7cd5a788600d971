export { FileLock } from './file-lock.ts'
export { FileStore } from './file-store.ts'
export {
  type KeyValueStore,
  LOCK_WAIT_MS,
  LockError,
  type LockOptions,
  type StoredValue,
  StoreError,
  type StoreLimits,
  type StoreLock,
} from './key-value-store.ts'
export { MemoryStore } from './memory-store.ts'
export type { StorePlatform } from './platform.ts'
