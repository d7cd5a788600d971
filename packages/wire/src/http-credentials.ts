// The headers that every request to a server carries besides those of the protocol: configured ones, those of a helper, and who we are. Knows when they
// have to be made anew, and lets all requests that were refused together wait for one renewal.
import type { Call } from './call.ts'
import { WireError } from './errors.ts'
import type { ExchangeSink, FailureFacts } from './http-port.ts'
import { type Challenge, noteRound, planChallenge, planRenewal, type Renewals } from './http-renewal.ts'
import type { Waiting } from './http-waiting.ts'
import { headerFault, isReserved } from './outbound-rules.ts'
import type { Authorization, HttpTarget } from './target.ts'

/** Headers of one request, and where they come from. */
export interface Attached {
  /** Flat, names in lower case, checked. */
  readonly headers: readonly string[]
  /** The value of `Authorization` that `HttpTarget.authorization` gave. */
  readonly authorization: string | undefined
  /** The value of `DPoP`: for this one request. */
  readonly proof: string | undefined
  /** Counts what the provider has given. */
  readonly generation: number
}

/** What the credentials need of the channel. */
export interface CredentialsHost {
  readonly waiting: Waiting
  /** Somebody is still interested in what becomes of this request. */
  isWanted(call: Call | undefined): boolean
}

const PROVIDED_HEADERS_MAX = 64
/** Values of `Authorization` that are remembered, so that none of them is shown. */
const SHOWN_MAX = 4
const USER_AGENT = 'convoke'
/** A nonce (RFC 9449 8.1). */
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{1,4096}$/

export class Credentials {
  readonly #target: HttpTarget
  readonly #url: URL
  readonly #host: CredentialsHost
  readonly #configured: ReadonlyMap<string, string>
  #provided: ReadonlyMap<string, string> | undefined
  #asking: Promise<void> | undefined
  #generation = 0
  #last: Attached | undefined
  readonly #shown: string[] = []
  readonly #renewing = new Map<string, Promise<boolean>>()

  /** @throws {WireError} `refused`: a configured header is not one that HTTP allows. Reserved ones are left out: this package writes them. */
  constructor(target: HttpTarget, url: URL, host: CredentialsHost) {
    this.#target = target
    this.#url = url
    this.#host = host
    this.#configured = configuredHeaders(target, url)
    if (target.headersProvider === undefined) this.#provided = new Map()
  }

  /** Decorated by a helper: such requests are never redirected. */
  get isProvided(): boolean {
    return this.#target.headersProvider !== undefined
  }

  /**
   * The headers of one request that is sent now. At once where nothing has to be asked. A promise rejects with `refused` or `unauthorized`.
   * @param ready What `renew` gave: its source is not asked again.
   */
  attach(method: string, path: string, call: Call | undefined, ready?: Attached): Attached | Promise<Attached> {
    const bare = ready ?? this.#bare(call)
    const { authorization } = this.#target
    if (authorization?.proof === undefined) return bare
    const prove = (to: Attached): Attached | Promise<Attached> => this.#proven(to, method, path, call)
    return bare instanceof Promise ? bare.then(prove) : prove(bare)
  }

  /** Without a proof. */
  #bare(call: Call | undefined): Attached | Promise<Attached> {
    if (this.#provided === undefined) return this.#ask().then(() => this.#bare(call))
    const { authorization } = this.#target
    if (authorization === undefined) return this.#with(undefined)
    const value = this.#asked(() => authorization.header(), call)
    return value instanceof Promise ? value.then((late) => this.#with(late)) : this.#with(value)
  }

  #proven(bare: Attached, method: string, path: string, call: Call | undefined): Attached | Promise<Attached> {
    const { authorization: source } = this.#target
    const { authorization } = bare
    if (source?.proof === undefined || authorization === undefined) return bare
    const { href: url } = new URL(path, this.#url)
    const proof = this.#asked(() => source.proof?.({ method, url, authorization }), call)
    return proof instanceof Promise ? proof.then((late) => withProof(bare, late)) : withProof(bare, proof)
  }

  /** Asks the source. A throw, now or later, is `unauthorized`. */
  #asked(
    ask: () => string | undefined | Promise<string | undefined>,
    call: Call | undefined,
  ): string | undefined | Promise<string | undefined> {
    let value: string | undefined | Promise<string | undefined>
    try {
      value = ask()
    } catch (cause) {
      return Promise.reject(noCredentials(cause))
    }
    if (value === undefined || typeof value === 'string') return value
    const { waiting } = this.#host
    return waiting.wait(call, waiting.limited(value)).catch((cause: unknown) => Promise.reject(noCredentials(cause)))
  }

