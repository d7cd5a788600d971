// The races of the connection layer in a simulated world, as `races-child.ts` runs them; those over real servers are in `races-real.test.ts`.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import type { RaceReport } from './races-child.ts'

/** Seeds of each race: 10 in the gate, 200 in soak. */
const RUNS = process.env['CONVOKE_RACE_RUNS'] ?? '10'
const TIMEOUT_MS = 60_000 + Number(RUNS) * 1_000
/** Output of a run whose every race is lost. */
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024

let reported: Promise<Readonly<Record<string, RaceReport>>> | undefined
/** All tests read one report. */
function report(): Promise<Readonly<Record<string, RaceReport>>> {
  reported ??= run()
  return reported
}
async function run(): Promise<Readonly<Record<string, RaceReport>>> {
  const args = ['--conditions=@convoke/source', join(import.meta.dirname, 'races-child.ts'), RUNS]
  const options = { timeout: TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX }
  const { stdout } = await promisify(execFile)(process.execPath, args, options)
  return JSON.parse(stdout) as Record<string, RaceReport>
}

async function isWon(race: string): Promise<void> {
  expect((await report())[race]).toEqual({ runs: Number(RUNS) })
}

verifies('race.001', () => isWon('race.001'), TIMEOUT_MS)
verifies('race.002', () => isWon('race.002'), TIMEOUT_MS)
verifies('race.003', () => isWon('race.003'), TIMEOUT_MS)
verifies('race.004', () => isWon('race.004'), TIMEOUT_MS)
verifies('race.005', () => isWon('race.005'), TIMEOUT_MS)
verifies('race.006', () => isWon('race.006'), TIMEOUT_MS)
verifies('race.007', () => isWon('race.007'), TIMEOUT_MS)
verifies('race.008', () => isWon('race.008'), TIMEOUT_MS)
verifies('race.009', () => isWon('race.009'), TIMEOUT_MS)
verifies('race.010', () => isWon('race.010'), TIMEOUT_MS)
verifies('race.011', () => isWon('race.011'), TIMEOUT_MS)
verifies('race.012', () => isWon('race.012'), TIMEOUT_MS)
verifies('race.013', () => isWon('race.013'), TIMEOUT_MS)
verifies('race.014', () => isWon('race.014'), TIMEOUT_MS)
verifies('race.015', () => isWon('race.015'), TIMEOUT_MS)
verifies('race.016', () => isWon('race.016'), TIMEOUT_MS)
verifies('race.017', () => isWon('race.017'), TIMEOUT_MS)
verifies('race.018', () => isWon('race.018'), TIMEOUT_MS)
verifies('race.019', () => isWon('race.019'), TIMEOUT_MS)
verifies('race.021', () => isWon('race.021'), TIMEOUT_MS)
verifies('race.022', () => isWon('race.022'), TIMEOUT_MS)
verifies('race.023', () => isWon('race.023'), TIMEOUT_MS)
verifies('race.024', () => isWon('race.024'), TIMEOUT_MS)
