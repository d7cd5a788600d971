// What a plan means, a line per server. Pure.
import { canonicalJson } from '../base/index.ts'
import type { PlannedServer } from '../events/index.ts'
import type { PlannedConnection } from './carry-out.ts'
import type { Member } from './generation.ts'

/** Those that are in the next generation, in the order of the definitions, then those that leave. */
export function plannedServers(
  planned: readonly PlannedConnection[],
  previous: readonly Member[],
): readonly PlannedServer[] {
  const next = new Set(planned.map(({ observed }) => observed.desired.definition.name))
  return [
    ...planned.map(({ observed, plan, previous: before }) => ({
      server: observed.desired.definition.name,
      action: plan.kind,
      because: plan.because,
      changed: before === undefined ? [] : changedFields(before, observed.desired),
    })),
    ...previous
      .map(({ desired }) => desired.definition.name)
      .filter((server) => !next.has(server))
      .map((server) => ({ server, action: 'retire' as const, because: 'removed' as const, changed: [] })),
  ]
}

/** Names of the fields of a definition that differ; never a value. */
function changedFields({ desired }: Member, next: Member['desired']): readonly string[] {
  const [one, other] = [desired.definition, next.definition]
  if (one === other) return []
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  names.delete('source')
  return [...names].filter((name) => canonicalJson(one[name as never]) !== canonicalJson(other[name as never])).sort()
}
