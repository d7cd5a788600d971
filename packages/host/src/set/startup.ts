import type { HostEvent } from '../events/index.ts'
import type { Generation } from './generation.ts'
import { settled } from './settled.ts'
import { isKeptReady, type StartupOutcome, summarizeStartup } from './startup-report.ts'

const WAITED_FOR: ReadonlySet<StartupOutcome['plan']> = new Set(['start', 'adopt', 'keep-auth-failure', 'reuse'])

/** Tells how the starts of a generation ended, once all of them have. Never rejects. */
export async function reportStartup({ number, members }: Generation, emit: (event: HostEvent) => void): Promise<void> {
  const joined = [...members].filter(([, { plan }]) => WAITED_FOR.has(plan.kind))
  for (const [, { plan, connection }] of joined)
    if (plan.kind === 'keep-auth-failure') emit({ kind: 'server.state-changed', status: connection.value.status })
  // Kept ready at publication: what happens to it later is not part of this start.
  const kept = new Set(
    joined.filter(([, { plan, connection }]) => isKeptReady({ plan: plan.kind, state: connection.value.state })),
  )
  await Promise.all(joined.map(([, { connection }]) => settled(connection.value)))
  for (const [, { connection }] of kept)
    if (connection.value.state.kind === 'ready') emit({ kind: 'server.state-changed', status: connection.value.status })
  const outcomes = joined
    .filter((one) => one[1].plan.kind !== 'reuse' || kept.has(one))
    .map(([server, { plan, connection }]) => ({ server, plan: plan.kind, state: connection.value.state }))
  emit({ kind: 'set.startup-completed', ...summarizeStartup(number, outcomes) })
}
