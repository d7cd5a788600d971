import { type Step, script } from './steps.ts'

const MINUTE_MS = 60_000

/** In the order of their price. */
const STATIC_STEPS: readonly Step[] = [
  { name: 'types', command: ['tsc', '-b'], timeoutMs: 3 * MINUTE_MS },
  { name: 'types-of-tests', command: ['tsc', '-p', 'tsconfig.check.json'], timeoutMs: 3 * MINUTE_MS },
  { name: 'lint', command: ['biome', 'check', '--error-on-warnings'], timeoutMs: MINUTE_MS },
  script('build'),
  script('walls'),
  script('requirements'),
  { name: 'dead-code', command: ['knip', '--treat-config-hints-as-errors'], timeoutMs: MINUTE_MS },
  script('packages'),
]

function tests(env: Readonly<Record<string, string>> = {}): Step {
  return {
    name: 'tests',
    command: ['vitest', 'run', '--reporter=default', '--reporter=scripts/vitest-counts.ts'],
    timeoutMs: 18 * MINUTE_MS,
    env: { CONVOKE_FUZZ_RUNS: '10000', ...env },
  }
}

/** Without the suites that kill programs again and again or wait for many processes: see `LONG_SUITES` in vitest.config.ts. */
export const GATE_STEPS: readonly Step[] = [...STATIC_STEPS, tests({ CONVOKE_SUITES: 'short' })]

/** The whole run: every test, and besides real clients, the official judge, other Node lines. */
export const WHOLE_STEPS: readonly Step[] = [
  ...STATIC_STEPS,
  tests(),
  script('conformance', [], 12 * MINUTE_MS),
  script('clients', [], 8 * MINUTE_MS),
  script('smoke-packed', [], 6 * MINUTE_MS),
]
