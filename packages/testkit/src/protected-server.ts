// An MCP server that accepts only access tokens of an authorization server of the testkit, in a process of its own.
import { fileURLToPath } from 'node:url'
import { type Controlled, ControlledServer } from './controlled-server.ts'
import { startServer } from './runners.ts'
import type { HttpScript } from './script.ts'

/** What can be changed while it runs. What is not named in a call of `set` stays; `undefined` goes back to the default. */
export interface ProtectedServerKnobs {
  /** Tokens with these digests meet 401 `invalid_token` although they are valid. Default none. */
  readonly refuseTokens?: readonly string[] | undefined
  /** What every request to the MCP endpoint meets, whatever it carries. Default: what its token deserves. */
  readonly answerAll?: 401 | 403 | 500 | 503 | undefined
  /** `full` (default): `resource_metadata` and `scope`. `bare`: `Bearer` alone. `none`: no header. A string of one's own is sent as it is. */
  readonly challenge?: 'full' | 'bare' | 'none' | { readonly text: string } | undefined
  /** The `scope` of challenges. Default `mcp`; an empty text leaves it out. */
  readonly challengeScope?: string | undefined
  /** `authorization_servers` of its metadata. It accepts the tokens of the first one. Default: the one it was started with. */
  readonly authorizationServers?: readonly string[] | undefined
  /** Members laid over its RFC 9728 document (`resource`, for example); `null` removes one. Default none. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  /** Where its RFC 9728 document is. Default `path`: `/.well-known/oauth-protected-resource/mcp`. */
  readonly documents?: 'path' | 'root' | 'both' | 'none' | undefined
  /** `required`: only tokens bound to a key, with a proof (RFC 9449). A bound token needs its proof always. Default `optional`. */
  readonly dpop?: 'optional' | 'required' | undefined
  /** Proofs need the current nonce; others meet 401 `use_dpop_nonce`. Default false. */
  readonly dpopNonce?: boolean | undefined
  /** Accepts this bearer token and no other, and names no metadata. Default none. */
  readonly staticToken?: string | undefined
  /** What a GET meets. Default `serve`, as its token deserves. `hold`: the headers never come. */
  readonly getStream?: 'serve' | 'hold' | 401 | 404 | 405 | undefined
  /** Scopes that tools need. Default `{ read: 'mcp:read', write: 'mcp:write' }`. */
  readonly toolScopes?: Readonly<Record<string, string>> | undefined
  /** Pause before anything is answered at the MCP endpoint. Default 0. */
  readonly delayMs?: number | undefined
  /** Holds POSTs before they are judged, until it is false again; `stats().waiting` counts them. Default false. */
  readonly hold?: boolean | undefined
}

export interface ProtectedServerOptions {
  /** The issuer whose tokens it accepts: an authorization server of the testkit. */
  readonly issuer: string
  /** How the MCP server behind the guard behaves. Default: both eras, sessions, JSON answers. The tools are its own. */
  readonly script?: HttpScript
  readonly port?: number
  readonly knobs?: ProtectedServerKnobs
}

export interface SeenToken {
  /** See `digestOf`. */
  readonly digest: string
  readonly requests: number
  readonly refused401: number
  readonly refused403: number
}

export interface ProtectedServerStats {
  /** By HTTP method, at the MCP endpoint. */
  readonly http: Readonly<Record<string, number>>
  /** By JSON-RPC method, of requests that passed the guard. */
  readonly rpc: Readonly<Record<string, number>>
  /** Every token, in the order of its first use. */
  readonly tokens: readonly SeenToken[]
  readonly withoutToken: number
  readonly status401: number
  readonly status403: number
  /** Requests for its RFC 9728 document. */
  readonly discoveries: number
  readonly sessions: number
  readonly openGets: number
  readonly waiting: number
  /** DPoP proofs that were accepted. */
  readonly proofs: number
}

/** The running server. Its `url` is its MCP endpoint, and its resource identifier. */
export interface ProtectedServer extends Controlled<ProtectedServerKnobs, ProtectedServerStats> {
  /** Forgets every session, as a server does that was restarted: 404 for those who still use theirs. */
  forgetSessions(): Promise<void>
}

const entry = fileURLToPath(new URL('../servers/protected-server.mjs', import.meta.url))

/**
 * Starts it on a free loopback port. Tools: `echo` (argument `text`), `whoami` (JSON of `account`, `clientId`, `scopes`, `token` digest), `read` (scope
 * `mcp:read`), `write` (scope `mcp:write`), `seen` (the numbers of `stats`, as JSON). Without a token: 401; without the scope of a tool: 403
 * `insufficient_scope`.
 *
 * ```ts no-run
 * import { digestOf, startAuthorizationServer, startProtectedServer } from '@convoke/testkit'
 *
 * await using authorization = await startAuthorizationServer()
 * await using server = await startProtectedServer({ issuer: authorization.issuer })
 * await server.set({ refuseTokens: [digestOf('a token')] })
 * ```
 * @throws {Error} with its stderr, if it is not ready within 30 s.
 */
export async function startProtectedServer(options: ProtectedServerOptions): Promise<ProtectedServer> {
  return new RunningProtectedServer(await startServer([entry, JSON.stringify(options)], { closeTimeoutMs: 1_000 }))
}

class RunningProtectedServer
  extends ControlledServer<ProtectedServerKnobs, ProtectedServerStats>
  implements ProtectedServer
{
  async forgetSessions(): Promise<void> {
    await this.ask('forget-sessions', {})
  }
}
