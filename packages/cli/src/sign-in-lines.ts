// What is said of the sign-in of a server, and what to do about it. Pure.
import { cleanLine, type SignInStatus } from '@convoke/host'
import { agoText, inText } from './age.ts'
import { shellOperand } from './shell-word.ts'
import { subjectText } from './sign-in-here.ts'
import type { CredentialsStore } from './sign-in-settings.ts'
import type { Styled } from './terminal.ts'

/** Servers of these states see no stored sign-in, and want none. */
const NEEDS_NONE: ReadonlySet<SignInStatus['state']> = new Set(['open', 'account', 'configured', 'none'])

/** Does nobody have to sign in to it? */
export function needsNoSignIn({ state }: SignInStatus): boolean {
  return NEEDS_NONE.has(state)
}

/** What a person calls a state. */
const STATES: Readonly<Record<SignInStatus['state'], readonly [Styled['style'], string]>> = {
  'signed-in': ['green', 'signed in'],
  ended: ['red', 'ended'],
  'signed-out': ['yellow', 'not signed in'],
  unknown: ['dim', 'not signed in'],
  unreadable: ['red', 'unreadable'],
  open: ['dim', 'needs none'],
  account: ['dim', 'account'],
  configured: ['dim', 'configured'],
  none: ['dim', 'none'],
}

/** The columns of a row, before they are aligned. */
export interface SignInColumns {
  readonly server: string
  readonly state: Styled
  readonly subject: string
  readonly expires: string
  readonly renewed: string
  readonly store: string
}

/** One server as a row. */
export function signInColumns(status: SignInStatus, nowMs: number): SignInColumns {
  const { server, state, subject, signedInAtMs, refreshedAtMs, store } = status
  const [style, text] = STATES[state]
  const isKnown = state === 'signed-in' || state === 'ended'
  const never = isKnown && signedInAtMs !== undefined ? 'never' : ''
  return {
    server: cleanLine(server),
    state: { style, text },
    subject: subjectText(subject) ?? '',
    expires: isKnown ? expiryText(status, nowMs) : '',
    renewed: refreshedAtMs === undefined ? never : agoText(refreshedAtMs, nowMs),
    store: store ?? '',
  }
}

/** Of the access token; one that is renewed by itself says so, because then its end is of no concern. */
function expiryText({ expiresAtMs, isRenewable = false, state }: SignInStatus, nowMs: number): string {
  if (expiresAtMs === undefined) return state === 'signed-in' ? 'not known' : ''
  const when = inText(expiresAtMs, nowMs)
  if (!isRenewable) return when
  return `${when}, ${expiresAtMs <= nowMs ? 'renewed at the next use' : 'renewed by itself'}`
}

/** Why it is as it is, and what the next sign-in will do besides; none for what needs no words. */
export function signInRemarks({ state, because, wantedScopes = [] }: SignInStatus): readonly string[] {
  const reason = state === 'unknown' ? 'nobody is signed in; --probe asks whether it wants that' : because
  return [
    ...(reason === undefined ? [] : [cleanLine(reason, 300)]),
    ...(wantedScopes.length === 0
      ? []
      : [`the next sign-in will also ask for ${cleanLine(wantedScopes.join(' '), 300)}`]),
  ]
}

/** The command that helps; undefined where nothing has to be done. `mode` is the store that is in force. */
export function signInStep(status: SignInStatus, mode: CredentialsStore): string | undefined {
  const { server, state, store, because, wantedScopes = [] } = status
  const login = `convoke login ${shellOperand(server)}`
  switch (state) {
    case 'signed-out':
    case 'unknown':
      return login
    case 'ended':
      return isElsewhere(status, mode) ? `${login}, or CONVOKE_CREDENTIALS_STORE=${store}` : login
    case 'signed-in':
      return because === undefined && wantedScopes.length === 0 ? undefined : login
    case 'unreadable':
      return store === 'keyring' ? `unlock the keyring, or convoke login --store file ${shellOperand(server)}` : login
    case 'open':
    case 'account':
    case 'configured':
    case 'none':
      return undefined
  }
}

/** It is kept where this command does not look. */
function isElsewhere({ store }: SignInStatus, mode: CredentialsStore): boolean {
  return store !== undefined && store !== 'memory' && mode !== 'auto' && store !== mode
}

/** Where a new sign-in would go, as far as nobody has tried the keyring. */
export const MODES: Readonly<Record<CredentialsStore, string>> = {
  auto: 'the keyring of this system if it works, else an encrypted file',
  keyring: 'the keyring of this system (CONVOKE_CREDENTIALS_STORE=keyring)',
  file: 'an encrypted file (CONVOKE_CREDENTIALS_STORE=file)',
}
