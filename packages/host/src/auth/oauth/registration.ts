// Who we are to an authorization server: a client that it knows already, a document of ours, or a registration made now.
import type { OauthSettings } from '../../config/index.ts'
import type { OAuthClient } from '../grant.ts'
import { placeOf } from './endpoints.ts'
import type { Asking, ClientInUse, Discovery } from './flow.ts'
import { readDocument } from './metadata.ts'
import { exchange, loadSdk } from './sdk.ts'
import { SignInError } from './sign-in-error.ts'
import { readRefusal } from './token-answer.ts'

/** How we get a client id. */
export type ClientPlan =
  | { readonly kind: 'configured'; readonly id: string }
  | { readonly kind: 'document'; readonly url: string }
  | { readonly kind: 'register'; readonly endpoint: string }
  | { readonly kind: 'missing' }

const CLIENT_ID_CHARS_MAX = 2_048
const SECRET_CHARS_MAX = 4_096
const METHODS: readonly string[] = ['none', 'client_secret_basic', 'client_secret_post']

/** A client that the entry names; else a document, where one is taken and needs no secret; else a registration. Pure. */
export function planClient(
  { takesClientDocuments, registrationEndpoint, issuer }: Discovery,
  {
    clientId,
    clientMetadataUrl,
  }: Pick<OauthSettings, 'clientId'> & { readonly clientMetadataUrl?: string | undefined },
): ClientPlan {
  if (clientId !== undefined && clientId.trim() !== '') return { kind: 'configured', id: clientId }
  const isPublic = issuer.tokenEndpointAuthMethods?.includes('none') ?? true
  if (clientMetadataUrl !== undefined && takesClientDocuments && isPublic && isDocumentUrl(clientMetadataUrl))
    return { kind: 'document', url: clientMetadataUrl }
  return registrationEndpoint === undefined ? { kind: 'missing' } : { kind: 'register', endpoint: registrationEndpoint }
}

/** https, with a path, and nothing that could make two spellings of it (Client ID Metadata Documents, 3). */
function isDocumentUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  const isPlain = url.username === '' && url.password === '' && url.hash === '' && url.href === text
  return url.protocol === 'https:' && url.pathname !== '/' && isPlain
}

/** What a registration says about us. */
export interface RegistrationOptions extends Asking {
  readonly discovery: Discovery
  readonly redirectUrl: string
  readonly clientName: string
  readonly scopes: readonly string[]
  /** Asked for besides codes and refreshes. Default none. */
  readonly grantTypes?: readonly string[]
  readonly ca?: string | undefined
}

/** @throws {SignInError} `client-missing`: names what to put into the entry; and as {@link register}. */
export async function obtainClient(
  plan: ClientPlan,
  options: RegistrationOptions & { readonly clientSecret: string | undefined },
): Promise<ClientInUse> {
  switch (plan.kind) {
    case 'configured':
      return { client: { id: plan.id, kind: 'configured' }, secret: options.clientSecret }
    case 'document':
      return { client: { id: plan.url, kind: 'document' } }
    case 'register':
      return register(plan.endpoint, options)
    case 'missing':
      throw new SignInError(
        'client-missing',
        `${placeOf(options.discovery.issuer.issuer)} lets nobody register: register a client there by hand, with the redirect URI ${options.redirectUrl}, and put its id into the entry as oauth.clientId (its secret, if it has one, into a variable named by oauth.clientSecretEnvVar)`,
        { field: 'oauth.clientId' },
      )
  }
}

/**
 * Dynamic registration (RFC 7591) as a native application.
 * @throws {SignInError} `registration-refused`, `no-metadata`, `answer-invalid`, `endpoint-refused`, `unreachable`, `timed-out`, `cancelled`
 */
