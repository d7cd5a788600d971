// A real authorization server (`oidc-provider`) in a process of its own, with knobs that turn while it runs.
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { type Controlled, ControlledServer } from './controlled-server.ts'
import { startServer } from './runners.ts'

/** Who can sign in. */
export type TestAccount = 'ada' | 'grace'

/** A client that the server knows from the start, in the words of RFC 7591. `client_id` and `redirect_uris` (may be empty) are needed. */
export interface PresetClient {
  readonly client_id: string
  readonly redirect_uris?: readonly string[]
  readonly [member: string]: unknown
}

/** What can be changed while it runs. What is not named in a call of `set` stays; `undefined` goes back to the default. */
export interface AuthorizationServerKnobs {
  /** Life of access tokens issued from now on, whole seconds. Default 300. */
  readonly accessTokenSeconds?: number | undefined
  /** Who gets a refresh token: every client that registered for the grant (default), those who asked for `offline_access`, or nobody. */
  readonly refreshTokens?: 'always' | 'offline-access' | 'never' | undefined
  /** Default `rotate`: a refresh token works once, and presenting it again revokes the whole grant. `keep`: it stays the same. */
  readonly rotation?: 'rotate' | 'keep' | undefined
  /** Answers to refreshes name no refresh token; the old one stays valid. Default false. */
  readonly omitRefreshToken?: boolean | undefined
  /** Pauses of a token request before it is processed, and between processing and the answer. Default 0. */
  readonly beforeTokenMs?: number | undefined
  readonly afterTokenMs?: number | undefined
  /**
   * Holds requests until the knob goes back to `nothing` (default): all of them, token requests before they are processed, or processed ones before the answer.
   * `stats().waiting` counts them.
   */
  readonly hold?: 'nothing' | 'everything' | 'before-token' | 'after-token' | undefined
  /** The next `count` token requests are not processed but answered so. Counts down. Default none. */
  readonly failNext?: FailNext | undefined
  /** The next so many token requests are processed, then their connection is cut instead of an answer. Counts down. Default 0. */
  readonly dropNext?: number | undefined
  /** Members laid over the RFC 8414 and OIDC documents; `null` removes one. Default none. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  /** Which well-known documents there are. Default `both`. */
  readonly documents?: 'both' | 'oauth' | 'oidc' | 'none' | undefined
  /** Members laid over successful token answers; `null` removes one. Default none. */
  readonly tokenAnswer?: Readonly<Record<string, unknown>> | undefined
  /** Parameters laid over the redirect to the client (`iss`, `state`, `code`); `null` removes one. Default none. */
  readonly callback?: Readonly<Record<string, string | null>> | undefined
  /** `required`: token requests without a DPoP proof are refused. Default `optional`. */
  readonly dpop?: 'optional' | 'required' | undefined
  /** DPoP proofs need a nonce of this server (`use_dpop_nonce` first). Default false. */
  readonly dpopNonce?: boolean | undefined
  /** Authorization requests that name one of these are sent back with `invalid_scope`. Default none. */
  readonly refuseScopes?: readonly string[] | undefined
  /** What an authorization request without `scope` gets. Default `mcp`. */
  readonly defaultScope?: string | undefined
  /** Resource indicators that are served; others meet `invalid_target`. Default: every one. */
  readonly resources?: readonly string[] | undefined
  /** `refused`: dynamic registration answers 403 `access_denied`. Default `open`. */
  readonly registration?: 'open' | 'refused' | undefined
  /** Client ID Metadata Documents by their `https` URL, as if fetched. A table, so nothing leaves this machine. Default none. */
  readonly clientDocuments?: Readonly<Record<string, object>> | undefined
}

export interface FailNext {
  readonly count: number
  readonly status: number
  /** The OAuth error. Default `server_error`. Ignored where `body` is given. */
  readonly error?: string
  readonly headers?: Readonly<Record<string, string>>
  /** A body of any kind, sent as it is. */
  readonly body?: string
  /** Only requests of this grant type. */
  readonly grantType?: string
}

