export { FileStore } from './file-store.ts'
export {
  type KeyValueStore,
  StoreError,
  type StoreLimits,
} from './key-value-store.ts'
export { MemoryStore } from './memory-store.ts'
