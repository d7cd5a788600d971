// How the starts of one generation ended. Pure.
import type { ConnectionState } from '../connection/index.ts'
import type { StartupSummary } from '../events/index.ts'
import type { ConnectionPlan } from './plan.ts'

/** One server whose start was waited for, as it stands now. */
export interface StartupOutcome {
  readonly server: string
  readonly plan: ConnectionPlan['kind']
  readonly state: ConnectionState
}

/** Those that were kept ready come first, then those that became ready; servers that sleep or are held are not part of it. */
export function summarizeStartup(generation: number, outcomes: readonly StartupOutcome[]): StartupSummary {
  const kept = outcomes.filter(isKeptReady).map(({ server }) => server)
  const ready: string[] = []
  const failed: { server: string; code: string; message: string }[] = []
  const cancelled: string[] = []
  for (const outcome of outcomes) {
    const { server, state } = outcome
    switch (state.kind) {
      case 'ready':
        if (!isKeptReady(outcome)) ready.push(server)
        break
      case 'failed':
      case 'needs-auth':
      case 'needs-input':
        failed.push({ server, ...state.reason })
        break
      case 'cancelled':
      case 'closed':
        cancelled.push(server)
        break
      case 'dormant':
      case 'disabled':
      // Waited for until it has settled: it has been started again meanwhile, and its next end is told by its status.
      case 'starting':
      case 'installing':
        break
    }
  }
  return { generation, ready: [...kept, ...ready], failed, cancelled }
}

/** Was it ready all the time? */
export function isKeptReady({ plan, state }: Pick<StartupOutcome, 'plan' | 'state'>): boolean {
  return plan === 'reuse' && state.kind === 'ready'
}
