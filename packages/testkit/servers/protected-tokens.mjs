// What a protected server asks about a token: is it of our authorization server, for us, still good, and bound to a key whose proof is here?
import { createHash, createPublicKey, verify } from 'node:crypto'

const INTROSPECTION = `Basic ${Buffer.from('protected-server:secret-of-the-protected-server').toString('base64')}`
const PROOF_AGE_SECONDS_MAX = 60

export const sha256 = (text, encoding) => createHash('sha256').update(text).digest(encoding)
export const digestOf = (token) => sha256(token, 'hex').slice(0, 16)

/**
 * What the token allows: `{account, clientId, scopes, jkt}`; nothing if it is not good here. An opaque token is introspected each time, so that a
 * revocation is seen at once; a JWT is checked against the keys.
 * @throws {Error} if the authorization server does not answer.
 */
export async function judgeToken(token, { issuer, resource }) {
  const isJwt = token.split('.').length === 3
  const claims = isJwt ? await verifiedClaims(token, issuer) : await introspected(token, issuer)
  if (claims === undefined || claims.iss !== issuer || claims.exp * 1_000 <= Date.now()) return undefined
  if (![claims.aud].flat().includes(resource)) return undefined
  return {
    account: claims.sub ?? null,
    clientId: claims.client_id,
    scopes: claims.scope?.split(' ') ?? [],
    jkt: claims.cnf?.jkt,
  }
}

async function introspected(token, issuer) {
  const response = await fetch(`${issuer}/token/introspection`, {
    method: 'POST',
    headers: { authorization: INTROSPECTION },
    body: new URLSearchParams({ token }),
  })
  if (!response.ok) throw new Error(`Introspection answered ${response.status}`)
  const claims = await response.json()
  return claims.active ? claims : undefined
}

async function verifiedClaims(token, issuer) {
  const { header, payload, signed, signature } = parts(token)
  const { keys } = await (await fetch(`${issuer}/jwks`)).json()
  const jwk = keys.find(({ kid }) => kid === header.kid)
  if (jwk === undefined || header.alg !== 'RS256' || header.typ !== 'at+jwt') return undefined
  return verify('sha256', signed, createPublicKey({ key: jwk, format: 'jwk' }), signature) ? payload : undefined
}

/** Why the proof (RFC 9449) does not fit the request, or nothing. `usedIds` remembers those that were seen. */
export function faultOfProof(proof, { method, url, token, jkt, nonce, usedIds }) {
  if (proof === undefined) return 'invalid_dpop_proof'
  try {
    const { header, payload, signed, signature } = parts(proof)
    if (nonce !== undefined && payload.nonce !== nonce) return 'use_dpop_nonce'
    const isGood =
      header.typ === 'dpop+jwt' &&
      header.jwk?.d === undefined &&
      isSigned(header, signed, signature) &&
      thumbprintOf(header.jwk) === jkt &&
      payload.htm === method &&
      payload.htu === url &&
      payload.ath === sha256(token, 'base64url') &&
      Math.abs(Date.now() / 1_000 - payload.iat) <= PROOF_AGE_SECONDS_MAX &&
      typeof payload.jti === 'string' &&
      !usedIds.has(payload.jti)
    if (!isGood) return 'invalid_dpop_proof'
    usedIds.add(payload.jti)
    return undefined
  } catch {
    return 'invalid_dpop_proof'
  }
}

function isSigned({ alg, jwk }, signed, signature) {
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  if (alg === 'ES256') return verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
  return (alg === 'EdDSA' || alg === 'Ed25519') && verify(null, signed, key, signature)
}

/** RFC 7638. */
function thumbprintOf({ kty, crv, x, y }) {
  return sha256(JSON.stringify(kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x }), 'base64url')
}

function parts(jwt) {
  const [header, payload, signature] = jwt.split('.')
  const read = (part) => JSON.parse(Buffer.from(part, 'base64url').toString())
  return {
    header: read(header),
    payload: read(payload),
    signed: Buffer.from(`${header}.${payload}`),
    signature: Buffer.from(signature, 'base64url'),
  }
}