export interface AuthorizationServerOptions {
  readonly clients?: readonly PresetClient[]
  /** Default `opaque`: introspected, and revocation is seen at once. `jwt` (RFC 9068, RS256): valid until it expires, whatever is revoked. */
  readonly accessTokens?: 'opaque' | 'jwt'
  /** Path of the issuer, for example `/tenant`. Default none. */
  readonly path?: string
  /** Default: a free one. */
  readonly port?: number
  /** Speaks TLS. PEM. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** How it starts. */
  readonly knobs?: AuthorizationServerKnobs
}

/** One request at the token endpoint, in the order in which they were processed. Tokens appear as digests only: see {@link digestOf}. */
export interface SeenTokenRequest {
  readonly grantType: string
  readonly clientId: string | undefined
  /** Of the refresh token that was presented. */
  readonly presented: string | undefined
  readonly outcome: 'issued' | 'error'
  readonly error: string | undefined
  /** The refresh token had been used up by an earlier request of this list. */
  readonly replay: boolean
  /** Processed, but the connection was cut instead of an answer. */
  readonly dropped: boolean
  readonly withDpop: boolean
  readonly account: string | undefined
  readonly scope: string | undefined
  readonly resource: string | undefined
  /** Of what was issued. */
  readonly accessToken: string | undefined
  readonly refreshToken: string | undefined
  /** Wall clock. */
  readonly atMs: number
}

export interface AuthorizationServerStats {
  readonly tokenRequests: readonly SeenTokenRequest[]
  readonly registrations: number
  /** Authorizations that led to a code or an approved device. */
  readonly authorizations: number
  readonly revocations: number
  readonly introspections: number
  /** Grants that were revoked, by a replay, at the revocation endpoint or by `revokeGrant`. */
  readonly grantsRevoked: number
  /** Requests that `hold` is holding now. */
  readonly waiting: number
  /** Requests for the well-known documents. */
  readonly discoveries: number
}

/** The running server. Its `url` is its issuer, the address to begin with. */
export interface AuthorizationServer extends Controlled<AuthorizationServerKnobs, AuthorizationServerStats> {
  /** Exactly as in its metadata and in `iss`. */
  readonly issuer: string
  /** Takes back every grant of the account with all its tokens, as a person does in the settings of a service. @returns how many. */
  revokeGrant(account: TestAccount): Promise<number>
}

/** The client by which protected servers introspect tokens; every authorization server knows it. */
export const INTROSPECTION_CLIENT = { id: 'protected-server', secret: 'secret-of-the-protected-server' } as const

const entry = fileURLToPath(new URL('../servers/authorization-server.mjs', import.meta.url))

/** How tokens are named in the numbers of the fixtures: the first 16 hexadecimal digits of their SHA-256. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex').slice(0, 16)
}

/**
 * Starts `oidc-provider` on a free loopback port, until it is disposed of or this process ends. Everything that it knows is in its memory.
 *
 * It has dynamic registration, PKCE (S256, demanded of everybody), resource indicators, rotation of refresh tokens with replay detection, revocation,
 * introspection, `iss` in the callback, DPoP, device flow, client credentials, `private_key_jwt`, PAR and client ID metadata documents. Scopes: `mcp`,
 * `mcp:read`, `mcp:write`, `openid`, `profile`, `offline_access`. Accounts: `ada`, `grace`.
 *
 * ```ts no-run
 * import { startAuthorizationServer } from '@convoke/testkit'
 *
 * await using authorization = await startAuthorizationServer({ knobs: { accessTokenSeconds: 1 } })
 * await authorization.set({ hold: 'after-token' })
 * await authorization.whenStats(({ waiting }) => waiting === 1)
 * ```
 * @throws {Error} with its stderr, if it is not ready within 30 s.
 */
export async function startAuthorizationServer(options: AuthorizationServerOptions = {}): Promise<AuthorizationServer> {
  const server = await startServer([entry, JSON.stringify(options)], { closeTimeoutMs: 1_000 })
  const { protocol, host } = new URL(server.url)
  const origin = `${options.tls === undefined ? protocol : 'https:'}//${host}`
  return new RunningAuthorizationServer(server, `${origin}${options.path ?? ''}`)
}

class RunningAuthorizationServer
  extends ControlledServer<AuthorizationServerKnobs, AuthorizationServerStats>
  implements AuthorizationServer
{
  get issuer(): string {
    return this.url
  }

  async revokeGrant(account: TestAccount): Promise<number> {
    return (await this.ask('revoke', { account })) as number
  }
}
