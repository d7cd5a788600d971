// The stored sign-ins of a host: where they are kept, and how they reach the world. Part of the composition root.
import {
  type EnterpriseSignIn,
  type RenewalStep,
  type SignInChange,
  SignInStores,
  SignIns,
  type StoreMode,
} from './auth/index.ts'
import type { ServerDefinition } from './config/index.ts'
import { oauthPort } from './host-oauth-port.ts'
import type { SecretStores } from './host-secret-stores.ts'
import { type Platform, readCertificates } from './protocol/index.ts'
import { FileStore, type KeyValueStore, MemoryStore, type StoreLimits } from './store/index.ts'

/** Where the sign-ins of a host are kept, and how it introduces itself. */
export interface SignInSettings {
  /**
   * `keyring`: that of the operating system; `file`: encrypted files of this user; `auto`: the keyring if it proves itself before somebody signs in, else
   * the file; `memory`: until the host is closed. What has been chosen for a sign-in holds for its life. Default `auto`.
   */
  readonly store?: StoreMode
  /** How long a keyring may take to prove itself before somebody signs in, in milliseconds. Default 2,000. */
  readonly keyringProbeMs?: number
  /** Default: `sign-ins` in `stateDirectory`; without that, sign-ins are kept in memory. */
  readonly directory?: string
  /** The key of the encrypted files; made with the first of them. Keep it apart from them. Default: `sign-ins.key` beside `directory`. */
  readonly keyFile?: string
  /** Shown on consent pages. Default: the name of `clientInfo`. */
  readonly clientName?: string
  /** The URL of this program's client metadata document. Default: none, and it registers where that is possible. */
  readonly clientMetadataUrl?: string
  /** The identity provider of a company, for servers with `oauth.grant: 'enterprise'`. Default: none. */
  readonly enterprise?: EnterpriseSignIn
}

/** What {@link makeSignIns} needs to know. */
export interface SignInsInit {
  readonly settings: SignInSettings | undefined
  readonly stateDirectory: string | undefined
  readonly clientName: string
  readonly platform: Platform
  hasAccount(definition: ServerDefinition): boolean
  onChange(change: SignInChange): void
  onStep?(step: RenewalStep): void
}

/** One sign-in; tokens of some servers hold whole documents. */
const RECORD_LIMITS: StoreLimits = {
  valueBytesMax: 256 * 1024,
  totalBytesMax: 64 * 1024 * 1024,
  keysMax: 1_024,
  whenFull: 'refuse',
}
const INDEX_LIMITS: StoreLimits = {
  valueBytesMax: 32 * 1024,
  totalBytesMax: 8 * 1024 * 1024,
  keysMax: 1_024,
  whenFull: 'refuse',
}
/** A key, or a token of the platform. */
const FILE_BYTES_MAX = 64 * 1024

/** Opens nothing and reads nothing yet. */
export function makeSignIns(init: SignInsInit): SignIns {
  const { settings = {}, stateDirectory, platform } = init
  const directory = settings.directory ?? (stateDirectory === undefined ? undefined : `${stateDirectory}/sign-ins`)
  const { clientMetadataUrl } = settings
  return new SignIns({
    stores: storesOf(settings, directory, platform),
    index: indexOf(directory, platform),
    port: oauthPort(platform),
    env: platform.env,
    client: {
      name: settings.clientName ?? init.clientName,
      ...(clientMetadataUrl === undefined ? {} : { metadataUrl: clientMetadataUrl }),
    },
    hasAccount: (definition) => init.hasAccount(definition),
    readCa: (definition) => readCa(definition, platform),
    readFile: async (path) => (await platform.files.read(path, FILE_BYTES_MAX)).toString('utf8'),
    enterprise: settings.enterprise,
    onChange: (change) => init.onChange(change),
    onStep: (step) => init.onStep?.(step),
  })
}

function storesOf(settings: SignInSettings, directory: string | undefined, platform: Platform): SignInStores {
  const { store: mode = 'auto' } = settings
  const memory = memoryStore(platform, RECORD_LIMITS)
  if (directory === undefined || mode === 'memory')
    return new SignInStores(mode === 'auto' ? 'memory' : mode, { memory: () => memory })
  const keyFile = settings.keyFile ?? `${directory}.key`
  const { keyringProbeMs } = settings
  const secret = { platform, directory, keyFile, keyringProbeMs, limits: RECORD_LIMITS }
  let loading: Promise<SecretStores> | undefined
  const load = (): Promise<SecretStores> => {
    loading ??= import('./host-secret-stores.ts').then(({ secretStores }) => secretStores(secret))
    return loading
  }
  return new SignInStores(mode, {
    memory: () => memory,
    keyring: {
      probe: async () => (await load()).probe(),
      open: async () => (await load()).keyring,
    },
    file: async () => (await load()).file(),
  })
}

function indexOf(directory: string | undefined, platform: Platform): KeyValueStore {
  if (directory === undefined) return memoryStore(platform, INDEX_LIMITS)
  return new FileStore({ platform, directory: `${directory}/index`, limits: INDEX_LIMITS, durability: 'durable' })
}

function memoryStore(platform: Platform, limits: StoreLimits): MemoryStore {
  return new MemoryStore({ limits, dateMs: () => platform.dateMs() })
}

async function readCa({ name, transport }: ServerDefinition, platform: Platform): Promise<string | undefined> {
  const path = transport.kind === 'http' ? transport.ca : undefined
  return path === undefined ? undefined : readCertificates(name, path, platform)
}