export async function register(endpoint: string, options: RegistrationOptions): Promise<ClientInUse> {
  const { discovery, redirectUrl, clientName, scopes, grantTypes = [], port, signal, timeoutMs, ca } = options
  const { registerClient } = await loadSdk()
  const { issuer } = discovery
  const { reply, secrets } = await exchange(
    { port, signal, timeoutMs, ca, addresses: discovery.addresses, field: 'registration_endpoint' },
    (fetchFn) =>
      registerClient(issuer.issuer, {
        metadata: sdkMetadata(discovery),
        clientMetadata: {
          client_name: clientName,
          redirect_uris: [redirectUrl],
          grant_types: ['authorization_code', 'refresh_token', ...grantTypes],
          response_types: ['code'],
          token_endpoint_auth_method: registrationMethod(issuer.tokenEndpointAuthMethods),
          application_type: redirectUrl.startsWith('http:') ? 'native' : 'web',
        },
        ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
        fetchFn,
      }),
  )
  if (reply.kind === 'failed') throw reply.error
  const document = readDocument(reply.body)
  if (reply.status === 404 && discovery.source === 'defaults')
    throw new SignInError(
      'no-metadata',
      `Nothing at ${placeOf(issuer.issuer)} says how to sign in; if a client is registered there, put its id into the entry as oauth.clientId`,
      { url: placeOf(endpoint), field: 'oauth.clientId' },
    )
  if (reply.status < 200 || reply.status > 299)
    throw refusal(endpoint, reply.status, readRefusal(reply.status, document, secrets))
  return readRegistration(document ?? {}, { endpoint, redirectUrl })
}

function refusal(
  endpoint: string,
  status: number,
  { error, description, text }: ReturnType<typeof readRefusal>,
): SignInError {
  const url = placeOf(endpoint)
  return new SignInError(
    'registration-refused',
    `${url} refused to register us with ${text}: register a client there by hand and put its id into the entry as oauth.clientId`,
    {
      url,
      status,
      field: 'oauth.clientId',
      ...(error === undefined ? {} : { error }),
      ...(description === undefined ? {} : { description }),
    },
  )
}

/** @throws {SignInError} `answer-invalid` */
export function readRegistration(
  document: Readonly<Record<string, unknown>>,
  { endpoint, redirectUrl }: { readonly endpoint: string; readonly redirectUrl: string },
): ClientInUse {
  const fault = registrationFault(document, redirectUrl)
  if (fault !== undefined) {
    const url = placeOf(endpoint)
    throw new SignInError('answer-invalid', `${url} registered us with ${fault}`, { url })
  }
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = document
  const expiresAt = Number(document['client_secret_expires_at'] ?? 0)
  const client: OAuthClient = {
    id: String(id),
    kind: 'registered',
    ...(isText(secret) ? { secret } : {}),
    ...(isText(secret) && Number.isFinite(expiresAt) && expiresAt > 0 ? { secretExpiresAtMs: expiresAt * 1000 } : {}),
    ...(isText(method) ? { tokenEndpointAuthMethod: method } : {}),
  }
  return { client, secret: client.secret }
}

/** Why an answer cannot be used; undefined: it can. */
function registrationFault(document: Readonly<Record<string, unknown>>, redirectUrl: string): string | undefined {
  const {
    client_id: id,
    client_secret: secret,
    redirect_uris: redirects,
    token_endpoint_auth_method: method,
  } = document
  if (!isText(id) || id.length > CLIENT_ID_CHARS_MAX) return 'no "client_id" that can be used'
  if (redirects !== undefined && !(Array.isArray(redirects) && redirects.includes(redirectUrl)))
    return 'another redirect URI than the one that was asked for'
  if (typeof (secret ?? '') !== 'string' || String(secret ?? '').length > SECRET_CHARS_MAX)
    return 'a "client_secret" that cannot be used'
  if (method !== undefined && !METHODS.includes(String(method)))
    return 'a "token_endpoint_auth_method" that was not asked for'
  return isText(method) && method !== 'none' && !isText(secret) ? 'no "client_secret"' : undefined
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** A public client wherever one is taken: a program that people install keeps no secret. */
function registrationMethod(methods: readonly string[] | undefined): string {
  return methods === undefined || methods.includes('none')
    ? 'none'
    : (METHODS.find((one) => methods.includes(one)) ?? 'none')
}

/** What the SDK reads of the metadata; the rest has been judged before. */
export function sdkMetadata(
  discovery: Pick<Discovery, 'issuer' | 'authorizationEndpoint' | 'registrationEndpoint' | 'promisesIssuer'>,
): {
  issuer: string
  authorization_endpoint: string
  token_endpoint: string
  registration_endpoint?: string
  response_types_supported: string[]
  code_challenge_methods_supported: string[]
  authorization_response_iss_parameter_supported: boolean
} {
  const { issuer, authorizationEndpoint, registrationEndpoint, promisesIssuer } = discovery
  return {
    issuer: issuer.issuer,
    authorization_endpoint: authorizationEndpoint,
    token_endpoint: issuer.tokenEndpoint,
    ...(registrationEndpoint === undefined ? {} : { registration_endpoint: registrationEndpoint }),
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: promisesIssuer,
  }
}
