// Under what a server's catalog is kept, found out without starting anything; or why it is not kept. Pure, apart from the digest.
import { canonicalJson, digestHex, type JsonObject } from '../base/index.ts'
import type { HttpTransport, ServerDefinition, ServerTraits, StdioTransport } from '../config/index.ts'

/** Where a server runs, as far as it is known before anything is started. */
export type EnvironmentFacts =
  /** `handle` is the environment itself: one that took its place under the same name is another one. */
  | { readonly kind: 'resolved'; readonly name: string; readonly handle: object }
  | { readonly kind: 'unresolved'; readonly because: string }

/** Who the server will be spoken to as. Ids only; a token never gets here. */
export type CredentialFacts =
  | { readonly kind: 'none' }
  /** A stored sign-in, by the id of its record. */
  | { readonly kind: 'record'; readonly id: string }
  /** The account of the host, by its id. */
  | { readonly kind: 'account'; readonly id: string }
  /** There may be some, but they cannot be read now. */
  | { readonly kind: 'unreadable'; readonly because: string }

/** Everything that decides about the place of a catalog. */
export interface CacheFacts {
  readonly definition: ServerDefinition
  readonly traits: Pick<ServerTraits, 'isHosted' | 'sharesToolCache' | 'catalogItemLimit'>
  readonly environment: EnvironmentFacts
  readonly credentials: CredentialFacts
  /** The environment variables of the host; only those that the definition refers to are read, and only into a digest. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where a process without a `cwd` of its own starts. */
  readonly cwd: string
  /** What this side tells about itself: a server may list other tools to another client. */
  readonly client: JsonObject
  /** The version of the package that would be started, if it could be read from the disk. */
  readonly localVersion?: string | undefined
}

/** The place of one catalog. */
export interface CacheScope {
  readonly server: string
  /** Digest; equal in the next process for equal facts. Nothing can be read from it. */
  readonly key: string
  /** In memory, a catalog belongs to this very environment. */
  readonly environment: object
  /** `account`: shared by all connections of one account to one hosted server. */
  readonly sharing: 'own' | 'account'
  /** Digest of what hosted connections must have in common to run each other's tools; empty for the others. Places that are equal may differ in it. */
  readonly liveKey: string
}

/** The place, or the reason why there is none. */
export type CacheDecision =
  | { readonly kind: 'cacheable'; readonly scope: CacheScope }
  | { readonly kind: 'uncacheable'; readonly because: string }

/** The environment of servers on this machine. */
export const LOCAL_ENVIRONMENT: object = Object.freeze({ name: 'local' })

const LOCAL = 'local'
/** A change in what the digest is made of is a new number: what was kept under an older one is not found any more. */
const KEY_VERSION = 1
/** Says who sent a request, not what may be listed. */
const ORIGINATOR = 'originator'

/** Decides whether and where the catalog of a server is kept. */
export function cacheScope(facts: CacheFacts): CacheDecision {
  const { definition, traits, environment, credentials } = facts
  const because = refusal(facts)
  if (because !== undefined || environment.kind === 'unresolved' || credentials.kind === 'unreadable')
    return { kind: 'uncacheable', because: because ?? '' }
  const { name: server, transport } = definition
  const own = { server, environment: environment.handle, sharing: 'own', liveKey: '' } as const
  if (traits.sharesToolCache && transport.kind === 'http' && credentials.kind === 'account') {
    const key = digest(['hosted', placeOf(transport.url), credentials.id])
    return { kind: 'cacheable', scope: { ...own, key, sharing: 'account', liveKey: liveKeyOf(facts, transport) } }
  }
  return { kind: 'cacheable', scope: { ...own, key: digest(ownContent(facts)) } }
}

/** Why nothing is kept of this server; undefined when something may be. */
function refusal({ definition, traits, environment, credentials }: CacheFacts): string | undefined {
  const { transport } = definition
  if (environment.kind === 'unresolved') return `its environment cannot be resolved: ${environment.because}`
  if (transport.kind === 'stdio')
    return environment.name !== LOCAL && transport.envVars.length > 0
      ? `it takes variables from environment "${environment.name}", and their values are not known here`
      : undefined
  if (transport.headersHelper !== undefined) return 'a helper makes its headers anew for every start (headersHelper)'
  if (traits.isHosted && transport.bearerTokenEnvVar !== undefined)
    return 'it is hosted, but its token comes from a variable: nothing says whose catalog it lists'
  if (credentials.kind === 'unreadable') return `its stored sign-in cannot be read: ${credentials.because}`
  return undefined
}

function ownContent({ definition, traits, environment, credentials, ...facts }: CacheFacts): unknown[] {
  const { name, transport, auth, oauth, scopes } = definition
  return [
    name,
    environment.kind === 'resolved' ? environment.name : null,
    transport.kind === 'stdio' ? { cwd: facts.cwd, ...transport } : transport,
    auth,
    { oauth, scopes },
    valuesOf(transport, facts.env),
    credentials,
    traits.catalogItemLimit,
    facts.client,
    facts.localVersion ?? null,
  ]
}

/** Values that the transport reads from the environment, in a fixed order. */
function valuesOf(
  transport: StdioTransport | HttpTransport,
  env: CacheFacts['env'],
): readonly (readonly [string, string | null])[] {
  const names =
    transport.kind === 'stdio'
      ? transport.envVars
      : [...Object.values(transport.envHeaders), ...present(transport.bearerTokenEnvVar)]
  return [...new Set(names)].sort().map((name) => [name, env[name] ?? null])
}

function present(name: string | undefined): readonly string[] {
  return name === undefined ? [] : [name]
}

/** Where it is asked; the query may carry what belongs to one connection only. */
function placeOf(url: string): string {
  const parsed = URL.parse(url)
  return parsed === null ? url : `${parsed.origin}${parsed.pathname}`
}

function liveKeyOf({ definition, traits, env, client }: CacheFacts, transport: HttpTransport): string {
  const headers = Object.entries(transport.headers).filter(([name]) => name.toLowerCase() !== ORIGINATOR)
  return digest([
    { ...transport, headers: Object.fromEntries(headers) },
    valuesOf(transport, env),
    definition.auth,
    traits.catalogItemLimit,
    client,
  ])
}

function digest(content: unknown): string {
  return digestHex(canonicalJson([KEY_VERSION, content]), 64)
}
