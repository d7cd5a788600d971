// Runs the scenarios of one set, one at a time, and counts.
import { EXTENSION_RUNS } from './extensions.ts'
import {
  type Leg,
  type Revision,
  requiredScenarios,
  runScenario,
  type ScenarioOutcome,
  type ScenarioRun,
  type Subject,
} from './suite.ts'

/** What the scenarios of one set came to. */
export interface Tally {
  readonly passed: number
  /** Scenarios that were run; with a filter fewer than the set has. */
  readonly run: number
  /** How many the set has. */
  readonly target: number
  readonly durationMs: number
  readonly failed: readonly ScenarioOutcome[]
}

/** What one required set came to; `target` is what the frozen set demands. */
export interface Score extends Tally {
  readonly leg: Leg
  readonly revision: Revision
}

export interface ScoreOptions {
  /** Only scenarios whose name matches. */
  readonly only?: RegExp
  /** How many run at a time, 1 (default) to 4. */
  readonly concurrency?: number
  /** Told as soon as a scenario has ended. */
  readonly onOutcome?: (outcome: ScenarioOutcome) => void
}

/** Nothing is tried a second time. */
export async function score(
  leg: Leg,
  revision: Revision,
  subject: Subject,
  options: ScoreOptions = {},
): Promise<Score> {
  const runs = requiredScenarios(revision, leg).map((scenario) => ({ scenario, revision }))
  return { leg, revision, ...(await count(runs, subject, options)) }
}

/** The sign-ins that no set demands. Nothing is tried a second time. */
export async function scoreExtensions(subject: Subject, options: ScoreOptions = {}): Promise<Tally> {
  return count(EXTENSION_RUNS, subject, options)
}

async function count(
  runs: readonly ScenarioRun[],
  subject: Subject,
  { only, concurrency = 1, onOutcome }: ScoreOptions,
): Promise<Tally> {
  const startedAtMs = performance.now()
  const waiting = runs.filter(({ scenario }) => only?.test(scenario) ?? true)
  const run = waiting.length
  const outcomes: ScenarioOutcome[] = []
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const outcome = await runScenario(next, subject)
      outcomes.push(outcome)
      onOutcome?.(outcome)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  const failed = outcomes.filter(({ passed }) => !passed)
  return {
    passed: outcomes.length - failed.length,
    run,
    target: runs.length,
    durationMs: Math.round(performance.now() - startedAtMs),
    failed,
  }
}
