// What is kept of one sign-in: the grant, and what has become of it since. Pure.
import { canonicalJson, digestHex, isObject } from '../base/index.ts'
import type { Grant, IssuerFacts, OAuthClient, Subject, TokenSet } from './grant.ts'

/** A grant as it is kept, under {@link recordId}. Everything in it but the names may be secret. */
export interface CredentialRecord extends Grant {
  readonly version: 1
  /** Names this sign-in: a new one has another, a refresh of its tokens keeps it. */
  readonly grantId: string
  /** For whom it was made; for people. */
  readonly server: { readonly name: string; readonly url: string }
  /** Milliseconds of the epoch. */
  readonly signedInAtMs: number
  /** Milliseconds of the epoch; absent: never. */
  readonly refreshedAtMs?: number
  /** What refreshing did to the refresh token the last time. */
  readonly rotation: 'unknown' | 'rotates' | 'stays'
  /** The authorization server is being asked to refresh. Whoever reads this while holding the lock knows that nobody learned the answer. */
  readonly attempt?: { readonly refreshDigest: string; readonly startedAtMs: number }
  /** The authorization server has refused this refresh token for good. It is never sent again. */
  readonly rejected?: { readonly refreshDigest: string; readonly atMs: number; readonly because: string }
  /** The server has refused this access token, and it could not be renewed. For whoever asks; it is sent again, as servers are wrong at times. */
  readonly refused?: { readonly accessDigest: string; readonly atMs: number }
}

/** Time before its end at which a token is renewed, in milliseconds; half of its life where that is shorter. */
export const REFRESH_SKEW_MS = 30_000

const ID_CHARS = 32
const DIGEST_CHARS = 32

/** What a record is found by. Two entries of one server are two sign-ins: people have more than one account. */
export function recordId(facts: {
  readonly issuer: string
  readonly resource: string
  readonly clientId: string
  readonly server: string
}): string {
  const { issuer, resource, clientId, server } = facts
  return digestHex(canonicalJson([issuer, resource, clientId, server]), ID_CHARS)
}

/** Names a token without showing it. */
export function tokenDigest(token: string): string {
  return digestHex(token, DIGEST_CHARS)
}

/** The record of a fresh sign-in. */
export function newRecord(
  grant: Grant,
  { server, grantId, nowMs }: Pick<CredentialRecord, 'server' | 'grantId'> & { readonly nowMs: number },
): CredentialRecord {
  return { ...grant, version: 1, grantId, server, signedInAtMs: nowMs, rotation: 'unknown' }
}

/**
 * Is its token so near to its end that another one is asked for? One whose end nobody knows never is; one that lives for seconds is used for half of them,
 * or each request would cost a renewal.
 */
export function isExpiring({ tokens, refreshedAtMs, signedInAtMs }: CredentialRecord, nowMs: number): boolean {
  const { expiresAtMs } = tokens
  if (expiresAtMs === undefined) return false
  const lifeMs = Math.max(0, expiresAtMs - (refreshedAtMs ?? signedInAtMs))
  return nowMs + Math.min(REFRESH_SKEW_MS, lifeMs / 2) >= expiresAtMs
}

/** Did the server refuse its access token the last time that anybody used it? */
export function isRefused({ tokens, refused }: CredentialRecord): boolean {
  return refused !== undefined && refused.accessDigest === tokenDigest(tokens.accessToken)
}

/** Is it over? */
export function isExpired({ expiresAtMs }: TokenSet, nowMs: number): boolean {
  return expiresAtMs !== undefined && nowMs >= expiresAtMs
}

/**
 * Can a sign-in be taken back at its authorization server without harm to the one in its place? Some end everything that a person has granted to a client with
 * one revocation, so it has to be another client or another person: then whoever has copied the old refresh token has nothing.
 */
export function mayRevoke(replaced: CredentialRecord, next: CredentialRecord): boolean {
  if (replaced.issuer.issuer !== next.issuer.issuer || replaced.client.id !== next.client.id) return true
  return replaced.subject !== undefined && next.subject !== undefined && replaced.subject.id !== next.subject.id
}

/** What somebody who looks at the record can say without asking anybody. */
export type RecordStanding =
  /** Its access token can be sent. */
  | 'usable'
  /** Its access token cannot be sent any more, its refresh token can. */
  | 'refreshable'
  /** Somebody has to sign in again. */
  | 'unusable'

