// What sign-ins are signed in, kept and renewed with. Loaded when somebody does that.
import type { ServerDefinition } from '../config/index.ts'
import type { KeyValueStore } from '../store/index.ts'
import { AuthorizationServers, type AuthorizationServersOptions } from './authorization-servers.ts'
import { type RenewalStep, SENTENCES } from './grant-holder.ts'
import { GrantHolders } from './grant-holders.ts'
import type { SignInIndex } from './sign-in-index.ts'
import { SignInRecords } from './sign-in-records.ts'
import type { SignInStores } from './sign-in-stores.ts'

/** What the sign-ins of a host are made of. */
export interface SignInsOptions extends AuthorizationServersOptions {
  readonly stores: SignInStores
  /** Holds no secrets. */
  readonly index: KeyValueStore
  /** Does the account of the host speak for this server? Then no sign-in is looked at. */
  hasAccount(definition: ServerDefinition): boolean
  onChange(change: SignInChange): void
  onStep?(step: RenewalStep): void
}

/** Something happened to the sign-in of a server. */
export interface SignInChange {
  readonly server: string
  /** `ended`: a person has to sign in again; nothing has been deleted. */
  readonly change: 'signed-in' | 'signed-out' | 'refreshed' | 'ended'
  /** Why it ended. */
  readonly because?: string
}

/** The parts that share the options of one host. */
export interface SignInTools {
  readonly servers: AuthorizationServers
  readonly records: SignInRecords
  readonly holders: GrantHolders
}

/** Opens nothing yet. */
export function makeTools(options: SignInsOptions, index: SignInIndex): SignInTools {
  const servers = new AuthorizationServers(options)
  return {
    servers,
    records: new SignInRecords(options.stores, index),
    holders: new GrantHolders({
      port: options.port,
      open: (kind) => options.stores.open(kind),
      requests: (newest) => servers.requests(newest),
      onChange: (server, change) =>
        options.onChange(
          change === 'refreshed' ? { server, change } : { server, change: 'ended', because: SENTENCES[change] },
        ),
      onStep: options.onStep === undefined ? undefined : (step) => options.onStep?.(step),
    }),
  }
}
