// Reads the two documents that say how to sign in: of the server (RFC 9728) and of its authorization server (RFC 8414, OpenID Connect Discovery). Pure.
import { isObject, type JsonObject } from '../../base/index.ts'
import type { IssuerFacts } from '../grant.ts'
import { type AddressRule, checkEndpoint, checkOrigins, coversServer, placeOf } from './endpoints.ts'
import { normalizeScopes } from './scopes.ts'
import { SignInError } from './sign-in-error.ts'

const LIST_ITEMS_MAX = 256
const ITEM_CHARS_MAX = 256
const ISSUERS_MAX = 32
const IDENTIFIER_CHARS_MAX = 2_048

/** What the server says about itself. */
export interface ResourceFacts {
  /** Verbatim. */
  readonly resource: string
  /** At least one. */
  readonly issuers: readonly string[]
  readonly scopes?: readonly string[]
  readonly requiresDpop: boolean
}

/** What the authorization server says about itself. */
export interface IssuerMetadata {
  readonly facts: IssuerFacts
  /** Absent: nobody can sign in with a browser there. */
  readonly authorizationEndpoint?: string
  readonly registrationEndpoint?: string
  /** RFC 8628. */
  readonly deviceAuthorizationEndpoint?: string
  readonly takesClientDocuments: boolean
  readonly promisesIssuer: boolean
  readonly scopes?: readonly string[]
}

