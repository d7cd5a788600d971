// The account behind a token that code holds.
import type { AccountSource } from '../account.ts'
import { checkToken } from './account-rules.ts'
import { SuppliedAccount } from './supplied-account.ts'

/** How {@link tokenAccount} is made. */
export interface TokenAccountOptions {
  readonly token: string
  /** The exact origins that may see it: `https://api.example.com`. */
  readonly origins: readonly string[]
  /** Names the account. Default: a digest of the token, which does not reveal it. */
  readonly id?: string
}

/** An account whose token code can replace. */
export interface TokenAccount extends AccountSource {
  /**
   * Another token from now on, or the same one anew: a new sign-in, and hosted servers are connected anew.
   * @throws {HostError} `OPTIONS_INVALID`
   */
  replace(token: string): void
}

/**
 * A host that is signed in by a token. A server that refuses it is `needs-auth`: nobody here can get another one.
 *
 * ```ts no-run
 * import { createHost, tokenAccount } from '@convoke/host'
 *
 * const account = tokenAccount({ token: 'the first one', origins: ['https://hub.example'] })
 * await using host = await createHost({ definitions: [], account })
 * account.replace('another one')
 * ```
 * @throws {HostError} `OPTIONS_INVALID`
 */
export function tokenAccount({ token, origins, id }: TokenAccountOptions): TokenAccount {
  let held = checkToken(token)
  const account = new SuppliedAccount({ origins, id, read: () => held })
  return {
    origins: account.origins,
    current: () => account.current(),
    token: (of) => account.token(of),
    refresh: () => account.refresh(),
    onChange: (listener) => account.onChange(listener),
    replace(other) {
      held = checkToken(other)
      account.supply(held)
    },
  }
}
