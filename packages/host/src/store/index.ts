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
export type { KeyringPlatform } from './keyring-client.ts'
export { type KeyringProbe, type KeyringProbeOptions, probeKeyring } from './keyring-probe.ts'
export { KEYRING_SERVICE, KeyringError, KeyringStore, type KeyringStoreOptions } from './keyring-store.ts'
export { MemoryStore } from './memory-store.ts'
export type { StorePlatform } from './platform.ts'
export { SealedStore, type SealedStoreOptions, sealedLimits } from './sealed-store.ts'
export { openSealingKey, type SealingKeyOptions } from './sealing-key.ts'
