// The account of an embedder who keeps it themselves. What their callbacks give is not believed before it has been looked at.
import { HostError, Listeners } from '../../base/index.ts'
import type { Account, AccountChange, AccountSource } from '../account.ts'
import { checkAccountOrigins, isToken, readAccount } from './account-rules.ts'

/** What {@link callbackAccount} asks. A callback that throws costs the request that needed it, and nothing else. */
export interface CallbackAccountOptions {
  /** The exact origins that may see the token: `https://api.example.com`. */
  readonly origins: readonly string[]
  /** Who is signed in now: see {@link Account}; each text has 1 to 256 characters. Undefined: nobody. Asked before and after each token. */
  signedIn(): Account | undefined
  /** The token of whoever is signed in; undefined: there is none now. At most 120 s. */
  token(): Promise<string | undefined>
  /** A server refused the token. True: there is a newer one of the same grant now. Absent: there never is. */
  refresh?(): Promise<boolean>
}

/** An account that its owner speaks for. */
export interface CallbackAccount extends AccountSource {
  /** To be told after each change: hosted servers are connected anew when the account was replaced. */
  changed(change: AccountChange): void
}

/**
 * A host that is signed in as somebody whom the program knows.
 *
 * ```ts no-run
 * import { callbackAccount, createHost } from '@convoke/host'
 *
 * let user: string | undefined = 'ada'
 * const account = callbackAccount({
 *   origins: ['https://hub.example'],
 *   signedIn: () => (user === undefined ? undefined : { id: user, grant: 'first session' }),
 *   token: async () => `token of ${user}`,
 * })
 * await using host = await createHost({ definitions: [], account })
 * user = undefined
 * account.changed('replaced') // signed out: hosted servers are connected anew, without it
 * ```
 * @throws {HostError} `OPTIONS_INVALID`
 */
export function callbackAccount(options: CallbackAccountOptions): CallbackAccount {
  return new Callbacks(options)
}

/** Who is signed in, as far as the callback says it. */
type Known =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'somebody'; readonly account: Account }
  /** There may be somebody: servers are told nothing, and not spoken to without a name either. */
  | { readonly kind: 'unknown'; readonly account: Account; readonly error: HostError }

class Callbacks implements CallbackAccount {
  readonly origins: readonly string[]
  readonly #options: CallbackAccountOptions
  readonly #listeners = new Listeners<AccountChange>()
  #known: Known
  /** A callback that makes up a new grant each time must not be asked for ever. */
  #isTelling = false

  constructor(options: CallbackAccountOptions) {
    this.origins = checkAccountOrigins(options.origins)
    this.#options = options
    this.#known = this.#ask()
  }

  current(): Account | undefined {
    this.#look()
    return this.#known.kind === 'nobody' ? undefined : this.#known.account
  }

  async token(account: Account): Promise<string | undefined> {
    if (!this.#isCurrent(account)) return undefined
    const token = await this.#call('token', () => this.#options.token())
    // Somebody else may have signed in meanwhile, and the token may be theirs.
    if (!this.#isCurrent(account)) return undefined
    if (isToken(token)) return token
    throw noToken(token === undefined ? 'the program has none' : 'what the program gave cannot be sent in a header')
  }

  async refresh(account: Account): Promise<boolean> {
    if (this.#options.refresh === undefined || !this.#isCurrent(account)) return false
    const isNewer = (await this.#call('refresh', async () => this.#options.refresh?.())) === true
    if (!isNewer || !this.#isCurrent(account)) return false
    this.#tell('refreshed')
    return true
  }

  onChange(listener: (change: AccountChange) => void): () => void {
    return this.#listeners.add(listener)
  }

  changed(change: AccountChange): void {
    if (change === 'replaced') this.#known = this.#ask()
    this.#tell(change)
  }

  #tell(change: AccountChange): void {
    this.#isTelling = true
    try {
      this.#listeners.tell(change)
    } finally {
      this.#isTelling = false
    }
  }

  /** @throws {HostError} `AUTH_REQUIRED`: nobody can tell who is signed in. */
  #isCurrent(account: Account): boolean {
    this.#look()
    const known = this.#known
    if (known.kind === 'nobody' || !isSame(known.account, account)) return false
    if (known.kind === 'unknown') throw known.error
    return true
  }

  /** Whoever changes the account and says nothing is found out here. */
  #look(): void {
    if (this.#isTelling) return
    const before = this.#known
    const now = this.#ask()
    this.#known = now
    if (!isSame(accountOf(before), accountOf(now))) this.#tell('replaced')
  }

  #ask(): Known {
    let value: unknown
    try {
      value = this.#options.signedIn()
    } catch (cause) {
      return unknown(noToken('its callback "signedIn" threw', cause))
    }
    if (value === undefined || value === null) return { kind: 'nobody' }
    const account = readAccount(value)
    if (account !== undefined) return { kind: 'somebody', account }
    return unknown(noToken('its callback "signedIn" gave no "id" and "grant" of 1 to 256 characters each'))
  }

  /** A callback may also throw before there is a promise. */
  async #call<Value>(name: string, callback: () => Promise<Value>): Promise<Value> {
    try {
      return await callback()
    } catch (cause) {
      throw noToken(`its callback "${name}" failed`, cause)
    }
  }
}

/** Stands in for whoever it is. */
const UNKNOWN: Account = Object.freeze({ id: 'unknown', grant: 'unknown' })

function unknown(error: HostError): Known {
  return { kind: 'unknown', account: UNKNOWN, error }
}

function accountOf(known: Known): Account | undefined {
  return known.kind === 'nobody' ? undefined : known.account
}

function isSame(one: Account | undefined, other: Account | undefined): boolean {
  return one?.id === other?.id && one?.grant === other?.grant
}

/** The message of the cause stays out: whoever keeps a token may have put it there. */
function noToken(why: string, cause?: unknown): HostError {
  return new HostError('AUTH_REQUIRED', `The account of this host gave no token: ${why}`, { cause })
}
