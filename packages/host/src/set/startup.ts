import type { HostEvent } from '../events/index.ts'
import type { Generation, Member } from './generation.ts'
import { settled } from './settled.ts'
import { isKeptReady, type StartupOutcome, summarizeStartup } from './startup-report.ts'

const WAITED_FOR: ReadonlySet<StartupOutcome['plan']> = new Set(['start', 'adopt', 'keep-auth-failure', 'reuse'])

/** Where a report is told. What is said about one server names its catalog: it may have been replaced meanwhile. */
export interface StartupListener {
  emit(event: HostEvent): void
  emitFor(catalog: Member['catalog'], event: HostEvent): void
}

/** Tells how the starts of a generation ended, once all of them have. Never rejects. */
export async function reportStartup({ number, members }: Generation, listener: StartupListener): Promise<void> {
  const tell = ({ catalog, connection }: Member): void =>
    listener.emitFor(catalog, { kind: 'server.state-changed', status: connection.value.status })
  const joined = [...members].filter(([, { plan }]) => WAITED_FOR.has(plan.kind))
  for (const [, member] of joined) if (member.plan.kind === 'keep-auth-failure') tell(member)
  // Kept ready at publication: what happens to it later is not part of this start.
  const kept = new Set(
    joined.filter(([, { plan, connection }]) => isKeptReady({ plan: plan.kind, state: connection.value.state })),
  )
  await Promise.all(joined.map(([, { connection }]) => settled(connection.value)))
  for (const [, member] of kept) if (member.connection.value.state.kind === 'ready') tell(member)
  const outcomes = joined
    .filter((one) => one[1].plan.kind !== 'reuse' || kept.has(one))
    .map(([server, { plan, connection }]) => ({ server, plan: plan.kind, state: connection.value.state }))
  listener.emit({ kind: 'set.startup-completed', ...summarizeStartup(number, outcomes) })
}
