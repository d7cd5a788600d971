// What must be equal for one running connection to serve two configurations. Pure: every fact is in the arguments.
import { usesStoredSignIn, type Variables } from '../auth/index.ts'
import { canonicalJson, digestHex, type JsonObject } from '../base/index.ts'
import type { HttpTransport, ServerDefinition, StdioTransport } from '../config/index.ts'

/** The stored sign-in of a server as it was read. `key` names its content (a record and a digest), and is never a token. */
export type CredentialSnapshot =
  | { readonly kind: 'value'; readonly key: string }
  /** Read, and there is none. */
  | { readonly kind: 'none' }
  /** The store could not be read: nothing is known. */
  | { readonly kind: 'unreadable' }

/** Which credentials; `null`: read successfully, and there are none. Never a token. */
export type CredentialKey = string | null

/** What an identity is made of besides the definition. */
export interface IdentityFacts {
  /** Variables of the host; those that the definition refers to are part of the identity, by value. */
  readonly env: Variables
  /** Where a local process without `cwd`, and a headers helper, run. */
  readonly workingDirectory?: string
  /** The environment as it was resolved: the object itself, or the text of why there is none. Default: the name of the definition. */
  readonly environment?: object | string
  /** The account that speaks for this server, as its interned scope key; absent: none does. */
  readonly account?: object
  /** How stored sign-ins are kept. Matters only while one is used. */
  readonly storeMode?: string
  /** The stored sign-in. Matters only while one is used. Default `none`. */
  readonly credentials?: CredentialSnapshot
  /** The store was locked by somebody else while it was read, so `credentials` may be stale. Default false. */
  readonly isContended?: boolean
  /** What the client says of itself at the handshake: capabilities and extensions. */
  readonly client?: JsonObject
}

/** Compared, never shown: the values behind it are digested. */
export interface ConnectionIdentity {
  /** Digest of everything that shaped the transport: command, URL, headers, environment and the variables it reads. */
  readonly configKey: string
  /** Which stored sign-in it speaks with; `undefined` when that could not be read. `null` too where no stored sign-in is used. */
  readonly credentials: CredentialKey | undefined
  /** Where it runs: compared by identity; or the text of why it cannot run. */
  readonly environment?: object | string
  /** Who it speaks as; compared by identity. */
  readonly account?: object | undefined
  /** The store was locked while it was read. No part of a comparison: it says how much `credentials` can be believed. */
  readonly isContended?: boolean
}

/** How much of two identities agrees; `same-config`: all but the stored sign-in. */
export type IdentityMatch = 'same' | 'same-config' | 'different'

/** Compares everything but what only the set decides (limits of a start, filters, approvals). */
export function matchIdentity(current: ConnectionIdentity, desired: ConnectionIdentity): IdentityMatch {
  if (current === desired) return 'same'
  if (current.environment !== desired.environment || current.account !== desired.account) return 'different'
  if (current.configKey !== desired.configKey) return 'different'
  return current.credentials === desired.credentials ? 'same' : 'same-config'
}

/** The identity of a definition under the facts of now. */
export function connectionIdentity(definition: ServerDefinition, facts: IdentityFacts): ConnectionIdentity {
  return new LazyIdentity(definition, facts)
}

/** Most hosts are never given a second configuration: the digest is made when it is first compared. */
class LazyIdentity implements ConnectionIdentity {
  readonly environment: object | string
  readonly account: object | undefined
  readonly credentials: CredentialKey | undefined
  readonly isContended: boolean
  #content: JsonObject | undefined
  #configKey: string | undefined

  constructor(definition: ServerDefinition, facts: IdentityFacts) {
    this.environment = facts.environment ?? definition.environment
    this.account = facts.account
    const usesSignIn = usesStoredSignIn(definition, { env: facts.env, hasAccount: facts.account !== undefined })
    this.credentials = usesSignIn ? keyOf(facts.credentials ?? { kind: 'none' }) : null
    this.isContended = usesSignIn && facts.isContended === true
    this.#content = contentOf(definition, facts, usesSignIn)
  }

  get configKey(): string {
    if (this.#configKey === undefined) {
      this.#configKey = digestHex(canonicalJson(this.#content), 64)
      this.#content = undefined
    }
    return this.#configKey
  }
}

function keyOf(snapshot: CredentialSnapshot): CredentialKey | undefined {
  if (snapshot.kind === 'value') return snapshot.key
  return snapshot.kind === 'none' ? null : undefined
}

/** By reference, so that an identity nobody compares is small. */
function contentOf(definition: ServerDefinition, facts: IdentityFacts, usesSignIn: boolean): JsonObject {
  const { transport, environment, auth, messageBytesMax } = definition
  return {
    transport,
    environment,
    auth,
    messageBytesMax,
    pluginRoot: definition.plugin?.root ?? null,
    workingDirectory: dependsOnWorkingDirectory(definition) ? (facts.workingDirectory ?? null) : null,
    variables: variablesOf(definition, facts.env),
    client: facts.client ?? null,
    signIn: usesSignIn ? signInOf(definition, facts) : null,
  }
}

function dependsOnWorkingDirectory({ transport, environment }: ServerDefinition): boolean {
  if (environment !== 'local') return false
  return transport.kind === 'stdio' ? transport.cwd === undefined : transport.headersHelper !== undefined
}

/** Name and value of every variable of the host that the transport reads, sorted. */
function variablesOf({ transport, environment }: ServerDefinition, env: Variables): [string, string | null][] {
  const names = transport.kind === 'stdio' ? stdioVariables(transport) : httpVariables(transport, environment, env)
  return [...new Set(names)].sort().map((name) => [name, env[name] ?? null])
}

function stdioVariables({ envVars }: StdioTransport): readonly string[] {
  return envVars
}

/** In another environment the bearer variable is read there; only if it is set here, too, it is ours. */
function httpVariables(
  { envHeaders, bearerTokenEnvVar: bearer }: HttpTransport,
  environment: string,
  env: Variables,
): string[] {
  const isOurs = bearer !== undefined && (environment === 'local' || env[bearer] !== undefined)
  return [...Object.values(envHeaders), ...(isOurs ? [bearer] : [])]
}

/** What a sign-in in use depends on. Where it redirects to does not matter to a connection. */
function signInOf({ oauth }: ServerDefinition, { env, storeMode }: IdentityFacts): JsonObject {
  const { clientId, clientSecretEnvVar, issuer, resource } = oauth ?? {}
  const { grant, privateKeyFile, assertionFile, dpop } = oauth ?? {}
  return {
    storeMode: storeMode ?? null,
    clientId: clientId ?? null,
    clientSecret: clientSecretEnvVar === undefined ? null : [clientSecretEnvVar, env[clientSecretEnvVar] ?? null],
    issuer: issuer ?? null,
    resource: resource ?? null,
    grant: grant ?? null,
    privateKeyFile: privateKeyFile ?? null,
    assertionFile: assertionFile ?? null,
    dpop: dpop ?? null,
  }
}