/** A JSON object, or undefined for everything else. */
export function readDocument(body: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * @param allowedResource A `resource` that the entry names itself, which then need not fit the server's URL.
 * @throws {SignInError} `resource-mismatch`, `metadata-invalid`
 */
export function readResourceMetadata(
  document: JsonObject,
  { serverUrl, at, allowedResource }: { serverUrl: string; at: string; allowedResource: string | undefined },
): ResourceFacts {
  const { resource } = document
  const url = placeOf(at)
  if (typeof resource !== 'string' || resource.length > IDENTIFIER_CHARS_MAX)
    throw new SignInError('metadata-invalid', `${url} has no "resource" that can be used`, { url, field: 'resource' })
  if (resource !== allowedResource && !coversServer(resource, serverUrl))
    throw new SignInError(
      'resource-mismatch',
      `${url} is about ${placeOf(resource)}, not about ${placeOf(serverUrl)}: it is not used`,
      { url, field: 'resource' },
    )
  const issuers = document['authorization_servers']
  if (!Array.isArray(issuers) || issuers.length === 0 || issuers.length > ISSUERS_MAX)
    throw new SignInError('metadata-invalid', `${url} names no authorization server`, {
      url,
      field: 'authorization_servers',
    })
  if (!issuers.every((issuer) => typeof issuer === 'string' && issuer.length <= IDENTIFIER_CHARS_MAX))
    throw new SignInError('metadata-invalid', `"authorization_servers" of ${url} has something else than URLs`, {
      url,
      field: 'authorization_servers',
    })
  const scopes = scopeList(document)
  return {
    resource,
    issuers: issuers as readonly string[],
    ...(scopes === undefined ? {} : { scopes }),
    requiresDpop: document['dpop_bound_access_tokens_required'] === true,
  }
}

/** For what the document of an authorization server is read. */
export interface IssuerExpectation {
  /** The identifiers that it may be for, as they were before it was looked for. Compared without normalising. */
  readonly issuers: readonly string[]
  /** Where it was found. */
  readonly at: string
  readonly addresses: AddressRule
  /** `code`: somebody signs in with a browser. `token`: only its token endpoint is asked. */
  readonly use: 'code' | 'token'
}

/**
 * @throws {SignInError} `issuer-mismatch`, `metadata-invalid`, `endpoint-refused`, `pkce-unsupported`
 */
export function readIssuerMetadata(
  document: JsonObject,
  { issuers, at, addresses, use }: IssuerExpectation,
): IssuerMetadata {
  const { issuer } = document
  const url = placeOf(at)
  if (typeof issuer !== 'string' || !issuers.includes(issuer))
    throw new SignInError(
      'issuer-mismatch',
      `${url} says it is ${typeof issuer === 'string' ? placeOf(issuer) : 'nobody'}, and should be exactly ${placeOf(issuers[0] ?? '')}: it is not used`,
      { url, field: 'issuer' },
    )
  const endpoint = (field: string): string | undefined =>
    document[field] === undefined || document[field] === null
      ? undefined
      : checkEndpoint(document[field], field, addresses)
  const authorizationEndpoint = endpoint('authorization_endpoint')
  const tokenEndpoint = endpoint('token_endpoint')
  const revocationEndpoint = endpoint('revocation_endpoint')
  const others = optionalEndpoints(endpoint)
  if (tokenEndpoint === undefined) throw missing('token_endpoint', url)
  const promisesIssuer = document['authorization_response_iss_parameter_supported'] === true
  if (use === 'code') {
    if (authorizationEndpoint === undefined) throw missing('authorization_endpoint', url)
    checkOrigins({ issuer, authorizationEndpoint, tokenEndpoint, promisesIssuer })
    checkCodeGrant(document, url)
  }
  const tokenEndpointAuthMethods = textList(document['token_endpoint_auth_methods_supported'])
  const dpopAlgorithms = textList(document['dpop_signing_alg_values_supported'])
  const scopes = scopeList(document)
  return {
    facts: {
      issuer,
      tokenEndpoint,
      ...(revocationEndpoint === undefined ? {} : { revocationEndpoint }),
      ...(tokenEndpointAuthMethods === undefined ? {} : { tokenEndpointAuthMethods }),
      ...(dpopAlgorithms === undefined ? {} : { dpopAlgorithms }),
    },
    ...(authorizationEndpoint === undefined ? {} : { authorizationEndpoint }),
    ...others,
    takesClientDocuments: document['client_id_metadata_document_supported'] === true,
    promisesIssuer,
    ...(scopes === undefined ? {} : { scopes }),
  }
}

function optionalEndpoints(
  endpoint: (field: string) => string | undefined,
): Pick<IssuerMetadata, 'registrationEndpoint' | 'deviceAuthorizationEndpoint'> {
  const registrationEndpoint = endpoint('registration_endpoint')
  const deviceAuthorizationEndpoint = endpoint('device_authorization_endpoint')
  return {
    ...(registrationEndpoint === undefined ? {} : { registrationEndpoint }),
    ...(deviceAuthorizationEndpoint === undefined ? {} : { deviceAuthorizationEndpoint }),
  }
}

function missing(field: string, url: string): SignInError {
  return new SignInError('metadata-invalid', `${url} has no "${field}"`, { url, field })
}

/** What the code grant needs: PKCE with S256, announced, and a code in the answer. */
function checkCodeGrant(document: JsonObject, url: string): void {
  if (!textList(document['code_challenge_methods_supported'])?.includes('S256'))
    throw new SignInError(
      'pkce-unsupported',
      `${url} does not announce PKCE with S256 ("code_challenge_methods_supported"): signing in there would not be safe`,
      { url, field: 'code_challenge_methods_supported' },
    )
  const responseTypes = textList(document['response_types_supported'])
  if (responseTypes !== undefined && !responseTypes.includes('code'))
    throw new SignInError('metadata-invalid', `${url} does not offer the response type "code"`, {
      url,
      field: 'response_types_supported',
    })
}

/** The texts of a list, bounded; undefined: there is none. */
function textList(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined
  return value
    .slice(0, LIST_ITEMS_MAX)
    .filter((item): item is string => typeof item === 'string' && item.length <= ITEM_CHARS_MAX)
}

function scopeList(document: JsonObject): readonly string[] | undefined {
  const scopes = normalizeScopes(textList(document['scopes_supported']) ?? [])
  return scopes.length === 0 ? undefined : scopes
}
