// The account of a hub: a person signs in to it with a browser or a code, and it is kept and renewed as the sign-ins of servers are.
import { HostError, Lane, Listeners } from '../../base/index.ts'
import type { ServerDefinition } from '../../config/index.ts'
import type { Account, AccountChange, AccountSource } from '../account.ts'
import type { SignInOptions } from '../authorization-servers.ts'
import type { SignInAuthorization } from '../sign-in-authorization.ts'
import type { SignInStatus } from '../sign-in-status.ts'
import type { SignInChange } from '../sign-in-tools.ts'
import type { SignedIn, SignedOut, SignIns } from '../sign-ins.ts'
import { checkAccountOrigins } from './account-rules.ts'

/** What a {@link SignInAccount} is made of. */
export interface SignInAccountInit {
  /** For messages. */
  readonly name: string
  /** Stands for the hub. Its name is one that no configuration can have: no entry ever speaks with this sign-in. */
  readonly definition: ServerDefinition
  readonly origins: readonly string[]
  signIns(onChange: (change: SignInChange) => void): SignIns
  /** Monotonic, in milliseconds. */
  now(): number
}

/** Time between two looks at what other programs have done to the sign-in, in milliseconds. */
const LOOK_MS_MIN = 1_000
/** A token that was had because the one before was refused, and is refused as well within so many milliseconds, is not renewed again. */
const RENEWAL_MS_MIN = 60_000
/** So that it is known who has signed in, and that it lasts. */
const IDENTITY_SCOPES = ['openid', 'profile', 'offline_access']

/** One sign-in as it was found. */
interface Current {
  readonly account: Account
  readonly authorization: SignInAuthorization | undefined
  /** The value of `Authorization` that was given out last. */
  sent: string | undefined
  /** Has it been seen that what speaks is this sign-in, and not one that took its place meanwhile? */
  isConfirmed: boolean
  /** When a refusal led to another token, by {@link SignInAccountInit.now}. */
  renewedAtMs: number
}

/** A person's account, for `createHost({ account })`. It is there before the host, and disposed of after it. */
export class SignInAccount implements AccountSource, AsyncDisposable {
  readonly origins: readonly string[]
  readonly #init: SignInAccountInit
  readonly #signIns: SignIns
  readonly #listeners = new Listeners<AccountChange>()
  readonly #lane = new Lane()
  #current: Current | undefined
  /** Another one after each change that this program has made itself: what was read before counts no more. */
  #epoch = 0
  #lookedAtMs = Number.NEGATIVE_INFINITY

  private constructor(init: SignInAccountInit) {
    this.origins = checkAccountOrigins(init.origins)
    this.#init = init
    this.#signIns = init.signIns((change) => this.#noteChange(change))
  }

  /** Touches neither the network nor a keyring. @throws {HostError} `OPTIONS_INVALID` */
  static async open(init: SignInAccountInit): Promise<SignInAccount> {
    const account = new SignInAccount(init)
    await account.#read()
    return account
  }

  current(): Account | undefined {
    return this.#current?.account
  }

