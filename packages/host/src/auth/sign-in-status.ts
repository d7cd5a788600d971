// What can be said of the sign-in of a server. Pure, and without a word of any token.
import type { ServerDefinition } from '../config/index.ts'
import type { SignInReason } from './decide.ts'
import type { Subject } from './grant.ts'
import type { Variables } from './own-authorization.ts'
import { type CredentialRecord, isExpired, isRefused, refusedRefresh, standingOf } from './record.ts'
import type { IndexReading, StoreKind } from './sign-in-index.ts'
import type { StoreMode } from './sign-in-stores.ts'

/** Whose credentials a server sees, and how long they are good. */
export interface SignInStatus {
  readonly server: string
  /**
   * `signed-in`: a sign-in is kept that can be used; `ended`: one is kept that cannot; `signed-out`: there is none, and the server is known to want one;
   * `unknown`: there is none, and nobody has asked the server; `open`: the server was asked and wants none. `unreadable`: what is kept cannot be read now.
   * `account`: it sees the account of this host; `configured`: what its entry names; `none`: no credentials at all.
   */
  readonly state:
    | 'signed-in'
    | 'ended'
    | 'signed-out'
    | 'unknown'
    | 'open'
    | 'unreadable'
    | 'account'
    | 'configured'
    | 'none'
  /** Why it is not `signed-in`, or what is about to end; for a person. */
  readonly because?: string
  readonly subject?: Subject
  readonly issuer?: string
  readonly clientId?: string
  /** What was granted, as far as the authorization server said. */
  readonly scopes?: readonly string[]
  /** What servers asked for besides; the next sign-in asks for it. */
  readonly wantedScopes?: readonly string[]
  /** Where it is kept. */
  readonly store?: StoreKind
  /** When the access token ends, in milliseconds of the epoch; absent: nobody knows. */
  readonly expiresAtMs?: number
  /** Is it renewed without a person? */
  readonly isRenewable?: boolean
  /** Milliseconds of the epoch. */
  readonly signedInAtMs?: number
  /** Milliseconds of the epoch; absent: never. */
  readonly refreshedAtMs?: number
}

/** What is known when a status is asked for. */
export interface SignInFacts {
  readonly env: Variables
  readonly hasAccount: boolean
  readonly nowMs: number
  readonly mode: StoreMode
  /** Absent: no stored sign-in matters to this server. */
  readonly reading?: IndexReading
  readonly record?: CredentialRecord | undefined
  /** Somebody is renewing it now. */
  readonly isRenewing?: boolean
  /** It is kept where the chosen mode does not look. */
  readonly isOutOfMode?: boolean
  readonly unreadableBecause?: string
  /** What the server said when it was asked; undefined: it was not, or did not answer. */
  readonly wants?: 'sign-in' | 'nothing' | undefined
}

/** Decides it; the first rule that fits counts. */
export function statusOfSignIn(definition: ServerDefinition, facts: SignInFacts): SignInStatus {
  const server = definition.name
  const { reading } = facts
  if (reading === undefined) return { server, ...withoutSignIn(definition, facts) }
  if (reading.kind === 'unreadable') return { server, state: 'unreadable', because: reading.because }
  if (reading.kind === 'none') return { server, ...neverSignedIn(facts) }
  const { issuer, clientId, store, signedInAtMs, subject, wantedScopes } = reading.entry
  const known = {
    server,
    ...{ issuer, clientId, store, signedInAtMs },
    ...(subject === undefined ? {} : { subject }),
    ...(wantedScopes === undefined ? {} : { wantedScopes }),
  }
  if (facts.isOutOfMode === true)
    return { ...known, state: 'ended', because: `it is kept in the ${store}, and this program uses the ${facts.mode}` }
  if (facts.unreadableBecause !== undefined) return { ...known, state: 'unreadable', because: facts.unreadableBecause }
  if (facts.record === undefined) return { ...known, state: 'ended', because: `the ${store} does not hold it any more` }
  return { ...known, ...standing(facts.record, facts) }
}

function withoutSignIn(
  { transport, auth, enabled, oauth }: ServerDefinition,
  { hasAccount }: SignInFacts,
): Pick<SignInStatus, 'state' | 'because'> {
  if (!enabled) return { state: 'none', because: 'it is switched off' }
  if (transport.kind === 'stdio') return { state: 'none', because: 'it is a program on this machine' }
  if (hasAccount) return { state: 'account' }
  if (auth !== 'oauth') return { state: 'none', because: `its entry says auth: "${auth}"` }
  if (oauth?.grant !== undefined && oauth.grant !== 'authorization-code')
    return { state: 'configured', because: `this program signs in by itself (oauth.grant: "${oauth.grant}")` }
  const what = transport.bearerTokenEnvVar === undefined ? 'an Authorization header' : 'a variable with a bearer token'
  return { state: 'configured', because: `its entry names ${what}` }
}

function neverSignedIn({ wants }: SignInFacts): Pick<SignInStatus, 'state' | 'because'> {
  if (wants === 'sign-in') return { state: 'signed-out', because: 'the server wants a sign-in' }
  return wants === 'nothing' ? { state: 'open' } : { state: 'unknown', because: 'nobody is signed in' }
}

function standing(record: CredentialRecord, { nowMs, isRenewing }: SignInFacts): Omit<SignInStatus, 'server'> {
  const { tokens, refreshedAtMs } = record
  const refused = isRenewing === true ? undefined : refusedRefresh(record)
  const facts = {
    isRenewable: refused === undefined,
    ...(tokens.scopes === undefined ? {} : { scopes: tokens.scopes }),
    ...(tokens.expiresAtMs === undefined ? {} : { expiresAtMs: tokens.expiresAtMs }),
    ...(refreshedAtMs === undefined ? {} : { refreshedAtMs }),
  }
  if (isRenewing === true) return { ...facts, state: 'signed-in', because: 'it is being renewed' }
  if (standingOf(record, nowMs) === 'unusable')
    return { ...facts, state: 'ended', because: ENDED[refused ?? 'token-refused'] }
  if (refused !== undefined && isRefused(record))
    return { ...facts, state: 'ended', because: ENDED[refused === 'no-refresh-token' ? 'token-refused' : refused] }
  if (refused === undefined || refused === 'no-refresh-token' || isExpired(tokens, nowMs))
    return { ...facts, state: 'signed-in' }
  return { ...facts, state: 'signed-in', because: `${ENDED[refused]}; what there is can be used to its end` }
}

/** For a person. */
const ENDED: Readonly<Record<Exclude<SignInReason, 'signed-out' | 'replaced'>, string>> = {
  'no-refresh-token': 'it is over, and cannot be renewed without a person',
  'refresh-rejected': 'the authorization server has ended it',
  'refresh-interrupted': 'a renewal was cut off, so that it may be used up',
  'token-refused': 'the server does not accept it',
}
