// Whose credentials one server may see. Pure.
import { resolveTraits, type ServerDefinition } from '../config/index.ts'
import { hasExplicitAuthorization } from './own-authorization.ts'

/** What is known of the account when a server is about to be reached. */
export interface AccountFacts {
  /** The exact origins that may see its token. */
  readonly origins: readonly string[]
  readonly isSignedIn: boolean
}

/** Whose credentials are used, or why none are. */
export type AuthSelection =
  /** The account's token. */
  | { readonly kind: 'account' }
  /** What a person got by signing in to this server; the only case in which a stored sign-in is looked at. */
  | { readonly kind: 'sign-in' }
  /** Only what its own entry names. */
  | { readonly kind: 'configured' }
  | { readonly kind: 'none'; readonly because: 'not-wanted' | 'not-hosted' | 'origin-not-declared' | 'not-signed-in' }
  /** The server may not be started at all: it would need the account in a place where that never goes. */
  | { readonly kind: 'refused'; readonly because: 'account-outside-local' }

/** Decides by the definition and the account; the first rule that fits counts. */
export function selectAuth(definition: ServerDefinition, account: AccountFacts | undefined): AuthSelection {
  const { transport, auth, environment } = definition
  const { isHosted, credentialSource } = resolveTraits(definition)
  if (transport.kind === 'stdio') return { kind: 'none', because: 'not-wanted' }
  if (auth === 'account' && environment !== 'local')
    return hasExplicitAuthorization(transport)
      ? { kind: 'configured' }
      : { kind: 'refused', because: 'account-outside-local' }
  switch (credentialSource) {
    case 'none':
      return { kind: 'none', because: 'not-wanted' }
    case 'configured':
    case 'sign-in':
      return { kind: credentialSource }
    case 'account':
      break
  }
  if (!isHosted) return { kind: 'none', because: 'not-hosted' }
  if (account === undefined || !account.isSignedIn) return { kind: 'none', because: 'not-signed-in' }
  return account.origins.includes(originOf(transport.url))
    ? { kind: 'account' }
    : { kind: 'none', because: 'origin-not-declared' }
}

/** An address that cannot be read has no origin, and so none that anybody declared. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : ''
}
