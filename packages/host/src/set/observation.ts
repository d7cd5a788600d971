// The awaits before a plan: everything that has to be found out about definitions, side by side and within limits. Starts nothing.
import { isObject, sameJson, untilAborted } from '../base/index.ts'
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
import { type CredentialSnapshot, connectionIdentity } from '../connection/index.ts'
import type { DefinitionFacts } from './definition-facts.ts'
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
  /** What all of this was made from: while it stays the same, nothing has to be found out again. */
  readonly facts: DefinitionFacts
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
 * One per definition, in their order. What nothing has changed about since the previous generation is not looked into again.
 * @throws {HostError} `CANCELLED` on abort.
 */
export async function observeDefinitions(
  { definitions, previous, signal }: ObservationRequest,
  settings: SetSettings,
): Promise<Observed[]> {
  const readings =
    settings.credentials === undefined
      ? undefined
      : await untilAborted(Promise.all(definitions.map((one) => readCredentials(one, settings))), signal)
  const looks = definitions.map((definition, index): Known | Promise<Found> => {
    const credentials = readings?.[index] ?? NO_CREDENTIALS
    const environment = resolveEnvironment(definition, settings.environments)
    const facts = factsOf(definition, { environment, credentials, settings })
    const before = previous?.get(definition.name)
    return before !== undefined && isUnchanged(before, definition, facts)
      ? { definition, before, facts, environment }
      : lookInto(definition, { environment, facts, settings })
  })
  const found = looks.every((one) => !(one instanceof Promise))
    ? (looks as Known[])
    : await untilAborted(Promise.all(looks), signal)
  const scopes = found.flatMap((one) => ('place' in one && one.place.kind === 'cacheable' ? one.place.scope : []))
  if (scopes.length > 0) await untilAborted(settings.cache.load(scopes), signal)
  const nothing = unlisted(settings)
  return found.map((one) =>
    'place' in one
      ? observed(one, previous?.get(one.definition.name), { settings, nothing })
      : knownAgain(one, { settings, nothing }),
  )
}

/** A definition that nothing has changed about. */
interface Known {
  readonly definition: ServerDefinition
  readonly environment: ResolvedEnvironment
  readonly before: Member
  readonly facts: DefinitionFacts
}

interface Found {
  readonly definition: ServerDefinition
  readonly traits: ServerTraits
  readonly environment: ResolvedEnvironment
  readonly facts: DefinitionFacts
  readonly place: CacheDecision
}

interface FactsToHand {
  readonly environment: ResolvedEnvironment
  readonly credentials: CredentialReading
  readonly settings: SetSettings
}

function factsOf(definition: ServerDefinition, { environment, credentials, settings }: FactsToHand): DefinitionFacts {
  const { env } = settings.protocol.platform
  return {
    place: placeOf(environment),
    account: settings.account?.(definition),
    credentials,
    values: variableNames(definition).map((name) => env[name]),
  }
}

function variableNames({ transport, oauth }: ServerDefinition): readonly string[] {
  const secret = oauth?.clientSecretEnvVar
  const own =
    transport.kind === 'stdio'
      ? transport.envVars
      : [
          ...Object.values(transport.envHeaders),
          ...(transport.bearerTokenEnvVar === undefined ? [] : [transport.bearerTokenEnvVar]),
        ]
  return secret === undefined ? own : [...own, secret]
}

function isUnchanged({ desired, facts: was }: Member, definition: ServerDefinition, facts: DefinitionFacts): boolean {
  return (
    was.place === facts.place &&
    was.account === facts.account &&
    sameJson(was.credentials, facts.credentials) &&
    sameJson(was.values, facts.values) &&
    isSameDefinition(desired.definition, definition)
  )
}

/** Where it stands in a file does not matter. */
function isSameDefinition(one: ServerDefinition, other: ServerDefinition): boolean {
  return one === other || sameJson({ ...one, source: undefined }, { ...other, source: undefined })
}

interface LookFacts {
  readonly environment: ResolvedEnvironment
  readonly facts: DefinitionFacts
  readonly settings: SetSettings
}

