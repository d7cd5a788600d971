// Tokens without a person: this program shows its own credentials, or those that its platform or its company gives it. Always for one issuer that is known
// beforehand: what the server says may not decide who gets them.

import type * as Crypto from 'node:crypto'
import type { AddClientAuthentication, OAuthClientProvider } from '@modelcontextprotocol/client'
import type { Grant, IssuerFacts, OAuthClient } from '../grant.ts'
import { withDeadline } from './asking.ts'
import { bindingKey, grantOf } from './attempt.ts'
import { clientAuthentication } from './client-authentication.ts'
import { discover, fetchIssuer } from './discovery.ts'
import { type DpopKey, openDpop } from './dpop.ts'
import { checkEndpoint, placeOf } from './endpoints.ts'
import type { Asking, Discovery, SignInServer } from './flow.ts'
import { readDocument } from './metadata.ts'
import { addressesFor } from './reaching.ts'
import { planScopes } from './scopes.ts'
import { type Exchanged, exchange, loadSdk } from './sdk.ts'
import { SignInError } from './sign-in-error.ts'
import { readRefusal, readTokens, refusalError } from './token-answer.ts'

/** What a program has in place of a person. */
export type MachineCredentials =
  /** RFC 6749, 4.4. */
  | { readonly kind: 'client-secret'; readonly clientId: string; readonly clientSecret: string }
  /** RFC 7523, 2.2. The key is PEM (PKCS #8). `algorithm`: default by the key, RS256 for RSA. */
  | {
      readonly kind: 'private-key'
      readonly clientId: string
      readonly privateKey: string
      readonly algorithm?: string
    }
  /** A JWT that the platform made, as the grant itself (RFC 7523, 2.1; the default) or as the client's credentials (2.2). */
  | {
      readonly kind: 'workload'
      readonly clientId: string
      readonly token: string
      readonly use?: 'grant' | 'client-assertion'
    }
  /** Enterprise-managed authorization (SEP-990): the identity provider turns an id token into a grant for the server's authorization server. */
  | {
      readonly kind: 'cross-app'
      readonly clientId: string
      readonly clientSecret?: string | undefined
      readonly identityProvider: {
        readonly issuer: string
        readonly clientId: string
        readonly clientSecret?: string | undefined
        readonly idToken: string
      }
    }

/** What a program wants tokens for. */
export interface MachineGrantOptions extends Asking {
  readonly server: SignInServer
  /** The only authorization server that may see the credentials, exactly as its metadata writes it. Beats `oauth.issuer`. */
  readonly expectedIssuer: string
  readonly credentials: MachineCredentials
  readonly scopes?: readonly string[] | undefined
  readonly challenge?: string | undefined
  readonly dpop?: 'auto' | 'always' | undefined
  /** A key that tokens were bound to before; else a new one is made. */
  readonly dpopKey?: DpopKey | undefined
  /** In all, in milliseconds. Default 60,000. */
  readonly timeoutMs?: number | undefined
}

const TIMEOUT_MS = 60_000
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'
const ASSERTION = /^[\x21-\x7e]{1,32768}$/

/**
 * Gets tokens without a person, and without a refresh token: the credentials themselves are at hand. Asked once; a refusal is not tried another way.
 * @throws {SignInError} of every kind but those of a browser; `cancelled` soon after the abort.
 */
export function machineGrant(options: MachineGrantOptions): Promise<Grant> {
  const { timeoutMs = TIMEOUT_MS, server } = options
  const what = `Getting tokens for "${server.name}"`
  return withDeadline({ ...options, timeoutMs }, what, (signal) => obtain({ ...options, signal }))
}