  /**
   * Renewed where it has to be, in the one transaction of all programs.
   * @throws {HostError} `AUTH_REQUIRED`: a person has to sign in; `AUTH_FAILED`, `CREDENTIALS_UNAVAILABLE`, `REFRESH_FAILED`.
   */
  async token(account: Account): Promise<string | undefined> {
    await this.look()
    const mine = this.#matching(account)
    if (mine === undefined) return undefined
    const header = await this.#guard(async () => mine.authorization?.header())
    if (header === undefined || !mine.isConfirmed) await this.#read()
    // Somebody else may have signed in while it was read.
    if (header === undefined || this.#current !== mine) return undefined
    mine.isConfirmed = true
    mine.sent = header
    return this.#bearerOf(header)
  }

  async refresh(account: Account): Promise<boolean> {
    const mine = this.#matching(account)
    const refused = mine?.sent
    if (mine === undefined || refused === undefined) return false
    const round = this.#init.now() - mine.renewedAtMs < RENEWAL_MS_MIN ? 1 : 0
    const refusal = { status: 401, wwwAuthenticate: undefined, refused, round }
    const isNewer = (await this.#guard(async () => mine.authorization?.challenge(refusal))) === true
    if (!isNewer || this.#current !== mine) return false
    mine.renewedAtMs = this.#init.now()
    return true
  }

  onChange(listener: (change: AccountChange) => void): () => void {
    return this.#listeners.add(listener)
  }

  /**
   * Finds a sign-in or sign-out by another program, and tells it. One look a second; every request of a hosted server looks by itself. Never rejects.
   */
  async look(): Promise<void> {
    if (this.#init.now() - this.#lookedAtMs >= LOOK_MS_MIN) await this.#read()
  }

  /**
   * Lets a person sign in: with a browser of this machine, or, with `onCode`, with a code on any device. What was there before is used until then, and stays
   * if it fails. Hosted servers are connected anew before it resolves, or at least begin to be.
   * @throws {HostError} `SIGN_IN_FAILED`, `SIGN_IN_TIMEOUT`, `CREDENTIALS_UNAVAILABLE`; `CANCELLED` on abort.
   */
  async signIn(options: SignInOptions = {}): Promise<SignedIn> {
    const { definition, name } = this.#init
    const asked = { scopesIfListed: IDENTITY_SCOPES, ...options }
    const signedIn = await this.#guard(() => this.#signIns.signIn(definition, asked))
    await this.#read()
    return { ...signedIn, server: name }
  }

  /**
   * Deletes the sign-in here, at which hosted servers lose it at once, and then tells the authorization server (10 s at most).
   * @throws {HostError} `CREDENTIALS_UNAVAILABLE`: it could not be deleted, and is still there; `CANCELLED` on abort before that.
   */
  async signOut(options: { readonly signal?: AbortSignal } = {}): Promise<SignedOut> {
    const { definition, name } = this.#init
    const signedOut = await this.#guard(() => this.#signIns.signOut(definition, options))
    await this.#read()
    return { ...signedOut, server: name }
  }

  /** Who is signed in, until when, where that is kept, when it was renewed last; never a token. Asks nobody. */
  async status(): Promise<SignInStatus> {
    return { ...(await this.#signIns.status(this.#init.definition)), server: this.#init.name }
  }

  /** Tells nobody any more. Renewals under way go on. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear()
    await this.#signIns.close()
  }

  /** Reads which sign-in there is, one look after the other. Never rejects. */
  async #read(): Promise<void> {
    const leave = await this.#lane.enter()
    try {
      for (let epoch = -1; epoch !== this.#epoch; ) {
        epoch = this.#epoch
        this.#lookedAtMs = this.#init.now()
        const { snapshot, record = '' } = await this.#signIns.read(this.#init.definition)
        if (epoch === this.#epoch) this.#use(found(snapshot, record))
      }
    } finally {
      leave()
    }
  }

  /** What cannot be read now is no sign-out: who is signed in stays, and where nobody was, servers wait for it. */
  #use(account: Account | 'unreadable' | undefined): void {
    if (account === 'unreadable' && this.#current !== undefined) return
    this.#replace(account === 'unreadable' ? UNREADABLE : account)
  }

  #replace(account: Account | undefined): void {
    if (account?.grant === this.#current?.account.grant) return
    this.#current =
      account === undefined
        ? undefined
        : {
            account,
            authorization: this.#signIns.authorizationFor(this.#init.definition),
            sent: undefined,
            isConfirmed: false,
            renewedAtMs: Number.NEGATIVE_INFINITY,
          }
    this.#listeners.tell('replaced')
  }

  #noteChange({ change }: SignInChange): void {
    switch (change) {
      case 'refreshed':
        return this.#listeners.tell('refreshed')
      case 'signed-in':
        // Whoever signs in reads it.
        this.#epoch += 1
        return
      case 'signed-out':
        // At once: the authorization server is told later.
        this.#epoch += 1
        return this.#replace(undefined)
      case 'ended':
        // Perhaps somebody has signed in anew, or out.
        void this.#read()
    }
  }

  #matching(account: Account): Current | undefined {
    return this.#current?.account.grant === account.grant ? this.#current : undefined
  }

  #bearerOf(header: string): string {
    if (header.startsWith('Bearer ')) return header.slice('Bearer '.length)
    const { name } = this.#init
    throw new HostError(
      'AUTH_FAILED',
      `The tokens of the account "${name}" are bound to a key, and servers would have to be shown proofs of it: such an account cannot be used`,
      { details: { account: name } },
    )
  }

  /** Errors speak of the account, and say what to do. */
  async #guard<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work()
    } catch (error) {
      throw HostError.is(error) ? this.#told(error) : error
    }
  }

  #told(error: HostError): HostError {
    const { name, definition } = this.#init
    const { server: _, ...details } = error.details
    const words = error.message.replaceAll(definition.name, name)
    const message = error.code === 'AUTH_REQUIRED' ? `${words}. Sign in to the account of this host again` : words
    return new HostError(error.code, message, { details: { ...details, account: name }, cause: error.cause })
  }
}

/** Stands in for whoever it is. */
const UNREADABLE: Account = Object.freeze({ id: 'unreadable', grant: 'unreadable' })

function found(
  snapshot: Awaited<ReturnType<SignIns['read']>>['snapshot'],
  record: string,
): Account | 'unreadable' | undefined {
  switch (snapshot.kind) {
    case 'none':
      return undefined
    case 'unreadable':
      return 'unreadable'
    case 'value':
      return Object.freeze({ id: record, grant: snapshot.key })
  }
}