async function lookInto(definition: ServerDefinition, { environment, facts, settings }: LookFacts): Promise<Found> {
  const { protocol, cwd } = settings
  const { platform } = protocol
  const traits = resolveTraits(definition)
  const version = settings.isCatalogKept ? await localVersion(definition, platform.files) : undefined
  const place = cacheScope({
    definition,
    traits,
    environment: environmentFacts(definition, environment),
    credentials: credentialFacts(definition, facts, settings),
    env: platform.env,
    cwd,
    client: settings.client,
    localVersion: version,
  })
  return { definition, traits, environment, facts, place }
}

interface Observing {
  readonly settings: SetSettings
  /** A catalog that never lists anything. */
  readonly nothing: ServerCatalog
}

function observed(found: Found, before: Member | undefined, { settings, nothing }: Observing): Observed {
  const { definition, traits, environment, facts, place } = found
  const cache = place.kind === 'cacheable' ? settings.cache.entry(place.scope) : undefined
  const liveKey = place.kind === 'cacheable' ? place.scope.liveKey : undefined
  const uncachedBecause = place.kind === 'uncacheable' ? place.because : undefined
  const isSameView = before?.view.definition === definition && before.view.cache === cache
  const view = isSameView
    ? before.view
    : new CatalogView({ catalog: nothing, definition, traits, cache, uncachedBecause, previous: before?.view })
  const identity = connectionIdentity(definition, {
    env: settings.protocol.platform.env,
    workingDirectory: settings.cwd,
    environment: facts.place,
    ...accountOf(facts.account),
    credentials: facts.credentials.snapshot,
    isContended: facts.credentials.isContended,
    client: settings.client,
  })
  const { hasVisibleCachedTools } = view
  const desired = desiredConnection(definition, { identity, hasVisibleCachedTools }, settings.start)
  return { desired, environment, credentials: facts.credentials, cache, liveKey, uncachedBecause, view, facts }
}

/** The same as before, under the definition of now. */
function knownAgain({ definition, environment, before, facts }: Known, { settings, nothing }: Observing): Observed {
  const { desired: was, view: shown, liveKey } = before
  const { cache, uncachedBecause } = shown
  const view =
    shown.definition === definition
      ? shown
      : new CatalogView({ catalog: nothing, definition, traits: was.traits, cache, uncachedBecause, previous: shown })
  const { hasVisibleCachedTools } = view
  const isSame = was.definition === definition && was.hasVisibleCachedTools === hasVisibleCachedTools
  const desired = isSame
    ? was
    : desiredConnection(definition, { identity: was.identity, hasVisibleCachedTools }, settings.start)
  return { desired, environment, credentials: facts.credentials, cache, liveKey, uncachedBecause, view, facts }
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
  { account, credentials: { snapshot, record } }: DefinitionFacts,
  { authorization, credentials }: SetSettings,
): CredentialFacts {
  if (account !== undefined) return { kind: 'account', id: account.id }
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
  { protocol, credentials, credentialsAre }: SetSettings,
): Promise<CredentialReading> {
  if (credentials === undefined || definition.transport.kind !== 'http') return NO_CREDENTIALS
  const abort = new AbortController()
  if (credentialsAre === 'own') return credentials.read(definition, { signal: abort.signal }).catch(() => UNREADABLE)
  const timer = protocol.platform.setTimer(() => abort.abort(), CREDENTIALS_MS_MAX)
  try {
    return readingIn(await untilAborted(credentials.read(definition, { signal: abort.signal }), abort.signal))
  } catch {
    return UNREADABLE
  } finally {
    protocol.platform.clearTimer(timer)
  }
}

/** The reader is the program's own: what has another shape than it should is as good as not read. */
function readingIn(value: unknown): CredentialReading {
  if (!isObject(value)) return UNREADABLE
  const { snapshot, record, isContended } = value
  const read = snapshotIn(snapshot)
  if (read === undefined) return UNREADABLE
  return { snapshot: read, ...(typeof record === 'string' ? { record } : {}), isContended: isContended === true }
}

function snapshotIn(value: unknown): CredentialSnapshot | undefined {
  if (!isObject(value)) return undefined
  const { kind, key } = value
  if (kind === 'value') return typeof key === 'string' ? { kind, key } : undefined
  return kind === 'none' || kind === 'unreadable' ? { kind } : undefined
}
