// Renews a grant, and gives one back. Both only at the authorization server that it is from; what its server says now is not asked.
import type { Grant } from '../grant.ts'
import { ask, withDeadline } from './asking.ts'
import { clientAuthentication, formEncode } from './client-authentication.ts'
import { fetchIssuer } from './discovery.ts'
import { openDpop } from './dpop.ts'
import type { AddressRule } from './endpoints.ts'
import type { Asking, ClientInUse, GrantInUse, RefreshOutcome, RevokeOutcome } from './flow.ts'
import { readDocument } from './metadata.ts'
import type { OAuthPort } from './port.ts'
import { addressesFor, widerAddresses } from './reaching.ts'
import { type Addressee, type Exchanged, exchange, loadSdk, type Reply } from './sdk.ts'
import { SignInError } from './sign-in-error.ts'
import { readRefusal, readTokens, type TokenQuestion } from './token-answer.ts'

/** What is to be renewed. */
export interface RefreshRequest extends GrantInUse {
  readonly refreshToken: string
  readonly signal?: AbortSignal | undefined
  /** From the call to the outcome, in milliseconds. Default 45,000. */
  readonly timeoutMs?: number | undefined
}

const REFRESH_TIMEOUT_MS = 45_000
const REVOKE_TIMEOUT_MS = 10_000
/** The endpoint is not there any more. */
const GONE: ReadonlySet<number> = new Set([404, 410])
/** Statuses that say: not now. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429])

/**
 * Asks for new tokens. Never rejects: an abort and the end of the time are outcomes too, of which nobody knows whether the refresh token was used up.
 *
 * Where the token endpoint has gone, the metadata of the issuer is read once more and its new endpoint is asked.
 */
export async function refreshTokens(request: RefreshRequest, port: OAuthPort): Promise<RefreshOutcome> {
  const { timeoutMs = REFRESH_TIMEOUT_MS, signal } = request
  const progress = { isSent: false }
  try {
    return await withDeadline({ port, signal, timeoutMs }, 'Renewing the sign-in', (inner) =>
      refreshWith(request, { port, signal: inner, timeoutMs }, progress),
    )
  } catch (error) {
    return {
      kind: 'failed',
      sent: progress.isSent ? 'maybe' : 'no',
      retryable: isPassing(error),
      because: reasonOf(error),
    }
  }
}

async function refreshWith(
  request: RefreshRequest,
  asking: Asking,
  progress: { isSent: boolean },
): Promise<RefreshOutcome> {
  const { grant, server, refreshToken } = request
  const addresses = await grantAddresses(request, asking.port)
  const askedAtMs = asking.port.dateMs()
  const send = async (tokenEndpoint: string): Promise<Exchanged> => {
    progress.isSent = true
    const exchanged = await sendRefresh(
      request,
      { ...asking, addresses, ca: server.ca, field: 'token_endpoint' },
      tokenEndpoint,
    )
    // It came back, or never left: from here on it is known what became of the refresh token.
    progress.isSent = exchanged.reply.kind === 'failed' && exchanged.reply.sent
    return exchanged
  }
  let tokenEndpoint = grant.issuer.tokenEndpoint
  let exchanged = await send(tokenEndpoint)
  if (isGone(exchanged.reply)) {
    const moved = await movedEndpoint(grant, { ...asking, addresses, ca: server.ca })
    if (moved !== undefined && moved !== tokenEndpoint) {
      tokenEndpoint = moved
      exchanged = await send(moved)
    }
  }
  const isBound = grant.tokens.type === 'DPoP'
  return readRefresh(
    exchanged,
    { endpoint: tokenEndpoint, askedAtMs, isBound, secrets: [...exchanged.secrets, refreshToken] },
    grant,
  )
}

async function sendRefresh(request: RefreshRequest, to: Addressee, tokenEndpoint: string): Promise<Exchanged> {
  const { grant, refreshToken } = request
  const { refreshAuthorization } = await loadSdk()
  const issuer = { ...grant.issuer, tokenEndpoint }
  const inUse: ClientInUse = { client: grant.client, secret: secretOf(request) }
  const dpop = grant.tokens.type === 'DPoP' && grant.dpopKey !== undefined ? await openDpop(grant.dpopKey) : undefined
  return exchange(to, (fetchFn) =>
    refreshAuthorization(issuer.issuer, {
      metadata: {
        issuer: issuer.issuer,
        authorization_endpoint: tokenEndpoint,
        token_endpoint: tokenEndpoint,
        response_types_supported: ['code'],
      },
      clientInformation: { client_id: grant.client.id },
      refreshToken,
      resource: grant.resource,
      addClientAuthentication: clientAuthentication(inUse, issuer),
      ...(dpop === undefined ? {} : { dpop: dpop.session }),
      fetchFn,
    }),
  )
}

/** A configured secret is that of a configured client, and is shown for no other. */
function secretOf({ grant: { client }, clientSecret }: GrantInUse): string | undefined {
  return client.secret ?? (client.kind === 'configured' ? clientSecret : undefined)
}

