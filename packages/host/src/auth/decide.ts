// What happens to a token that is at its end, or was refused. Pure: decided on what the store holds while its lock is held.
import type { TokenSet } from './grant.ts'
import {
  type CredentialRecord,
  isExpired,
  isExpiring,
  isRefused,
  mayRefresh,
  type RefreshRefusal,
  refusedRefresh,
  tokenDigest,
} from './record.ts'

/** Why somebody wants another token. */
export type RefreshReason =
  | { readonly kind: 'expiring' }
  /** A server has refused this very access token. */
  | { readonly kind: 'rejected'; readonly accessToken: string }

/** What somebody knows who wants another token. */
export interface RefreshFacts {
  /** What the store holds now; undefined: nothing. */
  readonly stored: CredentialRecord | undefined
  /** The sign-in that is spoken for. */
  readonly grantId: string
  readonly reason: RefreshReason
  /** `false`: only what is stored already, because this operation has had its refresh. */
  readonly mayRefresh: boolean
  /** Tokens come without a person: client credentials and the like. */
  readonly isMachine: boolean
  readonly nowMs: number
}

/** Why a person has to sign in. */
export type SignInReason =
  | RefreshRefusal
  | 'signed-out'
  /** Somebody has signed in anew meanwhile; whoever spoke for the old sign-in does not speak for the new one. */
  | 'replaced'
  /** The token that was refused is the newest that there is. */
  | 'token-refused'

export type RefreshPlan =
  /** What is stored can be sent. */
  | { readonly kind: 'adopt'; readonly record: CredentialRecord }
  | { readonly kind: 'refresh'; readonly record: CredentialRecord; readonly refreshToken: string }
  /** Ask for new tokens without a refresh token. */
  | { readonly kind: 'obtain' }
  | { readonly kind: 'sign-in'; readonly because: SignInReason }

/** Decides it; the first rule that fits counts. */
export function decideRefresh(facts: RefreshFacts): RefreshPlan {
  const { stored, grantId, isMachine, nowMs, reason } = facts
  if (stored === undefined) return isMachine ? { kind: 'obtain' } : { kind: 'sign-in', because: 'signed-out' }
  if (stored.grantId !== grantId) return { kind: 'sign-in', because: 'replaced' }
  if (isNewer(stored.tokens, reason) && !isExpiring(stored, nowMs)) return { kind: 'adopt', record: stored }
  const refused = refusedRefresh(stored)
  const { refreshToken } = stored.tokens
  if (facts.mayRefresh && refused === undefined && refreshToken !== undefined)
    return { kind: 'refresh', record: stored, refreshToken }
  if (facts.mayRefresh && isMachine) return { kind: 'obtain' }
  // What cannot be renewed is sent to its very end.
  if (isNewer(stored.tokens, reason) && !isExpired(stored.tokens, nowMs)) return { kind: 'adopt', record: stored }
  return { kind: 'sign-in', because: refused ?? 'token-refused' }
}

function isNewer({ accessToken }: TokenSet, reason: RefreshReason): boolean {
  return reason.kind === 'expiring' || accessToken !== reason.accessToken
}

/** How an authorization server answered to a refresh. */
export type RefreshAnswer =
  | { readonly kind: 'refreshed'; readonly tokens: TokenSet }
  /** For good. */
  | { readonly kind: 'rejected'; readonly because: string }
  /** It may work another time. */
  | { readonly kind: 'failed' }

/** The record after the answer; it is saved before anybody sends one of its tokens. */
export function recordAfter(record: CredentialRecord, answer: RefreshAnswer, nowMs: number): CredentialRecord {
  const { attempt: _, ...rest } = record
  switch (answer.kind) {
    case 'failed':
      return rest
    case 'rejected': {
      const refreshDigest = tokenDigest(record.tokens.refreshToken ?? '')
      return { ...rest, rejected: { refreshDigest, atMs: nowMs, because: answer.because } }
    }
    case 'refreshed':
      return {
        ...rest,
        tokens: mergeTokens(record.tokens, answer.tokens),
        refreshedAtMs: nowMs,
        rotation: rotationAfter(record.tokens, answer.tokens),
      }
  }
}

/** The record once it is known that its token was refused and that only a person can get another one; undefined: there is nothing to note. */
export function recordWhenRefused(
  record: CredentialRecord,
  { reason, nowMs }: Pick<RefreshFacts, 'reason' | 'nowMs'>,
): CredentialRecord | undefined {
  // What can be renewed is renewed at the next use.
  if (isNewer(record.tokens, reason) || mayRefresh(record) || isRefused(record)) return undefined
  return { ...record, refused: { accessDigest: tokenDigest(record.tokens.accessToken), atMs: nowMs } }
}

/** What the answer leaves out stays as it was (RFC 6749 5.1 and 6). */
function mergeTokens(before: TokenSet, { refreshToken, scopes, ...fresh }: TokenSet): TokenSet {
  const kept = refreshToken ?? before.refreshToken
  const granted = scopes ?? before.scopes
  return {
    ...fresh,
    ...(kept === undefined ? {} : { refreshToken: kept }),
    ...(granted === undefined ? {} : { scopes: granted }),
  }
}

function rotationAfter(before: TokenSet, after: TokenSet): CredentialRecord['rotation'] {
  return after.refreshToken === undefined || after.refreshToken === before.refreshToken ? 'stays' : 'rotates'
}
