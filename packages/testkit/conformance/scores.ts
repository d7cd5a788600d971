// Runs the required scenarios of one leg and revision, one at a time, and counts.
import { type Leg, type Revision, requiredScenarios, runScenario, type ScenarioOutcome, type Subject } from './suite.ts'

/** What one required set came to. */
export interface Score {
  readonly leg: Leg
  readonly revision: Revision
  readonly passed: number
  /** Scenarios that were run; with a filter fewer than the set has. */
  readonly run: number
  /** What the frozen set demands. */
  readonly target: number
  readonly durationMs: number
  readonly failed: readonly ScenarioOutcome[]
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
  { only, concurrency = 1, onOutcome }: ScoreOptions = {},
): Promise<Score> {
  const startedAtMs = performance.now()
  const required = requiredScenarios(revision, leg)
  const waiting = required.filter((scenario) => only?.test(scenario) ?? true)
  const run = waiting.length
  const outcomes: ScenarioOutcome[] = []
  const worker = async (): Promise<void> => {
    for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) {
      const outcome = await runScenario(scenario, revision, subject)
      outcomes.push(outcome)
      onOutcome?.(outcome)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  const failed = outcomes.filter(({ passed }) => !passed)
  return {
    leg,
    revision,
    passed: outcomes.length - failed.length,
    run,
    target: required.length,
    durationMs: Math.round(performance.now() - startedAtMs),
    failed,
  }
}
