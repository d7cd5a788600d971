// From a definition to what the wire needs: variables read, certificates loaded, helper prepared. Read anew at every start.

import type { Authorization, HttpTarget, Platform, StdioTarget } from '@convoke/wire'
import { HostError, namesSecret, secretsInArguments, secretsInHeader, secretsInUrl } from '../base/index.ts'
import type { HttpTransport, ServerDefinition, StdioTransport } from '../config/index.ts'
import { HeadersHelper } from './headers-helper.ts'
import type { ProtocolSettings } from './settings.ts'

/** Where a server is, and the values that must not show up in any text about it. */
export interface ResolvedTarget {
  readonly target: StdioTarget | HttpTarget
  /** Grows with the tokens that are sent: read it when it is needed. */
  readonly secrets: readonly string[]
  /** Which setting supplied the credentials that the server sees, for messages. */
  readonly credentials: 'none' | 'configured' | 'sign-in'
}

const CA_BYTES_MAX = 1024 * 1024
/** Tokens of one connection that are kept out of texts: the newest, and those whose answers may still come. */
const TOKENS_KEPT = 4

/**
 * @throws {HostError} `VARIABLE_MISSING` for a bearer variable without a value, `CA_UNREADABLE`.
 */
export function resolveTarget(
  definition: ServerDefinition,
  settings: ProtocolSettings,
  authorization: Authorization | undefined,
): Promise<ResolvedTarget> {
  const { transport } = definition
  return transport.kind === 'stdio'
    ? Promise.resolve(stdioTarget(transport, settings))
    : httpTarget(definition, transport, { settings, authorization })
}

function stdioTarget(
  transport: StdioTransport,
  { platform, leaseDirectory, closeGraceMs }: ProtocolSettings,
): ResolvedTarget {
  const { command, args, env, envVars, cwd } = transport
  const inherited = envVars.map((name) => [name, platform.env[name] ?? ''] as const)
  return {
    target: {
      kind: 'stdio',
      command,
      args,
      env,
      inheritEnv: envVars,
      ...(cwd === undefined ? {} : { cwd }),
      ...(leaseDirectory === undefined ? {} : { leaseDirectory }),
      ...(closeGraceMs === undefined ? {} : { closeGraceMs }),
    },
    secrets: [...secretsInVariables([...Object.entries(env), ...inherited]), ...secretsInArguments(args)],
    credentials: 'none',
  }
}

/** Values of variables whose names say that they are secret, and passwords in addresses such as DATABASE_URL. */
function secretsInVariables(entries: readonly (readonly [string, string])[]): string[] {
  return entries.flatMap(([name, value]) => (value !== '' && namesSecret(name) ? [value] : secretsInUrl(value)))
}

/** What stands in headers whose names say that it is secret, or in those that are filled from variables. */
function secretsInHeaders(
  headers: Readonly<Record<string, string>>,
  envHeaders: Readonly<Record<string, string>>,
): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    value !== '' && (namesSecret(name) || Object.hasOwn(envHeaders, name)) ? secretsInHeader(value) : [],
  )
}

async function httpTarget(
  definition: ServerDefinition,
  transport: HttpTransport,
  { settings, authorization }: { settings: ProtocolSettings; authorization: Authorization | undefined },
): Promise<ResolvedTarget> {
  const { platform, http } = settings
  const { url, ca, envHeaders, headersHelper } = transport
  const bearer = bearerOf(definition.name, transport, platform)
  const headers = headersOf(transport, platform, bearer)
  const isSignedIn = authorization !== undefined && !Object.keys(headers).some(isAuthorization)
  const secrets = [
    ...(bearer === undefined ? [] : [bearer]),
    ...secretsInHeaders(headers, envHeaders),
    ...secretsInUrl(url),
  ]
  return {
    target: {
      kind: 'http',
      url,
      headers,
      client: http,
      ...(transport.transport === undefined ? {} : { transport: transport.transport }),
      ...(ca === undefined ? {} : { ca: await readCertificates(definition.name, ca, platform) }),
      ...(isSignedIn ? { authorization: keepingSecret(authorization, secrets) } : {}),
      ...(headersHelper === undefined
        ? {}
        : { headersProvider: new HeadersHelper({ server: definition.name, platform, ...headersHelper }) }),
    },
    secrets,
    credentials: isSignedIn ? 'sign-in' : credentialsOf(headers, headersHelper),
  }
}

/** A server may repeat a token in an ordinary answer: what was sent goes among the secrets. */
function keepingSecret(authorization: Authorization, secrets: string[]): Authorization {
  const kept: string[] = []
  const keep = (value: string | undefined): string | undefined => {
    if (value === undefined || kept.includes(value)) return value
    kept.push(value)
    secrets.push(...secretsInHeader(value))
    const oldest = kept.length > TOKENS_KEPT ? kept.shift() : undefined
    for (const old of oldest === undefined ? [] : secretsInHeader(oldest)) secrets.splice(secrets.indexOf(old), 1)
    return value
  }
  const { proof, sawNonce } = authorization
  return {
    header: () => {
      const value = authorization.header()
      return value instanceof Promise ? value.then(keep) : keep(value)
    },
    challenge: (refusal) => authorization.challenge(refusal),
    ...(proof === undefined ? {} : { proof: (request) => proof.call(authorization, request) }),
    ...(sawNonce === undefined ? {} : { sawNonce: (nonce) => sawNonce.call(authorization, nonce) }),
  }
}

function credentialsOf(headers: Readonly<Record<string, string>>, helper: unknown): ResolvedTarget['credentials'] {
  return helper !== undefined || Object.keys(headers).some(namesSecret) ? 'configured' : 'none'
}

const isAuthorization = (name: string): boolean => name.toLowerCase() === 'authorization'

function bearerOf(server: string, { bearerTokenEnvVar }: HttpTransport, { env }: Platform): string | undefined {
  if (bearerTokenEnvVar === undefined) return undefined
  const token = env[bearerTokenEnvVar]?.trim()
  if (token !== undefined && token !== '') return token
  throw new HostError(
    'VARIABLE_MISSING',
    `Server "${server}" needs the environment variable ${bearerTokenEnvVar} (bearerTokenEnvVar), and it is not set`,
    { details: { variable: bearerTokenEnvVar } },
  )
}

/** Literal headers, then those from variables that have a value, then the bearer token. */
function headersOf(
  { headers, envHeaders }: HttpTransport,
  { env }: Platform,
  bearer: string | undefined,
): Record<string, string> {
  const merged: Record<string, string> = { ...headers }
  for (const [name, variable] of Object.entries(envHeaders)) {
    const value = env[variable]?.trim()
    if (value === undefined || value === '') continue
    for (const other of Object.keys(merged)) if (other.toLowerCase() === name.toLowerCase()) delete merged[other]
    merged[name] = value
  }
  if (bearer !== undefined && !Object.keys(merged).some(isAuthorization)) merged['authorization'] = `Bearer ${bearer}`
  return merged
}

/** The certificates of a PEM file. @throws {HostError} `CA_UNREADABLE` */
export async function readCertificates(server: string, path: string, { files }: Platform): Promise<string> {
  try {
    const pem = (await files.read(path, CA_BYTES_MAX)).toString('utf8')
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem
  } catch (cause) {
    throw new HostError('CA_UNREADABLE', `Server "${server}": the certificate file ${path} (ca) cannot be read`, {
      cause,
    })
  }
  throw new HostError('CA_UNREADABLE', `Server "${server}": ${path} (ca) holds no PEM certificate`)
}
