import { type Step, script } from './steps.ts'

const MINUTE_MS = 60_000

/** In the order of their price. */
export const GATE_STEPS: readonly Step[] = [
  { name: 'types', command: ['tsc', '-b'], timeoutMs: 3 * MINUTE_MS },
  { name: 'types-of-tests', command: ['tsc', '-p', 'tsconfig.check.json'], timeoutMs: 3 * MINUTE_MS },
  { name: 'lint', command: ['biome', 'check', '--error-on-warnings'], timeoutMs: MINUTE_MS },
  script('build'),
  script('walls'),
  script('requirements'),
  { name: 'dead-code', command: ['knip', '--treat-config-hints-as-errors'], timeoutMs: MINUTE_MS },
  script('packages'),
  {
    name: 'tests',
    command: ['vitest', 'run', '--reporter=default', '--reporter=scripts/vitest-counts.ts'],
    timeoutMs: 18 * MINUTE_MS,
    env: { CONVOKE_FUZZ_RUNS: '10000' },
  },
]

/** What only the whole run does: real clients, the official judge, other Node lines. */
export const WHOLE_STEPS: readonly Step[] = [
  ...GATE_STEPS,
  script('conformance', [], 12 * MINUTE_MS),
  script('clients', [], 8 * MINUTE_MS),
  script('smoke-packed', [], 6 * MINUTE_MS),
]
