// What a host is made of: its options, checked, and what they mean to the rooms. Part of the composition root.
import type { AccountSource } from './auth/index.ts'
import { HostError, type JsonObject, VERSION } from './base/index.ts'
import {
  CATALOG_STORE_LIMITS,
  CatalogCache,
  NAME_CHARS_LIMIT,
  NAME_CHARS_MIN,
  type NamePolicy,
} from './catalog/index.ts'
import type { ServerDefinition } from './config/index.ts'
import type { ElicitationLimits, HostHandlers, Reviewer, TrustPolicy } from './elicitation/index.ts'
import type { HostEventListener } from './events/index.ts'
import type { Extension } from './extensions/index.ts'
import type { HostConfiguration } from './host-registry.ts'
import type { SignInSettings } from './host-sign-ins.ts'
import {
  type Authorization,
  LaunchMemory,
  nodePlatform,
  type Platform,
  type ProtocolSettings,
} from './protocol/index.ts'
import type { Credentials, EntitlementMinter, Environment } from './set/index.ts'
import { FileStore } from './store/index.ts'

/** What `createHost` takes. Only `definitions` is required. */
export interface HostOptions extends HostConfiguration {
  /** Default: name `convoke` and the version of this package. */
  readonly clientInfo?: { readonly name: string; readonly version: string; readonly title?: string }
  /** Where lease files are kept, so that the next start can end what this one may leave. Absent: nothing is noted and nothing reaped. */
  readonly stateDirectory?: string
  /** Where it is remembered which protocol era each server speaks, and what it listed last. Absent: in memory only. */
  readonly cacheDirectory?: string
  /** What servers listed, shared with other hosts of this process. Default: a cache of its own in `cacheDirectory`. */
  readonly catalogs?: CatalogCache
  /** Default: the real one. */
  readonly platform?: Platform
  /** `undici` costs less per call and more at the start: for long-lived hosts. Default `node`. */
  readonly http?: 'node' | 'undici'
  /** When queued messages are written: at the end of a tick, or of a turn of the event loop (for gateways). Default `tick`. */
  readonly writeBurst?: 'tick' | 'turn'
  readonly handlers?: HostHandlers
  /** Extensions of the protocol that this client speaks, by their names, each with its settings; told to every server. Default none. */
  readonly clientExtensions?: JsonObject
  /** Whether a person is asked for what servers ask. Default: yes, and nothing is accepted without. */
  readonly trust?: TrustPolicy
  /** In place of `trust` for single servers, by name. */
  readonly trustOf?: Readonly<Record<string, TrustPolicy>>
  /** Show forms with fields to a person although `trust` has full access without approvals. Default false. */
  readonly surfaceForms?: boolean
  /** May answer before a person is asked. */
  readonly reviewer?: Reviewer
  readonly questionLimits?: Partial<ElicitationLimits>
  /** Who the host is signed in as; its token goes to hosted servers of the source's origins alone. A new sign-in connects them anew. */
  readonly account?: AccountSource
  /**
   * How long a server's process may take to end by itself once its input has ended, in milliseconds; then SIGTERM to its group, and 2 s later SIGKILL.
   * Default 2,000. Many servers never notice the end of their input: a program that ends after a moment does better with less.
   */
  readonly closeGraceMs?: number
  /**
   * Which servers are started at once. `all`: as their definitions say, so that one with `startup: 'lazy-when-cached'` whose tools are known
   * from before sleeps until it is needed. A list: only those; the others when they are named. Default `all`.
   */
  readonly start?: 'all' | readonly string[]
  /**
   * How long the first bindings of a generation wait together for servers that are still starting, in milliseconds; 0: until each has
   * settled. Default 1,000.
   */
  readonly optionalStartupGraceMs?: number
  /** Where servers run, by the name that definitions use. Default: `local`, this machine. */
  readonly environments?: Readonly<Record<string, Environment>>
  /** Where the sign-ins of this host are kept, and how it introduces itself to authorization servers. Default: below `stateDirectory`. */
  readonly signIns?: SignInSettings
  /** Sign-ins that the program keeps itself, read before every plan: a server whose sign-in changed gets a new connection. Default: `signIns`. */
  readonly credentials?: Credentials
  /** Makes the entitlements of calls of tools that ask for them. Absent: no call gets any. */
  readonly entitlements?: EntitlementMinter
  /** Longest flat name, in characters, 24 to 128. Default 48. */
  readonly nameCharsMax?: number
  /** Longest namespaced name in all, in characters, 24 to 128. Default 64. */
  readonly namespacedCharsMax?: number
  /** `none`: no namespace begins with `mcp__`. Default `mcp`. */
  readonly toolNamePrefix?: 'mcp' | 'none'
  /** Servers whose namespaces go without the prefix. Default none. */
  readonly unprefixedServers?: readonly string[]
  /**
   * Credentials that the program keeps itself, in place of `signIns` for all servers: of an HTTP server, asked for when its connection is made; not used for
   * a server with an `Authorization` header of its own.
   */
  readonly authorization?: (definition: ServerDefinition) => Authorization | undefined
  /** What takes part in threads, turns and tools, in this order. Default none. */
  readonly extensions?: readonly Extension[]
  /** `none`: modern servers are not asked to tell about changes; for programs that end after a moment. Default `changes`. */
  readonly watch?: 'changes' | 'none'
  /** Hears everything from the first event on; `subscribe` begins after the starts have begun. */
  readonly onEvent?: HostEventListener
  /** Abort closes the host. */
  readonly signal?: AbortSignal
}

