// What the parts of a sign-in tell each other. Shapes only.
import type { OauthSettings } from '../../config/index.ts'
import type { Grant, IssuerFacts, OAuthClient, TokenSet } from '../grant.ts'
import type { OAuthPort, OAuthRequest } from './port.ts'

/** What the configuration says about the server that somebody signs in to. */
export interface SignInServer {
  /** For messages, and for the person who signs in. */
  readonly name: string
  readonly url: string
  /** Certificates to trust besides the usual ones, PEM. They count for its authorization server too. */
  readonly ca?: string | undefined
  readonly oauth?: OauthSettings | undefined
  /** Scopes of the entry; an empty list means: ask for none. */
  readonly scopes?: readonly string[] | undefined
}

/** What every part needs that asks somebody. */
export interface Asking {
  readonly port: OAuthPort
  readonly signal?: AbortSignal | undefined
  /** Milliseconds; each part has its own default. */
  readonly timeoutMs?: number | undefined
}

/** Where and how to sign in, as validated. */
export interface Discovery {
  readonly issuer: IssuerFacts
  readonly authorizationEndpoint: string
  readonly registrationEndpoint?: string
  /** RFC 8628: people can sign in with a code, on another device. */
  readonly deviceAuthorizationEndpoint?: string
  /** It takes the URL of a metadata document in place of a client id. */
  readonly takesClientDocuments: boolean
  /** It promises `iss` in each of its answers (RFC 9207). */
  readonly promisesIssuer: boolean
  /** `scopes_supported` of the authorization server. */
  readonly issuerScopes?: readonly string[]
  /** What to send as `resource`, verbatim. */
  readonly resource: string
  /** `scope` of the challenge. */
  readonly challengedScopes?: readonly string[]
  /** `scopes_supported` of the server; without protected-resource metadata, of its authorization server. */
  readonly discoveredScopes?: readonly string[]
  /** The server only takes tokens that are bound to a key, or its challenge asks for them. */
  readonly wantsDpop: boolean
  /** Which addresses the authorization server may have. */
  readonly addresses: OAuthRequest['addresses']
  /** `protected-resource`: RFC 9728. `server`: the server is its own authorization server (2025-03-26). `defaults`: as `server`, without any document. */
  readonly source: 'protected-resource' | 'server' | 'defaults'
}

/** Does a server want a sign-in? */
export type ProbeOutcome =
  | { readonly kind: 'sign-in'; readonly issuer: string; readonly scopes?: readonly string[] }
  /** Nothing there speaks of one. */
  | { readonly kind: 'none' }
  /** It does, but not in a way that can be used. */
  | { readonly kind: 'unusable'; readonly because: string }
  | { readonly kind: 'unreachable'; readonly because: string }

/** How somebody signs in. */
export interface SignInOptions extends Asking {
  readonly server: SignInServer
  /** Beats every other source; an empty list means: ask for none. */
  readonly scopes?: readonly string[] | undefined
  /** Asked for besides, where the authorization server lists them and neither the caller nor the entry says which scopes are wanted. Default none. */
  readonly scopesIfListed?: readonly string[] | undefined
  /** The `WWW-Authenticate` that led here. */
  readonly challenge?: string | undefined
  /** More is wanted: what was granted (or asked for) before is asked for again, besides what the challenge names. `granted`: what to fall back to. */
  readonly stepUp?: { readonly scopes: readonly string[]; readonly granted?: readonly string[] } | undefined
  /** The secret of `oauth.clientId`, as its variable holds it now. */
  readonly clientSecret?: string | undefined
  /** URL of a client metadata document, for authorization servers that take one in place of a registration. */
  readonly clientMetadataUrl?: string | undefined
  /** Shown on the consent page. Default `Convoke`. */
  readonly clientName?: string | undefined
  /** Default `auto`: tokens are bound to a key where the server asks for it. `always`: where the authorization server can. */
  readonly dpop?: 'auto' | 'always' | undefined
  /** Told where to sign in, before `openPage`. `redirectUrl` is where the browser comes back to; `listens`: and whether somebody waits there. */
  onPage?(page: SignInPage): void
  /** Opens the page. A failure does not end the sign-in: the person may open it by hand. */
  openPage?(url: string): void | Promise<void>
  /** Lines that a person pasted: the URL that the browser ended at, or its query. The first one that fits counts. */
  readonly paste?: AsyncIterable<string> | undefined
  /** Told why a pasted line was not taken. */
  onPasteRefused?(because: string): void
  /** The provider refused scopes that nobody here wanted: those that the metadata names, or a server has missed. Asks once more without them. */
  onScopesDropped?(): void
  /** For the person, from the opened page to the answer. Default 300,000, at least 1,000. Everything else has limits of its own. */
  readonly timeoutMs?: number | undefined
}

/** Where to sign in. */
export interface SignInPage {
  readonly url: string
  /** Where the browser comes back to. */
  readonly redirectUrl: string
  /** Somebody waits there; `false`: what the browser ended at has to be pasted. */
  readonly listens: boolean
}

/** A grant that is to be renewed or given back. */
export interface GrantInUse {
  readonly grant: Grant
  /** Decides which addresses may be asked. */
  readonly server: { readonly url: string; readonly ca?: string | undefined }
  /** Of a configured client. */
  readonly clientSecret?: string | undefined
  /** The entry names its issuer (`oauth.issuer`): then that may be as private as its own name is. */
  readonly issuerIsConfigured?: boolean | undefined
}

/** What came of a refresh. */
export type RefreshOutcome =
  /** `tokens` are complete: what the answer left out is kept. `rotated`: there is another refresh token. */
  | { readonly kind: 'refreshed'; readonly tokens: TokenSet; readonly rotated: boolean }
  /** The answer is final: sending the same again is useless. */
  | {
      readonly kind: 'rejected'
      /** `grant`: the refresh token is not taken any more. `client`: the client is not known (any more). `other`: any other OAuth error. */
      readonly reason: 'grant' | 'client' | 'other'
      readonly error: string
      readonly because: string
    }
  /** Nobody knows better now. `sent: 'no'`: the refresh token is as good as before. `maybe`: it may have been used up. */
  | {
      readonly kind: 'failed'
      readonly sent: 'no' | 'answered' | 'maybe'
      readonly retryable: boolean
      readonly because: string
    }

/** What came of giving a grant back (RFC 7009). */
export type RevokeOutcome =
  | { readonly kind: 'revoked' }
  /** The authorization server has no such endpoint. */
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'failed'; readonly because: string }

/** A client as it is used for one request. */
export interface ClientInUse {
  readonly client: OAuthClient
  readonly secret?: string | undefined
}
