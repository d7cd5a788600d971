// What sign-ins are signed in, kept and renewed with. Loaded when somebody does that.
import { AuthorizationServers } from './authorization-servers.ts'
import { SENTENCES } from './grant-holder.ts'
import { GrantHolders } from './grant-holders.ts'
import type { SignInIndex } from './sign-in-index.ts'
import { SignInRecords } from './sign-in-records.ts'
import type { SignInsOptions } from './sign-ins.ts'

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
