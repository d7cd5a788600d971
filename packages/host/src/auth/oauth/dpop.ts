// Proof of possession (RFC 9449): tokens that are of no use without a key. The key is a JWK, so that it can be kept beside the tokens.
import type { webcrypto } from 'node:crypto'
import type { DpopSession } from '@modelcontextprotocol/client'
import { digestOf } from './digest.ts'
import { loadSdk } from './sdk.ts'
import { SignInError } from './sign-in-error.ts'

/** A private key, as a record keeps it. */
export type DpopKey = Readonly<Record<string, unknown>>

/** The request that a proof is for. */
export interface ProvenRequest {
  readonly method: string
  readonly url: string
  /** The token that goes along. Absent: a request for a token. */
  readonly accessToken?: string
  /** Default: the last one that this origin gave. */
  readonly nonce?: string | undefined
}

/** One key at work. Remembers the nonce of each origin. */
export interface Dpop {
  /** RFC 7638; the authorization server binds tokens to it. */
  readonly thumbprint: string
  /** The value of the `DPoP` header, for one request. */
  proof(request: ProvenRequest): Promise<string>
  /** The value of a `DPoP-Nonce` header, of any answer. What is no nonce is left. */
  rememberNonce(url: string, nonce: string | undefined): void
  /** For the SDK. */
  readonly session: DpopSession
}

interface PublicJwk {
  readonly crv: string
  readonly kty: string
  readonly x: string
  readonly y: string
}

const ALGORITHM = 'ES256'
const CURVE = { name: 'ECDSA', namedCurve: 'P-256' } as const
const NONCE = /^[\x21-\x7e]{1,1024}$/

/** Can tokens of this authorization server be bound to a key of ours? */
export function canBind(algorithms: readonly string[] | undefined): boolean {
  return algorithms?.includes(ALGORITHM) === true
}

/** A new key, ES256. */
export async function createDpopKey(): Promise<DpopKey> {
  const { privateKey } = await crypto.subtle.generateKey(CURVE, true, ['sign', 'verify'])
  const { kty, crv, x, y, d } = await crypto.subtle.exportKey('jwk', privateKey)
  return { kty, crv, x, y, d }
}

/** @throws {SignInError} `settings-invalid`: this is no key that can be used. The message shows nothing of it. */
export async function openDpop(key: DpopKey): Promise<Dpop> {
  const { DpopSession } = await loadSdk()
  const { crv, kty, x, y } = key
  const publicJwk = { crv, kty, x, y } as PublicJwk
  const thumbprint = digestOf(JSON.stringify({ crv, kty, x, y }))
  const session = await DpopSession.create({
    keyPair: { ...(await importKeys(key, publicJwk)), publicJwk, thumbprint, alg: ALGORITHM },
  })
  return {
    thumbprint,
    session,
    proof: ({ method, url, accessToken, nonce }) =>
      session.buildProof({
        htm: method,
        htu: url,
        ...(accessToken === undefined ? {} : { accessToken }),
        ...(nonce === undefined ? {} : { nonce }),
      }),
    rememberNonce: (url, nonce) => {
      if (nonce !== undefined && NONCE.test(nonce)) session.rememberNonce(url, nonce)
    },
  }
}

async function importKeys(
  key: DpopKey,
  publicJwk: PublicJwk,
): Promise<{ privateKey: webcrypto.CryptoKey; publicKey: webcrypto.CryptoKey }> {
  try {
    const { d } = key
    if (publicJwk.kty !== 'EC' || typeof d !== 'string') throw new Error('not a private key of an elliptic curve')
    const [privateKey, publicKey] = await Promise.all([
      crypto.subtle.importKey('jwk', { ...publicJwk, d }, CURVE, false, ['sign']),
      crypto.subtle.importKey('jwk', { ...publicJwk }, CURVE, true, ['verify']),
    ])
    return { privateKey, publicKey }
  } catch {
    throw new SignInError('settings-invalid', 'The key that the tokens are bound to cannot be read: sign in again')
  }
}