async function obtain(options: MachineGrantOptions): Promise<Grant> {
  const { expectedIssuer, credentials, port, signal, challenge, scopes: explicit } = options
  const server = { ...options.server, oauth: { ...options.server.oauth, issuer: expectedIssuer } }
  const discovery = await discover({ server, challenge, port, signal, use: 'token' })
  const { scopes } = planScopes({
    explicit,
    configured: server.scopes,
    challenged: discovery.challengedScopes,
    discovered: discovery.discoveredScopes,
  })
  const key = await bindingKey(discovery, options)
  const client: OAuthClient = { id: credentials.clientId, kind: 'configured' }
  const request = await requestFor(credentials, { discovery, client, scopes, options })
  if (scopes.length > 0) request.parameters.set('scope', scopes.join(' '))
  const askedAtMs = port.dateMs()
  const exchanged = await send(request, { discovery, client, key, options })
  if (exchanged.reply.kind === 'failed') throw exchanged.reply.error
  const { tokens } = readTokens(exchanged.reply.status, exchanged.reply.body, {
    endpoint: discovery.issuer.tokenEndpoint,
    askedAtMs,
    isBound: key !== undefined,
    secrets: exchanged.secrets,
  })
  const { refreshToken: _, ...lasting } = tokens
  return grantOf(discovery, { client, tokens: lasting, scopes, key })
}

/** One request for tokens: its parameters, and how the client shows who it is. */
interface TokenRequest {
  readonly parameters: URLSearchParams
  readonly authentication: AddClientAuthentication
}

interface RequestFacts {
  readonly discovery: Discovery
  readonly client: OAuthClient
  readonly scopes: readonly string[]
  readonly options: MachineGrantOptions
}

async function requestFor(credentials: MachineCredentials, facts: RequestFacts): Promise<TokenRequest> {
  const { discovery, client } = facts
  const { issuer } = discovery
  switch (credentials.kind) {
    case 'client-secret': {
      const authentication = clientAuthentication({ client, secret: credentials.clientSecret }, issuer)
      return { parameters: new URLSearchParams({ grant_type: 'client_credentials' }), authentication }
    }
    case 'private-key': {
      const authentication = await signedAuthentication(credentials, issuer)
      return { parameters: new URLSearchParams({ grant_type: 'client_credentials' }), authentication }
    }
    case 'workload':
      return workloadRequest(credentials, { client, issuer })
    case 'cross-app': {
      const assertion = await crossAppGrant(credentials.identityProvider, facts)
      return {
        parameters: new URLSearchParams({ grant_type: JWT_BEARER, assertion }),
        authentication: clientAuthentication({ client, secret: credentials.clientSecret }, issuer),
      }
    }
  }
}

function workloadRequest(
  { token: given, use = 'grant' }: Extract<MachineCredentials, { kind: 'workload' }>,
  { client, issuer }: { readonly client: OAuthClient; readonly issuer: IssuerFacts },
): TokenRequest {
  const token = given.trim()
  if (!ASSERTION.test(token))
    throw new SignInError('settings-invalid', 'The token of the platform is no JWT: look at oauth.assertionFile', {
      field: 'oauth.assertionFile',
    })
  if (use === 'grant')
    return {
      parameters: new URLSearchParams({ grant_type: JWT_BEARER, assertion: token }),
      authentication: clientAuthentication({ client }, issuer),
    }
  return {
    parameters: new URLSearchParams({ grant_type: 'client_credentials' }),
    authentication: (_headers, parameters) => {
      parameters.set('client_id', client.id)
      parameters.set('client_assertion_type', ASSERTION_TYPE)
      parameters.set('client_assertion', token)
    },
  }
}

/** The audience is the issuer that was expected, never an endpoint that a document names. */
async function signedAuthentication(
  { clientId, privateKey, algorithm }: Extract<MachineCredentials, { kind: 'private-key' }>,
  issuer: IssuerFacts,
): Promise<AddClientAuthentication> {
  const key = readPrivateKey(privateKey)
  const { createPrivateKeyJwtAuth } = await loadSdk()
  return createPrivateKeyJwtAuth({
    issuer: clientId,
    subject: clientId,
    privateKey: { ...key.jwk },
    alg: algorithm ?? key.algorithm,
    audience: issuer.issuer,
  })
}

