// Makes what a plan says: leases on what is kept, connections for what is new. Starts nothing and says nothing; publication does.
import { Shared } from '../base/index.ts'
import { CatalogView, ServerCatalog } from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import { type CredentialKey, ServerConnection } from '../connection/index.ts'
import type { HostEvent } from '../events/index.ts'
import type { Member } from './generation.ts'
import { initialState } from './initial-state.ts'
import type { Observed } from './observation.ts'
import type { ConnectionPlan } from './plan.ts'
import type { SetSettings } from './settings.ts'

/** One server with what was decided about it. */
export interface PlannedConnection {
  readonly observed: Observed
  readonly plan: ConnectionPlan
  readonly previous: Member | undefined
}

/** Where connections live between generations. */
export type Connections = Map<ServerConnection, Shared<ServerConnection>>

/** The members of the next generation. */
export function carryOut(
  planned: readonly PlannedConnection[],
  settings: SetSettings,
  { connections, emit }: Omit<Making, 'settings'>,
): Map<string, Member> {
  const making: Making = { settings, connections, emit }
  return new Map(planned.map((one) => [one.observed.desired.definition.name, memberOf(one, making)]))
}

interface Making {
  readonly settings: SetSettings
  readonly connections: Connections
  /** Passes on what a connection tells, as long as it is the one that is published under its name. */
  readonly emit: (catalog: ServerCatalog, event: HostEvent) => void
}

function memberOf(planned: PlannedConnection, making: Making): Member {
  const { observed, previous } = planned
  const kept = keeps(planned) ? previous : undefined
  const shared = kept === undefined ? undefined : making.connections.get(kept.connection.value)
  if (kept === undefined || shared === undefined || shared.isClosed) return newMember(planned, making)
  const { catalog } = kept
  return { ...memberFacts(planned), connection: shared.acquire(), catalog, view: viewOf(observed, catalog, kept) }
}

/** A held entry that is held for the same reason goes on as it is: it says since when. */
function keeps({ observed, plan, previous }: PlannedConnection): boolean {
  if (plan.kind === 'start' || plan.kind === 'defer') return false
  if (plan.kind !== 'hold') return true
  const before = previous?.desired.definition
  const { enabled, problem } = observed.desired.definition
  return before?.enabled === enabled && before.problem?.message === problem?.message
}

function memberFacts({ observed, plan }: PlannedConnection): Pick<Member, 'desired' | 'plan' | 'facts' | 'liveKey'> {
  const { desired, facts, liveKey } = observed
  return { desired, plan, facts, liveKey }
}

function newMember(planned: PlannedConnection, making: Making): Member {
  const { observed, previous } = planned
  // What the callbacks below hold lives as long as the connection: nothing of the one before may be in it.
  const { desired, environment, credentials } = observed
  const { definition } = desired
  const { settings, connections, emit } = making
  const { protocol, authorization, watch } = settings
  // A catalog of its own: calls that were prepared on the old connection keep theirs. If it lists the same tools, nothing has changed.
  const catalog: ServerCatalog = new ServerCatalog({
    server: definition.name,
    listTimeoutMs: definition.startupTimeoutMs,
    listItemsMax: desired.catalogItemLimit,
    kind: desired.traits.isHosted ? 'hosted' : 'ordinary',
    cache: observed.cache,
    liveKey: observed.liveKey,
    platform: protocol.platform,
    emit: (event) => emit(catalog, event),
    watch,
    previous: previous?.catalog,
  })
  const platform = environment.kind === 'found' ? environment.environment.platform : protocol.platform
  const connection = new ServerConnection({
    definition,
    settings: platform === protocol.platform ? protocol : { ...protocol, platform },
    authorization: authorization?.(definition),
    sink: catalog,
    emit: (event) => emit(catalog, event),
    introduction: settings.introduction?.(definition.name),
    liveCredentials: () => liveCredentials(definition, settings),
    signIn: () => (credentials.snapshot.kind === 'value' ? 'stored' : 'none'),
    initial: initialState(desired, {
      sinceAtMs: protocol.platform.dateMs(),
      // The pause between tries goes on growing, whoever asks for them.
      failuresBefore: previous?.connection.value.failureCount ?? 0,
    }),
    refusal: environment.kind === 'missing' ? environment.error : undefined,
  })
  const shared = new Shared(connection)
  connections.set(connection, shared)
  return { ...memberFacts(planned), connection: shared.acquire(), catalog, view: viewOf(observed, catalog, previous) }
}

/** One that throws says nothing: the plan for all servers does not fail for it. */
function liveCredentials(definition: ServerDefinition, { credentials }: SetSettings): CredentialKey | undefined {
  try {
    return credentials?.live?.(definition)
  } catch {
    return undefined
  }
}

/** A view that means the same is kept, with what it has made of the listing. */
function viewOf(
  { desired, cache, uncachedBecause, view }: Observed,
  catalog: ServerCatalog,
  previous: Member | undefined,
): CatalogView {
  const { definition, traits } = desired
  const before = previous?.view
  if (before?.definition === definition && before.catalog === catalog && before.cache === cache) return before
  const isSeen = before === undefined || before.live === undefined
  return new CatalogView({ catalog, definition, traits, cache, uncachedBecause, previous: isSeen ? view : before })
}
