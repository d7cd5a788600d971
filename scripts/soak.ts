// `npm run soak`: the same tests with the full counts. Takes as long as it takes; not part of CI.
import './assert-node.ts'
import { runSteps, type Step, script } from './steps.ts'

const HOUR_MS = 3_600_000
/** A million steps in all: many seeds meet more than one long one. */
const SIMULATION_RUNS = 100
const SIMULATION_STEPS = 10_000

/** A step of the test runner with another count. A filter is a part of a path. */
function tests(name: string, env: Step['env'], filters: readonly string[]): Step {
  const reporters = ['--reporter=default', '--reporter=scripts/vitest-counts.ts']
  const command = ['vitest', 'run', `--testTimeout=${HOUR_MS}`, ...reporters, ...filters]
  return { name, command, timeoutMs: 3 * HOUR_MS, ...(env === undefined ? {} : { env }) }
}

const SIMULATION_ARGS = ['--seed', '1', '--runs', String(SIMULATION_RUNS), '--steps', String(SIMULATION_STEPS)]

const { passed, failed } = await runSteps([
  // Event streams are fuzzed in a file that has other tests, too.
  tests('fuzz', { CONVOKE_FUZZ_RUNS: '1000000' }, ['fuzz', 'packages/wire/test/sse.test.ts']),
  script('simulate', SIMULATION_ARGS, 3 * HOUR_MS),
  tests('races', { CONVOKE_RACE_RUNS: '200' }, [
    'packages/host/test/races.test.ts',
    'packages/host/test/races-real.test.ts',
  ]),
  tests('lock', { CONVOKE_LOCK_ROUNDS: '1000' }, ['packages/host/test/store-lock-fuzz.test.ts']),
  tests('sign-ins', { CONVOKE_SIGN_IN_EXPIRIES: '20' }, ['packages/host/test/sign-in-kills.test.ts']),
  script('endurance', [], 2 * HOUR_MS),
])
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1
