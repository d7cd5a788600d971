import type { AuthScopeKey } from '../auth/index.ts'
import type { JsonObject } from '../base/index.ts'
import type { CatalogCache, NamePolicy } from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { CredentialKey, CredentialSnapshot } from '../connection/index.ts'
import type { HostEvent } from '../events/index.ts'
import type { Authorization, Introduction, ProtocolSettings } from '../protocol/index.ts'
import type { StartPolicy } from './desired.ts'
import type { EntitlementMinter } from './entitlements.ts'
import type { Environments } from './environments.ts'

/** The stored sign-in of a server, as it was read just now. */
export interface CredentialReading {
  readonly snapshot: CredentialSnapshot
  /** Names the record, whatever token is in it: what is kept of the server is kept under this. Default: the key of the snapshot. */
  readonly record?: string
  /** The store was locked by somebody else meanwhile: what was read may be out of date. */
  readonly isContended: boolean
}

/** Who the host speaks as to one server. */
export interface Credentials {
  /** Read before every plan, at most 2,000 ms; a reader that fails or takes longer counts as unreadable. */
  read(definition: ServerDefinition, options: { readonly signal: AbortSignal }): Promise<CredentialReading>
  /** What a live session speaks with now, if it looks after its sign-in itself; null: with nothing. Undefined: it does not. */
  live?(definition: ServerDefinition): CredentialKey | undefined
}

/** What every connection and binding of one set has in common. */
export interface SetSettings {
  readonly protocol: ProtocolSettings
  readonly authorization: ((definition: ServerDefinition) => Authorization | undefined) | undefined
  /** Absent: no sign-in is stored anywhere. */
  readonly credentials: Credentials | undefined
  /** `program`: a reader that may take any time is given up; `own`: files of this machine, which a plan reads of anyway. */
  readonly credentialsAre: 'own' | 'program'
  /** The interned key of the account that speaks for a server; undefined where none does. */
  readonly account: ((definition: ServerDefinition) => AuthScopeKey | undefined) | undefined
  /** What this side tells servers of itself: capabilities and extensions. */
  readonly client: JsonObject
  /** The catalogs of all servers beyond the life of their connections. */
  readonly cache: CatalogCache
  /** Catalogs outlive this process: it matters which version of a package listed them. */
  readonly isCatalogKept: boolean
  /** Where processes without a `cwd` of their own run. */
  readonly cwd: string
  /** How connections to a server introduce themselves, over what `protocol` says. */
  readonly introduction: ((server: string) => Introduction) | undefined
  readonly entitlements: EntitlementMinter | undefined
  readonly environments: Environments
  readonly start: StartPolicy
  /** How tools are named. */
  readonly names: NamePolicy
  /** How long all bindings of a generation together wait for servers that are still starting, in milliseconds; 0: until they have settled. */
  readonly graceMs: number
  /** `none`: modern servers are not asked to tell about changes. */
  readonly watch: 'changes' | 'none'
  readonly emit: (event: HostEvent) => void
}
