export { FileStore, type FileStoreOptions } from './file-store.ts'
export {
  KEY_CHARS_MAX,
  type KeyValueStore,
  type StoredValue,
  StoreError,
  type StoreFailure,
  type StoreLimits,
} from './key-value-store.ts'
export { MemoryStore, type MemoryStoreOptions } from './memory-store.ts'
