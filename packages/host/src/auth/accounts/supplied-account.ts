// An account whose token is supplied from outside. Whoever supplies another one has signed in anew, even as the same account.
import { digestHex, Listeners } from '../../base/index.ts'
import type { Account, AccountChange, AccountSource } from '../account.ts'
import { checkAccountId, checkAccountOrigins } from './account-rules.ts'

/** What a {@link SuppliedAccount} is made of. */
export interface SuppliedAccountInit {
  readonly origins: readonly string[]
  /** Default: a digest of the token. */
  readonly id?: string | undefined
  /** The token of now; undefined: nobody is signed in. */
  read(): string | undefined
  /** @throws {HostError} `AUTH_REQUIRED`: it cannot be sent. */
  check?(token: string): void
}

const DIGEST_CHARS = 32

/** Looks at its token whenever it is asked for anything: no timer, no watching. */
export class SuppliedAccount implements AccountSource {
  readonly origins: readonly string[]
  readonly #init: SuppliedAccountInit
  readonly #listeners = new Listeners<AccountChange>()
  #now: { readonly token: string; readonly account: Account } | undefined
  /** Counts what was supplied: the same text, supplied again, is another grant. */
  #count = 0

  /** @throws {HostError} `OPTIONS_INVALID` */
  constructor(init: SuppliedAccountInit) {
    this.origins = checkAccountOrigins(init.origins)
    if (init.id !== undefined) checkAccountId(init.id)
    this.#init = init
    this.#now = this.#signedIn(init.read())
  }

  current(): Account | undefined {
    this.look()
    return this.#now?.account
  }

  token(account: Account): string | undefined {
    this.look()
    const now = this.#now
    if (now?.account.grant !== account.grant) return undefined
    this.#init.check?.(now.token)
    return now.token
  }

  /** Nobody here can get another one. */
  async refresh(): Promise<boolean> {
    this.look()
    return false
  }

  onChange(listener: (change: AccountChange) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Tells whoever listens if another token is there. One comparison. */
  look(): void {
    const token = this.#init.read()
    if (token !== this.#now?.token) this.supply(token)
  }

  /** Another token, or the same one once more: a new sign-in. */
  supply(token: string | undefined): void {
    this.#count += 1
    this.#now = this.#signedIn(token)
    this.#listeners.tell('replaced')
  }

  /** The same token is the same account and grant in every process that begins with it. */
  #signedIn(token: string | undefined): { readonly token: string; readonly account: Account } | undefined {
    if (token === undefined) return undefined
    const id = this.#init.id ?? digestOf(['account', token])
    return { token, account: Object.freeze({ id, grant: digestOf(['grant', token, this.#count]) }) }
  }
}

/** Nothing of the token can be read from it, and it is equal to no digest that others make of the token alone. */
function digestOf(parts: readonly (string | number)[]): string {
  return digestHex(JSON.stringify(parts), DIGEST_CHARS)
}
