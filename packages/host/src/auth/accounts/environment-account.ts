// The account behind a token in a variable.
import { HostError } from '../../base/index.ts'
import type { AccountSource } from '../account.ts'
import type { Variables } from '../own-authorization.ts'
import { isToken } from './account-rules.ts'
import { SuppliedAccount } from './supplied-account.ts'

/** How {@link accountInVariable} is made. */
export interface EnvironmentAccountInit {
  readonly variable: string
  /** The exact origins that may see the token: `https://api.example.com`. */
  readonly origins: readonly string[]
  readonly env: Variables
}

/** An account that is looked at when it is asked for. */
export interface EnvironmentAccount extends AccountSource {
  /** Compares the variable with what was last seen: another value is a new sign-in, which is told. Every request does that by itself. */
  look(): void
}

/**
 * Reads the variable whenever something is asked: without it, or when it is blank, nobody is signed in.
 * @throws {HostError} `OPTIONS_INVALID`
 */
export function accountInVariable({ variable, origins, env }: EnvironmentAccountInit): EnvironmentAccount {
  return new SuppliedAccount({
    origins,
    read: () => env[variable]?.trim() || undefined,
    check(token) {
      if (isToken(token)) return
      const why = `The variable ${variable} holds something that no header can carry: put the token of the account into it`
      throw new HostError('AUTH_REQUIRED', why, { details: { variable } })
    },
  })
}