/** Flat names: clients put prefixes of their own before them. */
const NAME_CHARS_MAX = 48
/** How long bindings wait for optional servers unless told otherwise, in milliseconds. */
export const GRACE_MS = 1_000
const GRACE_MS_MAX = 600_000

/** Where processes without a `cwd` of their own run. It may have been removed; only servers that are started in it cannot do without. */
export function workingDirectory(): string {
  try {
    return process.cwd()
  } catch {
    return ''
  }
}

/** @throws {HostError} `OPTIONS_INVALID` */
export function checkOptions(options: HostOptions, definitions: readonly ServerDefinition[]): void {
  const { start, nameCharsMax, namespacedCharsMax, optionalStartupGraceMs } = options
  const names = new Set(definitions.map(({ name }) => name))
  const stranger = start === undefined || start === 'all' ? undefined : start.find((name) => !names.has(name))
  if (stranger !== undefined) throw new HostError('OPTIONS_INVALID', `start names "${stranger}", which is not defined`)
  checkNumber('nameCharsMax', nameCharsMax, { from: NAME_CHARS_MIN, to: NAME_CHARS_LIMIT })
  checkNumber('namespacedCharsMax', namespacedCharsMax, { from: NAME_CHARS_MIN, to: NAME_CHARS_LIMIT })
  checkNumber('optionalStartupGraceMs', optionalStartupGraceMs, { from: 0, to: GRACE_MS_MAX })
}

/** @throws {HostError} `OPTIONS_INVALID` */
function checkNumber(
  name: string,
  value: number | undefined,
  { from, to }: { readonly from: number; readonly to: number },
): void {
  if (value === undefined || (Number.isInteger(value) && value >= from && value <= to)) return
  throw new HostError('OPTIONS_INVALID', `${name} is a whole number from ${from} to ${to}`)
}

/**
 * A cache of catalogs that several hosts of one process can share (`HostOptions.catalogs`): what one of them has listed, the others know.
 * @param options `cacheDirectory`: where catalogs outlive the process; absent: nowhere.
 */
export function createCatalogCache({
  cacheDirectory,
  platform = nodePlatform,
}: {
  readonly cacheDirectory?: string | undefined
  readonly platform?: Platform
} = {}): CatalogCache {
  if (cacheDirectory === undefined) return new CatalogCache({ platform })
  const directory = `${cacheDirectory}/catalogs`
  const limits = CATALOG_STORE_LIMITS
  return new CatalogCache({ platform, store: new FileStore({ platform, directory, limits, durability: 'cache' }) })
}

/** How the tools of a host are named. */
export function namePolicy({
  nameCharsMax = NAME_CHARS_MAX,
  namespacedCharsMax,
  toolNamePrefix,
  unprefixedServers,
}: HostOptions): NamePolicy {
  return {
    nameCharsMax,
    ...(namespacedCharsMax === undefined ? {} : { namespacedCharsMax }),
    ...(toolNamePrefix === undefined ? {} : { toolNamePrefix }),
    ...(unprefixedServers === undefined ? {} : { unprefixedServers }),
  }
}

/** What the connections of a host have in common. */
export function protocolSettings(options: HostOptions): ProtocolSettings {
  const platform = options.platform ?? nodePlatform
  const { stateDirectory, cacheDirectory, clientInfo, http, writeBurst, closeGraceMs } = options
  return {
    platform,
    clientInfo: clientInfo ?? { name: 'convoke', version: VERSION },
    // Every connection is introduced by the trust of the host.
    capabilities: {},
    handlers: {},
    http: http ?? 'node',
    writeBurst: writeBurst ?? 'tick',
    leaseDirectory: stateDirectory === undefined ? undefined : `${stateDirectory}/leases`,
    closeGraceMs,
    memory: new LaunchMemory(platform, cacheDirectory),
  }
}
