// The account of a host, for its connections: one key for each sign-in, and the token for those servers that may see it.
import { digestHex, HostError, Listeners } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { Account, AccountSource } from './account.ts'
import { type AuthSelection, selectAuth } from './select.ts'

/** Stands for one sign-in, and is compared with `===`: another object, another sign-in. Nothing of a token is in it. */
export interface AuthScopeKey {
  /** For names of caches; the same for the same account and grant in every process. */
  readonly id: string
}

/** The credentials of the account for one server, in the shape that a connection asks for. */
export interface AccountAuthorization {
  /** @throws {HostError} `AUTH_REQUIRED` once the account has been replaced: a connection never speaks as somebody else than it began as. */
  header(): Promise<string>
  /** After a 401: asks the source for a newer token of the same grant. True: there is one. */
  challenge(refusal: { readonly status: number }): Promise<boolean>
}

const SCOPE_ID_CHARS = 32

/** What a host knows of its account. Make it once; `close` ends the subscription. */
export class AccountAuth {
  readonly #source: AccountSource | undefined
  readonly #origins: readonly string[]
  readonly #stop: (() => void) | undefined
  readonly #listeners = new Listeners<void>()
  #signedIn: SignedIn | undefined
  #refreshing: Promise<boolean> | undefined

  constructor(source: AccountSource | undefined) {
    this.#source = source
    // A copy: what may see the token does not widen later.
    this.#origins = [...(source?.origins ?? [])]
    this.#read()
    this.#stop = source?.onChange((change) => {
      if (change === 'replaced') this.#replace()
    })
  }

  /** The key of the current sign-in; undefined when nobody is signed in. */
  get scopeKey(): AuthScopeKey | undefined {
    return this.#signedIn?.key
  }

  /** Whose credentials the server may see now. */
  select(definition: ServerDefinition): AuthSelection {
    return selectAuth(definition, { origins: this.#origins, isSignedIn: this.#signedIn !== undefined })
  }

  /** The key of the sign-in that speaks for the server; undefined where the account does not. */
  keyFor(definition: ServerDefinition): AuthScopeKey | undefined {
    return this.select(definition).kind === 'account' ? this.#signedIn?.key : undefined
  }

  /** The account's token for this server, bound to the sign-in of now; undefined where the account does not speak for it. */
  authorizationFor(definition: ServerDefinition): AccountAuthorization | undefined {
    const signedIn = this.#signedIn
    if (signedIn === undefined || this.select(definition).kind !== 'account') return undefined
    const { name } = definition
    return {
      header: async () => {
        const token = await this.#tokenOf(signedIn)
        if (token !== undefined) return `Bearer ${token}`
        throw new HostError('AUTH_REQUIRED', `Server "${name}" began with an account that is not signed in any more`, {
          details: { server: name },
        })
      },
      challenge: ({ status }) => (status === 401 ? this.#refresh(signedIn) : Promise.resolve(false)),
    }
  }

  /** Told after the account was replaced; its connections are to be made anew. @returns a function that ends it. */
  onReplaced(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Hears of no change any more. Idempotent. */
  close(): void {
    this.#stop?.()
    this.#listeners.clear()
  }

  #read(): void {
    const account = this.#source?.current()
    this.#signedIn = account === undefined ? undefined : { account, key: scopeKeyOf(account) }
  }

  /** A new sign-in, even of the same account, is a new key. */
  #replace(): void {
    this.#refreshing = undefined
    this.#read()
    this.#listeners.tell()
  }

  async #tokenOf(signedIn: SignedIn): Promise<string | undefined> {
    if (this.#signedIn !== signedIn) return undefined
    const token = await this.#source?.token(signedIn.account)
    // Somebody else may have signed in while the source was asked.
    return this.#signedIn === signedIn ? token : undefined
  }

  #refresh(signedIn: SignedIn): Promise<boolean> {
    const source = this.#source
    if (source === undefined || this.#signedIn !== signedIn) return Promise.resolve(false)
    if (this.#refreshing !== undefined) return this.#refreshing
    const mine = source.refresh(signedIn.account).finally(() => {
      if (this.#refreshing === mine) this.#refreshing = undefined
    })
    this.#refreshing = mine
    return mine
  }
}

interface SignedIn {
  readonly account: Account
  readonly key: AuthScopeKey
}

function scopeKeyOf({ id, grant }: Account): AuthScopeKey {
  return Object.freeze({ id: digestHex(JSON.stringify([id, grant]), SCOPE_ID_CHARS) })
}
