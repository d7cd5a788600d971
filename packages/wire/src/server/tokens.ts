// Bearer tokens of an endpoint: compared in constant time, never kept or shown in the clear.
import type * as Crypto from 'node:crypto'

/** One token and the name under which its owner is known. */
export interface AccessToken {
  readonly name: string
  readonly token: string
}

const TOKEN_CHARS_MIN = 32
const BEARER = /^Bearer ([!-~]+)$/i
const crypto = process.getBuiltinModule('node:crypto') as typeof Crypto

/** A new token: 256 random bits, 43 characters. */
export function createToken(): string {
  return crypto.randomBytes(32).toString('base64url')
}

/** Why this text is no token to rely on; undefined: it is one. */
export function tokenFault(token: string): string | undefined {
  if (token.length < TOKEN_CHARS_MIN) return `it has fewer than ${TOKEN_CHARS_MIN} characters`
  if (!/^[!-~]+$/.test(token)) return 'it has characters other than visible ASCII'
  return new Set(token).size < 8 ? 'it repeats a few characters' : undefined
}

/** Who shows a token. Holds digests only. */
export class TokenCheck {
  readonly #known: readonly { readonly name: string; readonly digest: Buffer }[]

  /** Without tokens everybody is `local`. */
  constructor(tokens: readonly AccessToken[]) {
    this.#known = tokens.map(({ name, token }) => ({ name, digest: digestOf(token) }))
  }

  /** The owner of the token in this Authorization header. Undefined: none, a wrong one, or not exactly `Bearer TOKEN`. */
  readonly owner = (authorization: string | undefined): string | undefined => {
    if (this.#known.length === 0) return 'local'
    const token = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]
    if (token === undefined) return undefined
    const shown = digestOf(token)
    let owner: string | undefined
    // All are compared, whichever fits: the time says nothing about which one it was.
    for (const { name, digest } of this.#known) if (crypto.timingSafeEqual(digest, shown)) owner = name
    return owner
  }
}

/** Counts wrong tokens by address, so that a flood costs a counter and nothing else. A right token is never counted or refused. */
export class FailureCount {
  readonly #failures = new Map<string, { count: number; sinceMs: number }>()
  readonly #now: () => number
  readonly #failuresMax: number

  constructor(now: () => number, failuresPerMinuteMax: number) {
    this.#now = now
    this.#failuresMax = failuresPerMinuteMax
  }

  /** Notes one failure. True: this address has had too many within a minute. */
  note(address: string): boolean {
    const nowMs = this.#now()
    let entry = this.#failures.get(address)
    if (entry === undefined || nowMs - entry.sinceMs > MINUTE_MS) {
      this.#failures.delete(address) // so that it becomes the newest
      if (this.#failures.size >= ADDRESSES_MAX)
        for (const oldest of this.#failures.keys()) if (this.#failures.delete(oldest)) break
      this.#failures.set(address, (entry = { count: 0, sinceMs: nowMs }))
    }
    return ++entry.count > this.#failuresMax
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#failures.size
  }
}

const MINUTE_MS = 60_000
const ADDRESSES_MAX = 1_024

function digestOf(token: string): Buffer {
  return crypto.createHash('sha256').update(token).digest()
}