const CURVES: Readonly<Record<string, string>> = {
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  Ed25519: 'EdDSA',
}

function readPrivateKey(pem: string): { readonly jwk: Readonly<Record<string, unknown>>; readonly algorithm: string } {
  const invalid = new SignInError(
    'settings-invalid',
    'The private key of the client is no PEM key that can be used (RSA, P-256, P-384, P-521 or Ed25519, without a passphrase): look at oauth.privateKeyFile',
    { field: 'oauth.privateKeyFile' },
  )
  const crypto: typeof Crypto = process.getBuiltinModule('node:crypto')
  try {
    const jwk = crypto.createPrivateKey(pem).export({ format: 'jwk' })
    const algorithm = jwk.kty === 'RSA' ? 'RS256' : CURVES[jwk.crv ?? '']
    if (algorithm !== undefined) return { jwk: { ...jwk }, algorithm }
  } catch {
    // The message of what was thrown may show a part of the key.
  }
  throw invalid
}

/** @returns the assertion for the authorization server of the MCP server. */
async function crossAppGrant(
  { issuer, clientId, clientSecret, idToken }: Extract<MachineCredentials, { kind: 'cross-app' }>['identityProvider'],
  { discovery, scopes, options }: RequestFacts,
): Promise<string> {
  const { port, signal, server } = options
  const addresses = await addressesFor(issuer, port)
  checkEndpoint(issuer, 'identityProvider.issuer', addresses)
  const provider = await fetchIssuer(issuer, { port, signal, addresses, use: 'token', ca: server.ca })
  const { tokenEndpoint } = provider.facts
  const { requestJwtAuthorizationGrant } = await loadSdk()
  const { reply, secrets } = await exchange(
    { port, signal, addresses, ca: server.ca, field: 'token_endpoint' },
    (fetchFn) =>
      requestJwtAuthorizationGrant({
        tokenEndpoint,
        audience: discovery.issuer.issuer,
        resource: discovery.resource,
        idToken,
        clientId,
        ...(clientSecret === undefined ? {} : { clientSecret }),
        ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
        fetchFn,
      }),
  )
  if (reply.kind === 'failed') throw reply.error
  const document = readDocument(reply.body)
  if (reply.status < 200 || reply.status > 299)
    throw refusalError(readRefusal(reply.status, document, secrets), tokenEndpoint, reply.status)
  const assertion = document?.['access_token']
  if (document?.['issued_token_type'] !== ID_JAG || typeof assertion !== 'string' || !ASSERTION.test(assertion))
    throw new SignInError('answer-invalid', `${placeOf(tokenEndpoint)} gave no grant for another application`, {
      url: placeOf(tokenEndpoint),
    })
  return assertion
}

async function send(
  { parameters, authentication }: TokenRequest,
  { discovery, client, key, options }: Omit<RequestFacts, 'scopes'> & { readonly key: DpopKey | undefined },
): Promise<Exchanged> {
  const { port, signal, server } = options
  const { fetchToken } = await loadSdk()
  const dpop = key === undefined ? undefined : await openDpop(key)
  const { issuer, addresses, resource } = discovery
  const provider: Partial<OAuthClientProvider> = {
    clientMetadata: { redirect_uris: [] },
    clientInformation: () => ({ client_id: client.id, issuer: issuer.issuer }),
    prepareTokenRequest: () => parameters,
    addClientAuthentication: authentication,
    ...(dpop === undefined ? {} : { dpop: () => dpop.session }),
  }
  return exchange({ port, signal, addresses, ca: server.ca, field: 'token_endpoint' }, (fetchFn) =>
    fetchToken(provider as OAuthClientProvider, issuer.issuer, {
      metadata: {
        issuer: issuer.issuer,
        authorization_endpoint: issuer.tokenEndpoint,
        token_endpoint: issuer.tokenEndpoint,
        response_types_supported: ['code'],
      },
      resource,
      fetchFn,
    }),
  )
}