/** Judges a record by what is in it. A server may still refuse it. */
export function standingOf(record: CredentialRecord, nowMs: number): RecordStanding {
  if (record.client.id.trim() === '') return 'unusable'
  const { accessToken } = record.tokens
  if (!isExpiring(record, nowMs) && accessToken.trim() !== '') return 'usable'
  if (mayRefresh(record)) return 'refreshable'
  return !isExpired(record.tokens, nowMs) && accessToken.trim() !== '' ? 'usable' : 'unusable'
}

/** Is there a refresh token that may be sent? */
export function mayRefresh(record: CredentialRecord): boolean {
  return refusedRefresh(record) === undefined
}

/** Why its refresh token is not sent. */
export type RefreshRefusal = 'no-refresh-token' | 'refresh-rejected' | 'refresh-interrupted'

/**
 * An answer that nobody learned may have used the token up, and sending it once more would then end the whole grant at servers that rotate
 * (RFC 9700 4.14.2); where the last refresh left it as it was, nothing is lost by asking again.
 */
export function refusedRefresh({ tokens, rejected, attempt, rotation }: CredentialRecord): RefreshRefusal | undefined {
  const { refreshToken } = tokens
  if (refreshToken === undefined || refreshToken.trim() === '') return 'no-refresh-token'
  const digest = tokenDigest(refreshToken)
  if (rejected?.refreshDigest === digest) return 'refresh-rejected'
  return attempt?.refreshDigest === digest && rotation !== 'stays' ? 'refresh-interrupted' : undefined
}

/** The text that is stored. */
export function recordText(record: CredentialRecord): string {
  return JSON.stringify(record)
}

/** Reads {@link recordText}; undefined for anything else. */
export function readRecord(text: string): CredentialRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  return isRecord(value) ? value : undefined
}

function isRecord(value: unknown): value is CredentialRecord {
  if (!isObject(value) || value['version'] !== 1) return false
  const { grantId, server, signedInAtMs, issuer, resource, client, tokens, rotation } = value
  return (
    typeof grantId === 'string' &&
    typeof signedInAtMs === 'number' &&
    typeof resource === 'string' &&
    (rotation === 'unknown' || rotation === 'rotates' || rotation === 'stays') &&
    hasTexts(server, ['name', 'url']) &&
    isIssuer(issuer) &&
    isClient(client) &&
    isTokenSet(tokens) &&
    isSubject(value['subject']) &&
    isMark(value['attempt'], 'refreshDigest', 'startedAtMs') &&
    isMark(value['rejected'], 'refreshDigest', 'atMs') &&
    isMark(value['refused'], 'accessDigest', 'atMs')
  )
}

function isIssuer(value: unknown): value is IssuerFacts {
  return hasTexts(value, ['issuer', 'tokenEndpoint']) && hasOptional(value, { revocationEndpoint: 'string' })
}

function isClient(value: unknown): value is OAuthClient {
  return hasTexts(value, ['id', 'kind']) && hasOptional(value, { secret: 'string', tokenEndpointAuthMethod: 'string' })
}

function isTokenSet(value: unknown): value is TokenSet {
  if (!hasTexts(value, ['accessToken', 'type'])) return false
  const { scopes } = value
  return (
    hasOptional(value, { refreshToken: 'string', expiresAtMs: 'number' }) &&
    (scopes === undefined || (Array.isArray(scopes) && scopes.every((scope) => typeof scope === 'string')))
  )
}

function isSubject(value: unknown): value is Subject | undefined {
  return value === undefined || (hasTexts(value, ['id']) && hasOptional(value, { name: 'string' }))
}

function isMark(value: unknown, digest: string, at: string): boolean {
  return value === undefined || (hasTexts(value, [digest]) && hasOptional(value, { [at]: 'number' }))
}

function hasTexts(value: unknown, names: readonly string[]): value is Record<string, unknown> {
  return isObject(value) && names.every((name) => typeof value[name] === 'string')
}

function hasOptional(
  value: Readonly<Record<string, unknown>>,
  types: Readonly<Record<string, 'string' | 'number'>>,
): boolean {
  return Object.entries(types).every(([name, type]) => value[name] === undefined || typeof value[name] === type)
}
