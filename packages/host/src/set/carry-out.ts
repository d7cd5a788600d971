// Makes what a plan says: leases on what is kept, connections for what is new. Starts nothing and says nothing; publication does.
import { Shared } from '../base/index.ts'
import { CatalogView, ServerCatalog } from '../catalog/index.ts'
import { ServerConnection } from '../connection/index.ts'
import type { HostEvent, PublicationGate } from '../events/index.ts'
import type { DesiredConnection } from './desired.ts'
import type { Member } from './generation.ts'
import { initialState } from './initial-state.ts'
import type { ConnectionPlan } from './plan.ts'
import type { SetSettings } from './settings.ts'

/** One server with what was decided about it. */
export interface PlannedConnection {
  readonly desired: DesiredConnection
  readonly plan: ConnectionPlan
  readonly previous: Member | undefined
}

/** Where connections live between generations. */
export type Connections = Map<ServerConnection, Shared<ServerConnection>>

/** The members of the next generation. */
export function carryOut(
  planned: readonly PlannedConnection[],
  settings: SetSettings,
  { connections, gate }: { readonly connections: Connections; readonly gate: PublicationGate },
): Map<string, Member> {
  const members = new Map<string, Member>()
  for (const { desired, plan, previous } of planned) {
    const { definition, identity } = desired
    const kept = plan.kind === 'reuse' ? previous : undefined
    const shared = kept === undefined ? undefined : connections.get(kept.connection.value)
    const member =
      kept === undefined || shared === undefined
        ? newMember(desired, plan, { settings, connections, previous, emit: (event) => gate.emit(event) })
        : {
            connection: shared.acquire(),
            catalog: kept.catalog,
            view: viewOf(desired, kept.catalog, kept),
            identity,
            plan,
          }
    members.set(definition.name, member)
  }
  return members
}

interface NewMember {
  readonly settings: SetSettings
  readonly connections: Connections
  readonly previous: Member | undefined
  readonly emit: (event: HostEvent) => void
}

function newMember(
  desired: DesiredConnection,
  plan: ConnectionPlan,
  { settings, connections, previous, emit }: NewMember,
): Member {
  const { definition, identity } = desired
  const { protocol, authorization, watch } = settings
  // A catalog of its own: calls that were prepared on the old connection keep theirs. If it lists the same tools, nothing has changed.
  const catalog = new ServerCatalog({
    server: definition.name,
    listTimeoutMs: definition.startupTimeoutMs,
    platform: protocol.platform,
    emit: settings.emit,
    watch,
    previous: previous?.catalog,
  })
  const connection = new ServerConnection({
    definition,
    settings: protocol,
    authorization: authorization?.(definition),
    sink: catalog,
    emit,
    initial: initialState(definition, protocol.platform.dateMs()),
  })
  const shared = new Shared(connection)
  connections.set(connection, shared)
  return { connection: shared.acquire(), catalog, view: viewOf(desired, catalog, previous), identity, plan }
}

/** A view that means the same is kept, with what it has made of the listing. */
function viewOf({ definition }: DesiredConnection, catalog: ServerCatalog, previous: Member | undefined): CatalogView {
  const before = previous?.view
  if (before?.definition === definition && before.catalog === catalog) return before
  return new CatalogView({ catalog, definition, traits: { isHosted: false }, previous: before })
}
