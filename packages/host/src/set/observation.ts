// The awaits before a plan: everything that has to be found out about definitions, side by side and within limits. Starts nothing.
import { untilAborted } from '../base/index.ts'
import {
  type CacheDecision,
  type CatalogCacheEntry,
  CatalogView,
  type CredentialFacts,
  cacheScope,
  type EnvironmentFacts,
  LOCAL_ENVIRONMENT,
  localVersion,
  ServerCatalog,
} from '../catalog/index.ts'
import { resolveTraits, type ServerDefinition, type ServerTraits } from '../config/index.ts'
import { connectionIdentity } from '../connection/index.ts'
import { type DesiredConnection, desiredConnection } from './desired.ts'
import { type ResolvedEnvironment, resolveEnvironment } from './environments.ts'
import type { Member } from './generation.ts'
import type { CredentialReading, SetSettings } from './settings.ts'

/** Longest wait for the credentials of one server, in milliseconds. */
const CREDENTIALS_MS_MAX = 2_000

/** One definition with everything that was found out about it. */
export interface Observed {
  readonly desired: DesiredConnection
  readonly environment: ResolvedEnvironment
  readonly credentials: CredentialReading
  /** Where its catalog is kept; undefined: nowhere. */
  readonly cache: CatalogCacheEntry | undefined
  /** What its connection has in common with those whose listing it runs; undefined: it runs its own. */
  readonly liveKey: string | undefined
  /** Why it is kept nowhere. */
  readonly uncachedBecause: string | undefined
  /** What the definition shows of a kept catalog, before there is a connection. */
  readonly view: CatalogView
}

const NO_CREDENTIALS: CredentialReading = { snapshot: { kind: 'none' }, isContended: false }
const UNREADABLE: CredentialReading = { snapshot: { kind: 'unreadable' }, isContended: false }

/** What is asked for. */
export interface ObservationRequest {
  readonly definitions: readonly ServerDefinition[]
  readonly previous: ReadonlyMap<string, Member> | undefined
  readonly signal: AbortSignal | undefined
}

/**
 * One per definition, in their order.
 * @throws {HostError} `CANCELLED` on abort.
 */
export async function observeDefinitions(
  { definitions, previous, signal }: ObservationRequest,
  settings: SetSettings,
): Promise<Observed[]> {
  const found = await untilAborted(Promise.all(definitions.map((one) => lookInto(one, settings))), signal)
  const scopes = found.flatMap(({ place }) => (place.kind === 'cacheable' ? place.scope : []))
  await untilAborted(settings.cache.load(scopes), signal)
  const nothing = unlisted(settings)
  return found.map((one) => observed(one, previous?.get(one.definition.name), { settings, nothing }))
}

interface Found {
  readonly definition: ServerDefinition
  readonly traits: ServerTraits
  readonly environment: ResolvedEnvironment
  readonly credentials: CredentialReading
  readonly place: CacheDecision
}

async function lookInto(definition: ServerDefinition, settings: SetSettings): Promise<Found> {
  const { protocol, environments, cwd } = settings
  const { platform } = protocol
  const environment = resolveEnvironment(definition, environments)
  const traits = resolveTraits(definition)
  const credentials = await readCredentials(definition, settings)
  const version = settings.isCatalogKept ? await localVersion(definition, platform.files) : undefined
  const place = cacheScope({
    definition,
    traits,
    environment: environmentFacts(definition, environment),
    credentials: credentialFacts(definition, credentials, settings),
    env: platform.env,
    cwd,
    client: settings.client,
    localVersion: version,
  })
  return { definition, traits, environment, credentials, place }
}

interface Observing {
  readonly settings: SetSettings
  /** A catalog that never lists anything. */
  readonly nothing: ServerCatalog
}

function observed(found: Found, before: Member | undefined, { settings, nothing }: Observing): Observed {
  const { definition, traits, environment, credentials, place } = found
  const { protocol, account, start } = settings
  const cache = place.kind === 'cacheable' ? settings.cache.entry(place.scope) : undefined
  const liveKey = place.kind === 'cacheable' ? place.scope.liveKey : undefined
  const uncachedBecause = place.kind === 'uncacheable' ? place.because : undefined
  const isSameView = before?.view.definition === definition && before.view.cache === cache
  const view = isSameView
    ? before.view
    : new CatalogView({ catalog: nothing, definition, traits, cache, uncachedBecause, previous: before?.view })
  const identity = connectionIdentity(definition, {
    env: protocol.platform.env,
    workingDirectory: settings.cwd,
    environment: placeOf(environment),
    ...accountOf(account?.(definition)),
    credentials: credentials.snapshot,
    isContended: credentials.isContended,
    client: settings.client,
  })
  const { hasVisibleCachedTools } = view
  const desired = desiredConnection(definition, { identity, hasVisibleCachedTools }, start)
  return { desired, environment, credentials, cache, liveKey, uncachedBecause, view }
}

function unlisted({ protocol, emit }: SetSettings): ServerCatalog {
  return new ServerCatalog({ server: '', listTimeoutMs: 0, platform: protocol.platform, emit, watch: 'none' })
}

function environmentFacts({ environment: name }: ServerDefinition, resolved: ResolvedEnvironment): EnvironmentFacts {
  switch (resolved.kind) {
    case 'found':
      return { kind: 'resolved', name, handle: resolved.environment }
    case 'not-needed':
      return { kind: 'resolved', name, handle: LOCAL_ENVIRONMENT }
    case 'missing':
      return { kind: 'unresolved', because: resolved.error.message }
  }
}

/** Whose catalog it is. A sign-in that only the program knows of has no name to keep anything under. */
function credentialFacts(
  definition: ServerDefinition,
  { snapshot, record }: CredentialReading,
  { account, authorization, credentials }: SetSettings,
): CredentialFacts {
  const id = account?.(definition)?.id
  if (id !== undefined) return { kind: 'account', id }
  if (snapshot.kind === 'unreadable') return { kind: 'unreadable', because: 'the store did not answer' }
  if (snapshot.kind === 'value') return { kind: 'record', id: record ?? snapshot.key }
  return credentials === undefined && authorization?.(definition) !== undefined
    ? { kind: 'unreadable', because: 'the program keeps it to itself' }
    : { kind: 'none' }
}

function accountOf(account: object | undefined): { readonly account?: object } {
  return account === undefined ? {} : { account }
}

function placeOf(resolved: ResolvedEnvironment): object | string {
  switch (resolved.kind) {
    case 'found':
      return resolved.environment
    case 'not-needed':
      return ''
    case 'missing':
      return resolved.error.message
  }
}

async function readCredentials(
  definition: ServerDefinition,
  { protocol, credentials }: SetSettings,
): Promise<CredentialReading> {
  if (credentials === undefined || definition.transport.kind !== 'http') return NO_CREDENTIALS
  const abort = new AbortController()
  const timer = protocol.platform.setTimer(() => abort.abort(), CREDENTIALS_MS_MAX)
  try {
    return await untilAborted(credentials.read(definition, { signal: abort.signal }), abort.signal)
  } catch {
    return UNREADABLE
  } finally {
    protocol.platform.clearTimer(timer)
  }
}
