// `npm run soak`: the same tests with the full counts. Takes as long as it takes; not part of CI.
import './assert-node.ts'
import { runSteps } from './steps.ts'

const HOUR_MS = 3_600_000

const { passed, failed } = await runSteps([
  {
    name: 'fuzz',
    command: [
      'vitest',
      'run',
      '--testTimeout=3600000',
      '--reporter=default',
      '--reporter=scripts/vitest-counts.ts',
      'fuzz',
    ],
    timeoutMs: 3 * HOUR_MS,
    env: { CONVOKE_FUZZ_RUNS: '1000000' },
  },
])
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1