  /** What messages must not show. */
  get secrets(): string[] {
    const values = [...this.#configured, ...(this.#provided ?? [])]
      .filter(([name]) => name !== 'user-agent')
      .map(([, value]) => value)
    return [...values, ...this.#shown].flatMap((value) => [value, value.replace(/^[A-Za-z-]+\s+/, '')])
  }

  #with(authorization: string | undefined): Attached {
    const last = this.#last
    if (last !== undefined && last.authorization === authorization && last.generation === this.#generation) return last
    const merged = new Map([...this.#configured, ...(this.#provided ?? [])])
    if (authorization !== undefined) {
      checkCredentials('authorization', authorization)
      merged.set('authorization', authorization)
      this.#remember(authorization)
    }
    return (this.#last = {
      headers: [...merged].flat(),
      authorization,
      proof: undefined,
      generation: this.#generation,
    })
  }

  /** An answer may come late, and repeat what was sent before the last renewal. */
  #remember(authorization: string): void {
    const at = this.#shown.indexOf(authorization)
    if (at >= 0) this.#shown.splice(at, 1)
    this.#shown.push(authorization)
    if (this.#shown.length > SHOWN_MAX) this.#shown.shift()
  }

  /** Passes on what the server says about its next proof. */
  hearing(sink: ExchangeSink): ExchangeSink {
    const { authorization } = this.#target
    return authorization?.sawNonce === undefined ? sink : new NonceSink(sink, authorization)
  }

  #ask(): Promise<void> {
    return (this.#asking ??= this.#askProvider().finally(() => {
      this.#asking = undefined
    }))
  }

  async #askProvider(): Promise<void> {
    const provider = this.#target.headersProvider
    if (provider === undefined) return
    let given: Readonly<Record<string, string>>
    try {
      given = await provider.headers()
    } catch (cause) {
      throw new WireError('unauthorized', 'The headers of this server could not be made', { cause, sent: false })
    }
    const checked = checkProvided(given)
    if (this.#provided !== undefined && fingerprint(checked, false) === fingerprint(this.#provided, false)) return
    this.#provided = checked
    this.#generation++
  }

