// What one connection speaks with: the sign-in that was stored when it first spoke, and no other one ever.
import { HostError } from '../base/index.ts'
import type { TokenSet } from './grant.ts'
import type { GrantHolder } from './grant-holder.ts'
import type { OAuthPort } from './oauth/port.ts'

/** A server refused credentials. */
export interface Refusal {
  readonly status: number
  readonly wwwAuthenticate: string | undefined
  /** The exact value of `Authorization` that was refused; undefined: none was sent. */
  readonly refused: string | undefined
  /** How often this request had been sent again for want of credentials. */
  readonly round: number
}

/** Makes proofs of possession with the key of a sign-in (RFC 9449). */
export interface ProofMaker {
  proof(request: { readonly method: string; readonly url: string; readonly accessToken: string }): Promise<string>
  rememberNonce(url: string, nonce: string): void
}

/** What a {@link SignInAuthorization} is made of. */
export interface SignInAuthorizationOptions {
  readonly serverUrl: string
  readonly timers: Pick<OAuthPort, 'setTimer' | 'clearTimer'>
  /** Finds the sign-in; undefined: there is none. @throws {HostError} `CREDENTIALS_UNAVAILABLE` */
  find(): Promise<GrantHolder | undefined>
  /** The key that tokens of this sign-in are bound to. */
  proofs(holder: GrantHolder): Promise<ProofMaker | undefined>
  /** Told of every refusal of a server that no renewal could help: the next sign-in asks for what it wants. */
  onRefused(refusal: Refusal, holder: GrantHolder | undefined): Promise<void>
}

/** How long a request waits for a renewal while the token that there is has not ended, in milliseconds. */
const PATIENCE_MS = 2_000

/** Credentials of one HTTP server, in the shape that a connection asks for. */
export class SignInAuthorization {
  readonly #options: SignInAuthorizationOptions
  #found: Promise<GrantHolder | undefined> | undefined
  #holder: GrantHolder | undefined
  #isNobody = false
  /** A renewal that took longer than anybody waits for: until it ends, the token that there is goes out at once. */
  #overdue: Promise<TokenSet> | undefined
  /** The header of the token that was sent last: made once per token. */
  #sent: { readonly tokens: TokenSet; readonly value: string } | undefined
  #proofs: Promise<ProofMaker | undefined> | undefined

  constructor(options: SignInAuthorizationOptions) {
    this.#options = options
  }

  /** At once as long as the token in memory is good. */
  header(): string | undefined | Promise<string | undefined> {
    if (this.#isNobody) return undefined
    const tokens = this.#holder?.ended === undefined ? this.#tokensNow(this.#holder) : undefined
    return tokens === undefined ? this.#findHeader() : this.#valueOf(tokens)
  }

  #tokensNow(holder: GrantHolder | undefined): TokenSet | undefined {
    return holder?.tokens ?? (this.#overdue === undefined ? undefined : holder?.lasting)
  }

  async #findHeader(): Promise<string | undefined> {
    const holder = await this.#find()
    return holder === undefined ? undefined : this.#valueOf(await this.#current(holder))
  }

  /** A renewal goes on whoever waits for it. As long as the old token does, nobody has to for long: an authorization server may hang. */
  async #current(holder: GrantHolder): Promise<TokenSet> {
    const { timers } = this.#options
    const current = holder.current()
    let timer: object | undefined
    const passed = new Promise<undefined>((resolve) => {
      timer = timers.setTimer(() => resolve(undefined), PATIENCE_MS)
    })
    try {
      const tokens = (await Promise.race([current, passed])) ?? this.#lastingBeyond(current, holder)
      return tokens ?? (await current)
    } finally {
      timers.clearTimer(timer)
    }
  }

  #lastingBeyond(current: Promise<TokenSet>, holder: GrantHolder): TokenSet | undefined {
    this.#overdue = current
    const end = (): void => {
      if (this.#overdue === current) this.#overdue = undefined
    }
    current.then(end, end)
    return holder.lasting
  }

  #valueOf(tokens: TokenSet): string {
    if (this.#sent?.tokens !== tokens)
      this.#sent = { tokens, value: `${tokens.type === 'DPoP' ? 'DPoP' : 'Bearer'} ${tokens.accessToken}` }
    return this.#sent.value
  }

  /**
   * One refresh, and after it at most one newer token that somebody else has got, for each request.
   * @throws {HostError} `REFRESH_FAILED`, `CREDENTIALS_UNAVAILABLE`: it may work another time.
   */
  async challenge(refusal: Refusal): Promise<boolean> {
    const { status, refused, round } = refusal
    const holder = this.#holder
    const accessToken = refused?.replace(/^(?:Bearer|DPoP) /i, '')
    if (status !== 401 || holder === undefined || accessToken === undefined) {
      await this.#options.onRefused(refusal, holder)
      return false
    }
    const renewal = await holder.renew({ kind: 'rejected', accessToken }, { mayRefresh: round === 0 })
    switch (renewal.kind) {
      case 'current':
        return true
      case 'sign-in':
        await this.#options.onRefused(refusal, holder)
        return false
      case 'failed':
        throw renewal.error
    }
  }

  /** The proof that goes along with a bound token. */
  async proof(request: {
    readonly method: string
    readonly url: string
    readonly authorization: string
  }): Promise<string | undefined> {
    if (!request.authorization.startsWith('DPoP ')) return undefined
    const maker = await this.#proofMaker()
    if (maker === undefined)
      throw new HostError('AUTH_FAILED', 'The key that the token of this server is bound to is not there any more')
    const { method, url, authorization } = request
    return maker.proof({ method, url, accessToken: authorization.slice('DPoP '.length) })
  }

  /** Kept for the next proof. */
  sawNonce(nonce: string): void {
    if (this.#holder?.record?.tokens.type !== 'DPoP') return
    // Without a key there is nothing to keep it for; whoever needs the proof is told.
    void this.#proofMaker().then(
      (maker) => maker?.rememberNonce(this.#options.serverUrl, nonce),
      () => {},
    )
  }

  #proofMaker(): Promise<ProofMaker | undefined> {
    const holder = this.#holder
    if (holder === undefined) return Promise.resolve(undefined)
    const proofs = (this.#proofs ??= this.#options.proofs(holder))
    proofs.catch(() => {
      if (this.#proofs === proofs) this.#proofs = undefined
    })
    return proofs
  }

  #find(): Promise<GrantHolder | undefined> {
    const found = (this.#found ??= this.#options.find())
    found.then(
      (holder) => {
        this.#holder = holder
        this.#isNobody = holder === undefined
      },
      () => {
        // What could not be read now may be read another time.
        if (this.#found === found) this.#found = undefined
      },
    )
    return found
  }
}
