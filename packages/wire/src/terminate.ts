// The second half of every end: SIGTERM, two seconds, SIGKILL, for processes that are identified by number and start time.
import type { Platform } from './platform.ts'
import type { ProcessFacts } from './process-table.ts'

/** Between the steps of every escalation. */
export const STEP_MS = 2_000
const POLL_MS_MIN = 10
const POLL_MS_MAX = 100

/** Resolves when none of them runs, or 1 s after SIGKILL. */
export async function terminateAll(platform: Platform, victims: readonly ProcessFacts[]): Promise<void> {
  if (victims.length === 0) return
  const left = (): ProcessFacts[] => victims.filter((victim) => stillRuns(platform, victim))
  for (const [signal, waitMs] of [
    ['SIGTERM', STEP_MS],
    ['SIGKILL', STEP_MS / 2],
  ] as const) {
    for (const { pid } of left()) platform.kill(pid, signal, 'process')
    if (await becomesTrue(platform, waitMs, () => left().length === 0)) return
  }
}

/** A zombie does not run; a number with another start time is somebody else. */
export function stillRuns({ processes }: Platform, { pid, startedAt }: ProcessFacts): boolean {
  const facts = processes.facts(pid)
  return facts !== undefined && !facts.zombie && facts.startedAt === startedAt
}

/** Looks again and again, less and less often, for at most `waitMs`. */
export async function becomesTrue(platform: Platform, waitMs: number, isTrue: () => boolean): Promise<boolean> {
  const endsAtMs = platform.now() + waitMs
  for (let pollMs = POLL_MS_MIN; ; pollMs = Math.min(pollMs * 2, POLL_MS_MAX)) {
    if (isTrue()) return true
    const leftMs = endsAtMs - platform.now()
    if (leftMs <= 0) return false
    await new Promise<void>((resolve) => platform.setTimer(resolve, Math.min(pollMs, leftMs)))
  }
}
