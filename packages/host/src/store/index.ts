export { FileLock } from './file-lock.ts'
export { FileStore } from './file-store.ts'
export {
  type KeyValueStore,
  LockError,
  StoreError,
  type StoreLimits,
} from './key-value-store.ts'
export type { KeyringPlatform } from './keyring-client.ts'
export { probeKeyring } from './keyring-probe.ts'
export { KeyringError, KeyringStore } from './keyring-store.ts'
export { MemoryStore } from './memory-store.ts'
export { SealedStore, sealedLimits } from './sealed-store.ts'
export { openSealingKey } from './sealing-key.ts'
