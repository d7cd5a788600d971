// What a plan means, a line per server. Pure.
import { canonicalJson } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { PlannedServer } from '../events/index.ts'
import type { PlannedConnection } from './carry-out.ts'
import type { DesiredConnection } from './desired.ts'
import type { Member } from './generation.ts'
import type { Observed } from './observation.ts'
import type { ObservedConnection } from './observe.ts'
import { type ConnectionPlan, planConnection } from './plan.ts'

/** Those that are in the next generation, in the order of the definitions, then those that leave. */
export function plannedServers(
  planned: readonly PlannedConnection[],
  previous: readonly Member[],
): readonly PlannedServer[] {
  const rows = planned.map(({ observed, plan, previous: before }) => rowOf(observed.desired, plan, before?.desired))
  return [
    ...rows,
    ...retired(
      rows,
      previous.map(({ desired }) => desired),
    ),
  ]
}

/** What the change from one configuration to another would do to a host in which every server of the first is as well as it may be. */
export function plannedChange(running: readonly Observed[], next: readonly Observed[]): readonly PlannedServer[] {
  const before = new Map(running.map(({ desired }) => [desired.definition.name, desired]))
  const policy = { reconnect: new Set<string>(), retriesFailed: true }
  const rows = next.map(({ desired }) => {
    const was = before.get(desired.definition.name)
    return rowOf(desired, planConnection(was === undefined ? undefined : supposed(was), desired, policy), was)
  })
  return [...rows, ...retired(rows, [...before.values()])]
}

function supposed({ definition, identity, catalogItemLimit, start }: DesiredConnection): ObservedConnection {
  const { startupTimeoutMs, installTimeoutMs } = definition
  const phase = start === 'never' ? 'closed' : 'ready'
  return { identity, phase, catalogItemLimit, startupTimeoutMs, installTimeoutMs, liveCredentials: undefined }
}

function rowOf(
  desired: DesiredConnection,
  { kind: action, because }: ConnectionPlan,
  before: DesiredConnection | undefined,
): PlannedServer {
  const changed = before === undefined ? [] : changedFields(before, desired)
  return { server: desired.definition.name, action, because, changed }
}

function retired(rows: readonly PlannedServer[], before: readonly DesiredConnection[]): PlannedServer[] {
  const next = new Set(rows.map(({ server }) => server))
  return before
    .map(({ definition }) => definition.name)
    .filter((server) => !next.has(server))
    .map((server) => ({ server, action: 'retire', because: 'removed', changed: [] }))
}

/** Names of the fields of a definition that differ; never a value. */
function changedFields(before: DesiredConnection, next: DesiredConnection): readonly string[] {
  if (before.definition === next.definition) return []
  const [one, other] = [fieldsOf(before.definition), fieldsOf(next.definition)]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].filter((name) => canonicalJson(one[name]) !== canonicalJson(other[name])).sort()
}

/** As an entry has them: those of the transport stand beside the others. Where it stands is no field. */
function fieldsOf({ source, transport, ...fields }: ServerDefinition): Readonly<Record<string, unknown>> {
  const { kind, ...own } = transport
  // What one kind has by default is nothing that changed about the other.
  const given = Object.entries(own).filter(([, value]) => !['[]', '{}'].includes(canonicalJson(value)))
  return { ...fields, ...Object.fromEntries(given) }
}
