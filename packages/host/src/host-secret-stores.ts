// Where secrets are kept: the keyring of the system, and encrypted files. Loaded when there is one to keep or to read. Part of the composition root.
import type { Platform } from './protocol/index.ts'
import {
  FileStore,
  KeyringStore,
  type KeyValueStore,
  openSealingKey,
  probeKeyring,
  SealedStore,
  type StoreLimits,
  sealedLimits,
} from './store/index.ts'

/** What {@link secretStores} are made of. */
export interface SecretStoresInit {
  readonly platform: Platform
  readonly directory: string
  readonly keyFile: string
  readonly keyringProbeMs: number | undefined
  readonly limits: StoreLimits
}

/** Both places of one host. */
export interface SecretStores {
  probe(): ReturnType<typeof probeKeyring>
  readonly keyring: KeyringStore
  /** @throws {HostError} when there is no key that can be used. */
  file(): Promise<KeyValueStore>
}

/** Opens nothing yet. */
export function secretStores({ platform, directory, keyFile, keyringProbeMs, limits }: SecretStoresInit): SecretStores {
  const key = (): Promise<Uint8Array> => openSealingKey({ platform, path: keyFile })
  return {
    probe: () => probeKeyring({ platform, ...(keyringProbeMs === undefined ? {} : { timeoutMs: keyringProbeMs }) }),
    keyring: new KeyringStore({ platform, lockDirectory: `${directory}/keyring-locks`, limits }),
    async file() {
      await key()
      const inner = new FileStore({
        platform,
        directory: `${directory}/records`,
        limits: sealedLimits(limits),
        durability: 'durable',
      })
      return new SealedStore({ inner, key, limits })
    },
  }
}
