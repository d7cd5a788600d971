// The headers that every request to a server carries besides those of the protocol: configured ones, those of a helper, and who we are. Knows when they
// have to be made anew, and lets all requests that were refused together wait for one renewal.
import { WireError } from './errors.ts'
import { headerFault, isReserved } from './outbound-rules.ts'
import type { HttpTarget } from './target.ts'

/** Headers of one request, and where they come from. */
export interface Attached {
  /** Flat, names in lower case, checked. */
  readonly headers: readonly string[]
  /** The value of `Authorization` that `HttpTarget.authorization` gave. */
  readonly authorization: string | undefined
  /** Counts what the provider has given. */
  readonly generation: number
}

/** A refusal for want of credentials. */
export interface Challenge {
  readonly status: number
  readonly wwwAuthenticate: string | undefined
}

/** How often one request was sent again with new credentials. */
export interface Renewals {
  authorization: number
  provider: number
}

const AUTH_RENEWALS_MAX = 3
const PROVIDED_HEADERS_MAX = 64
const USER_AGENT = 'convoke'

export class Credentials {
  readonly #target: HttpTarget
  readonly #configured: ReadonlyMap<string, string>
  #provided: ReadonlyMap<string, string> | undefined
  #asking: Promise<void> | undefined
  #generation = 0
  #last: Attached | undefined
  readonly #renewing = new Map<string, Promise<boolean>>()

  /** @throws {WireError} `refused`: a configured header is not one that HTTP allows. Reserved ones are left out: this package writes them. */
  constructor(target: HttpTarget, url: URL) {
    this.#target = target
    this.#configured = configuredHeaders(target, url)
    if (target.headersProvider === undefined) this.#provided = new Map()
  }

  /** Decorated by a helper: such requests are never redirected. */
  get isProvided(): boolean {
    return this.#target.headersProvider !== undefined
  }

  /** At once where nothing has to be asked. A promise rejects with `refused` or `unauthorized`. */
  attach(): Attached | Promise<Attached> {
    if (this.#provided === undefined) return this.#ask().then(() => this.attach())
    const { authorization } = this.#target
    if (authorization === undefined) return this.#with(undefined)
    let value: string | undefined | Promise<string | undefined>
    try {
      value = authorization.header()
    } catch (cause) {
      return Promise.reject(noCredentials(cause))
    }
    if (value === undefined || typeof value === 'string') return this.#with(value)
    return value.then(
      (late) => this.#with(late),
      (cause: unknown) => Promise.reject(noCredentials(cause)),
    )
  }

  /** What messages must not show. */
  get secrets(): string[] {
    const values = [...this.#configured, ...(this.#provided ?? [])]
      .filter(([name]) => name !== 'user-agent')
      .map(([, value]) => value)
    if (this.#last?.authorization !== undefined) values.push(this.#last.authorization)
    return values.flatMap((value) => [value, value.replace(/^[A-Za-z-]+\s+/, '')])
  }

  #with(authorization: string | undefined): Attached {
    const last = this.#last
    if (last !== undefined && last.authorization === authorization && last.generation === this.#generation) return last
    const merged = new Map([...this.#configured, ...(this.#provided ?? [])])
    if (authorization !== undefined) {
      const fault = headerFault('authorization', authorization)
      if (fault !== undefined) throw new WireError('refused', `The credentials are ${fault}`, { sent: false })
      merged.set('authorization', authorization)
    }
    return (this.#last = { headers: [...merged].flat(), authorization, generation: this.#generation })
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
   * After a 401 or 403. True: there are other credentials than the refused ones; send again. Requests that were refused alike share one renewal.
   * Rejects with what the renewal failed with.
   */
  async renew(refused: Attached, challenge: Challenge, renewals: Renewals): Promise<boolean> {
    if (this.isProvided && renewals.provider === 0 && !asksForScope(challenge)) {
      renewals.provider++
      if (refused.generation !== this.#generation) return true
      const fresh = await this.#once('provider', () =>
        this.#renewProvided(challenge.status, refused.authorization !== undefined),
      )
      if (fresh) return true
    }
    const { authorization } = this.#target
    if (authorization === undefined || renewals.authorization >= AUTH_RENEWALS_MAX) return false
    renewals.authorization++
    const now = await this.attach()
    if (now.authorization !== refused.authorization) return true
    const { status, wwwAuthenticate } = challenge
    const round = renewals.authorization - 1
    return this.#once(`${status} ${refused.authorization} ${wwwAuthenticate}`, () =>
      authorization.challenge({ status, wwwAuthenticate, refused: refused.authorization, round }),
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

/** The refusal is about what the token may do, not about who we are (RFC 6750 3.1). */
function asksForScope({ status, wwwAuthenticate = '' }: Challenge): boolean {
  return status === 403 && /\berror\s*=\s*"?insufficient_scope\b/i.test(wwwAuthenticate)
}

function noCredentials(cause: unknown): WireError {
  return cause instanceof WireError
    ? cause
    : new WireError('unauthorized', 'No credentials could be had for this server', { cause, sent: false })
}