/** What an answer to a refresh means. Pure. */
export function readRefresh({ reply, secrets }: Exchanged, question: TokenQuestion, grant: Grant): RefreshOutcome {
  if (reply.kind === 'failed')
    return {
      kind: 'failed',
      sent: reply.sent ? 'maybe' : 'no',
      retryable: isPassing(reply.error),
      because: reply.error.message,
    }
  const { status, body } = reply
  if (status >= 500 || LATER.has(status))
    return {
      kind: 'failed',
      sent: 'answered',
      retryable: true,
      because: `The authorization server answered with HTTP ${status}`,
    }
  try {
    const { tokens } = readTokens(status, body, question)
    const before = grant.tokens
    const refreshToken = tokens.refreshToken ?? before.refreshToken
    const scopes = tokens.scopes ?? before.scopes
    return {
      kind: 'refreshed',
      tokens: {
        ...tokens,
        ...(refreshToken === undefined ? {} : { refreshToken }),
        ...(scopes === undefined ? {} : { scopes }),
      },
      rotated: tokens.refreshToken !== undefined && tokens.refreshToken !== before.refreshToken,
    }
  } catch (error) {
    if (!(error instanceof SignInError)) throw error
    return readRejection(error, { status, body, secrets: [...secrets, ...question.secrets] })
  }
}

function readRejection(
  failure: SignInError,
  { status, body, secrets }: { readonly status: number; readonly body: Buffer; readonly secrets: readonly string[] },
): RefreshOutcome {
  const { error } = readRefusal(status, readDocument(body), secrets)
  // An answer that cannot be used may have used up the refresh token all the same.
  if (failure.kind === 'answer-invalid')
    return { kind: 'failed', sent: 'maybe', retryable: false, because: failure.message }
  if (error === undefined) return { kind: 'failed', sent: 'answered', retryable: true, because: failure.message }
  if (error === 'temporarily_unavailable' || error === 'server_error' || error === 'slow_down')
    return { kind: 'failed', sent: 'answered', retryable: true, because: failure.message }
  const reason =
    error === 'invalid_grant'
      ? 'grant'
      : error === 'invalid_client' || error === 'unauthorized_client'
        ? 'client'
        : 'other'
  return { kind: 'rejected', reason, error, because: failure.message }
}

/** Where the grant's authorization server may be: as private as the server, or as the entry's own issuer was when somebody signed in. */
async function grantAddresses(
  { server, issuerIsConfigured, grant }: GrantInUse,
  port: OAuthPort,
): Promise<AddressRule> {
  const addresses = await addressesFor(server.url, port)
  return issuerIsConfigured === true
    ? widerAddresses(addresses, await addressesFor(grant.issuer.issuer, port))
    : addresses
}

function isGone(reply: Reply): boolean {
  return reply.kind === 'answered' ? GONE.has(reply.status) : reply.error.kind === 'unreachable' && !reply.sent
}

/** What the issuer itself says now; undefined: nothing that helps. */
async function movedEndpoint(
  { issuer }: Grant,
  asking: Asking & { readonly addresses: AddressRule; readonly ca?: string | undefined },
): Promise<string | undefined> {
  try {
    return (await fetchIssuer(issuer.issuer, { ...asking, use: 'token' })).facts.tokenEndpoint
  } catch (error) {
    if (error instanceof SignInError) return undefined
    throw error
  }
}

/** May it work another time without anybody doing anything? */
function isPassing(error: unknown): boolean {
  return error instanceof SignInError && ['unreachable', 'timed-out', 'cancelled'].includes(error.kind)
}

function reasonOf(error: unknown): string {
  return error instanceof SignInError ? error.message : 'Renewing the sign-in failed for an unknown reason'
}

/**
 * Gives the grant back: the refresh token, with which the whole grant ends (RFC 7009, 2.1), then the access token. Within 10 s; never rejects.
 */
export async function revokeTokens(
  request: GrantInUse & Pick<Asking, 'signal' | 'timeoutMs'>,
  port: OAuthPort,
): Promise<RevokeOutcome> {
  const { grant, signal, timeoutMs = REVOKE_TIMEOUT_MS } = request
  const endpoint = grant.issuer.revocationEndpoint
  if (endpoint === undefined) return { kind: 'unsupported' }
  try {
    return await withDeadline({ port, signal, timeoutMs }, 'Revoking the sign-in', async (inner) => {
      const addresses = await grantAddresses(request, port)
      const tokens = [
        ['refresh_token', grant.tokens.refreshToken],
        ['access_token', grant.tokens.accessToken],
      ] as const
      for (const [hint, token] of tokens) {
        const problem =
          token === undefined
            ? undefined
            : await revoke(request, { endpoint, token, hint }, { port, signal: inner, addresses })
        if (problem !== undefined) return { kind: 'failed', because: problem }
      }
      return { kind: 'revoked' }
    })
  } catch (error) {
    return { kind: 'failed', because: reasonOf(error) }
  }
}

/** @returns why it did not work. */
async function revoke(
  inUse: GrantInUse,
  { endpoint, token, hint }: { readonly endpoint: string; readonly token: string; readonly hint: string },
  { port, signal, addresses }: Asking & { readonly addresses: AddressRule },
): Promise<string | undefined> {
  const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' })
  const parameters = new URLSearchParams({ token, token_type_hint: hint })
  const { grant, server } = inUse
  const secret = secretOf(inUse)
  await clientAuthentication({ client: grant.client, secret }, grant.issuer)(headers, parameters, endpoint)
  const { status, body } = await ask(port, endpoint, {
    method: 'POST',
    headers: Object.fromEntries(headers),
    body: parameters.toString(),
    addresses,
    field: 'revocation_endpoint',
    ...(server.ca === undefined ? {} : { ca: server.ca }),
    ...(signal === undefined ? {} : { signal }),
  })
  if (status >= 200 && status <= 299) return undefined
  return `The authorization server answered with ${readRefusal(status, readDocument(body), [token, formEncode(token), secret ?? '', formEncode(secret ?? '')]).text}`
}