  /**
   * After a 401 or 403: what to send again with, or undefined: the refusal stands. Requests that were refused alike share one renewal.
   * Rejects with what the renewal failed with.
   */
  async renew(
    refused: Attached,
    challenge: Challenge,
    renewals: Renewals,
    call: Call | undefined,
  ): Promise<Attached | undefined> {
    const facts = {
      challenge,
      hadProof: refused.proof !== undefined,
      hasHelper: this.isProvided,
      hasSource: this.#target.authorization !== undefined,
    }
    let step = planRenewal(facts, renewals)
    if (step === 'prove-again') {
      renewals.hasProved = true
      return this.#bare(call)
    }
    if (step === 'ask-helper') {
      renewals.hasAskedHelper = true
      if (await this.#renewedByHelper(refused, challenge)) return this.#bare(call)
      step = planRenewal(facts, renewals)
    }
    if (step === 'look') {
      const now = await this.#bare(call)
      if (now.authorization !== refused.authorization) {
        noteRound(renewals, 'adopted')
        return now
      }
      step = planChallenge(renewals)
    }
    if (step !== 'challenge' || !this.#host.isWanted(call)) return undefined
    return (await this.#challenged(refused, challenge, renewals, call)) ? this.#bare(call) : undefined
  }

  async #renewedByHelper(refused: Attached, { status }: Challenge): Promise<boolean> {
    if (refused.generation !== this.#generation) return true
    return this.#once('provider', () => this.#renewProvided(status, refused.authorization !== undefined))
  }

  #challenged(
    { authorization: refused }: Attached,
    { status, wwwAuthenticate }: Challenge,
    renewals: Renewals,
    call: Call | undefined,
  ): Promise<boolean> {
    const { waiting } = this.#host
    const refusal = { status, wwwAuthenticate, refused, round: renewals.rounds }
    noteRound(renewals, 'challenged')
    // An async function: a source that throws at once has failed like any other.
    const ask = async (): Promise<boolean> => (await this.#target.authorization?.challenge(refusal)) === true
    return waiting.wait(
      call,
      this.#once(JSON.stringify(refusal), () => waiting.limited(ask())),
    )
  }

  #once(key: string, renew: () => Promise<boolean>): Promise<boolean> {
    let running = this.#renewing.get(key)
    if (running === undefined) {
      running = renew().finally(() => this.#renewing.delete(key))
      this.#renewing.set(key, running)
    }
    return running
  }

  /** A helper that fails, or gives the same again, changes nothing: the server's refusal stands. */
  async #renewProvided(status: number, overridden: boolean): Promise<boolean> {
    const before = fingerprint(this.#provided, overridden)
    try {
      if ((await this.#target.headersProvider?.refused(status)) !== true) return false
      await this.#ask()
    } catch {
      return false
    }
    return fingerprint(this.#provided, overridden) !== before
  }
}

function configuredHeaders({ headers = {} }: HttpTarget, url: URL): Map<string, string> {
  const configured = new Map([['user-agent', USER_AGENT]])
  for (const [written, value] of Object.entries(headers)) {
    const name = written.toLowerCase()
    const fault = headerFault(name, value)
    if (fault !== undefined) throw new WireError('refused', `The configuration has ${fault}`, { sent: false })
    if (!isReserved(name)) configured.set(name, value.trim())
  }
  if ((url.username !== '' || url.password !== '') && !configured.has('authorization'))
    configured.set(
      'authorization',
      `Basic ${Buffer.from(`${decode(url.username)}:${decode(url.password)}`).toString('base64')}`,
    )
  return configured
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function checkProvided(given: unknown): Map<string, string> {
  const entries = typeof given === 'object' && given !== null ? Object.entries(given) : undefined
  if (entries === undefined || entries.length > PROVIDED_HEADERS_MAX)
    throw new WireError('refused', `The headers helper gave no object of at most ${PROVIDED_HEADERS_MAX} headers`, {
      sent: false,
    })
  const checked = new Map<string, string>()
  for (const [written, value] of entries) {
    const name = written.toLowerCase()
    const fault = providedFault(name, value, checked)
    if (fault !== undefined) throw new WireError('refused', `The headers helper gave ${fault}`, { sent: false })
    checked.set(name, value.trim())
  }
  return checked
}

function providedFault(name: string, value: unknown, sofar: ReadonlyMap<string, string>): string | undefined {
  if (typeof value !== 'string') return 'a header that is not text'
  const fault = headerFault(name, value)
  if (fault !== undefined) return fault
  if (isReserved(name)) return `the header "${name}", which is not its to set`
  return sofar.has(name) ? `the header "${name}" twice` : undefined
}

function fingerprint(headers: ReadonlyMap<string, string> | undefined, withoutAuthorization: boolean): string {
  return JSON.stringify(
    [...(headers ?? [])].filter(([name]) => !withoutAuthorization || name !== 'authorization').sort(),
  )
}

/** Credentials that no header can carry. */
function checkCredentials(name: string, value: string): void {
  const fault = headerFault(name, value)
  if (fault !== undefined) throw new WireError('refused', `The credentials are ${fault}`, { sent: false })
}

/** For one request. Whatever is configured under the name gives way. */
function withProof(bare: Attached, proof: string | undefined): Attached {
  if (proof === undefined) return bare
  checkCredentials('dpop', proof)
  const others = bare.headers.filter((_, at) => bare.headers[at - (at % 2)] !== 'dpop')
  return { ...bare, headers: [...others, 'dpop', proof], proof }
}

/** Looks at each answer for a nonce. */
class NonceSink implements ExchangeSink {
  readonly #sink: ExchangeSink
  readonly #source: Authorization

  constructor(sink: ExchangeSink, source: Authorization) {
    this.#sink = sink
    this.#source = source
  }

  head(status: number, header: (name: string) => string | undefined): void {
    const nonce = header('dpop-nonce')
    if (nonce !== undefined && NONCE.test(nonce))
      try {
        this.#source.sawNonce?.(nonce)
      } catch {
        /* its own business */
      }
    this.#sink.head(status, header)
  }

  data(chunk: Buffer): void {
    this.#sink.data(chunk)
  }

  end(): void {
    this.#sink.end()
  }

  fail(error: WireError, facts: FailureFacts): void {
    this.#sink.fail(error, facts)
  }
}

function noCredentials(cause: unknown): WireError {
  return cause instanceof WireError
    ? cause
    : new WireError('unauthorized', 'No credentials could be had for this server', { cause, sent: false })
}
