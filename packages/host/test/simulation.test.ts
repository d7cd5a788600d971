// The whole host in a simulated world, as `simulation-child.ts` reports it: the walks break nothing, and each sabotage goes red.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { INVARIANTS } from '../../testkit/src/simulation/invariants.ts'
import type { SimulationReport } from './simulation-child.ts'

const TIMEOUT_MS = 120_000

let reported: Promise<SimulationReport> | undefined
/** All tests read one report. */
function report(): Promise<SimulationReport> {
  reported ??= run()
  return reported
}
async function run(): Promise<SimulationReport> {
  const args = ['--conditions=@convoke/source', join(import.meta.dirname, 'simulation-child.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: TIMEOUT_MS })
  return JSON.parse(stdout) as SimulationReport
}

/** Every walk keeps them, and each goes red when it is broken. */
async function keeps(requirement: keyof typeof INVARIANTS): Promise<void> {
  const { walks, broken } = await report()
  expect(walks.map(({ violation }) => violation)).toEqual(walks.map(() => undefined))
  for (const invariant of INVARIANTS[requirement])
    expect([invariant, broken[invariant]]).toEqual([invariant, expect.arrayContaining([invariant])])
}

test(
  'Ten thousand steps of five seeds call, bind, restart and heal',
  async () => {
    const { walks: all } = await report()
    const sum = (name: string): number => all.reduce((total, { figures }) => total + (figures[name] ?? 0), 0)
    expect(all.reduce((total, { steps }) => total + steps, 0)).toBe(10_000)
    for (const name of ['calls', 'bindings', 'processes', 'requests'])
      expect([name, sum(name) > 200]).toEqual([name, true])
    for (const name of ['restarts', 'heals']) expect([name, sum(name) > 10]).toEqual([name, true])
  },
  TIMEOUT_MS,
)

verifies('simulation.001', () => keeps('simulation.001'), TIMEOUT_MS)
verifies('simulation.002', () => keeps('simulation.002'), TIMEOUT_MS)
verifies('simulation.003', () => keeps('simulation.003'), TIMEOUT_MS)
verifies('simulation.004', () => keeps('simulation.004'), TIMEOUT_MS)
verifies('simulation.005', () => keeps('simulation.005'), TIMEOUT_MS)
verifies('simulation.006', () => keeps('simulation.006'), TIMEOUT_MS)
verifies('simulation.007', () => keeps('simulation.007'), TIMEOUT_MS)
verifies('simulation.008', () => keeps('simulation.008'), TIMEOUT_MS)
verifies('simulation.009', () => keeps('simulation.009'), TIMEOUT_MS)
verifies('simulation.011', () => keeps('simulation.011'), TIMEOUT_MS)
verifies('simulation.012', () => keeps('simulation.012'), TIMEOUT_MS)

verifies(
  'simulation.010',
  async () => {
    await keeps('simulation.010')
    const [one, same, other] = (await report()).again
    expect(one.violation).toBeUndefined()
    expect(same).toEqual(one)
    expect(other.digest).not.toBe(one.digest)
  },
  TIMEOUT_MS,
)
