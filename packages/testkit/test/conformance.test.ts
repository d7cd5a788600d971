import { expect, test } from 'vitest'
import { EXTENSION_RUNS } from '../conformance/extensions.ts'
import { score } from '../conformance/scores.ts'
import { clientScenarios, REVISIONS, requiredScenarios } from '../conformance/suite.ts'
import { freePort, startSdk2Http, verifies } from '../src/index.ts'

const SCENARIO = /^(tools-call-simple-text|input-required-result-request-state)$/

test('the frozen lists hold what the suite demands', () => {
  const sizes = REVISIONS.map((revision) => [
    revision,
    requiredScenarios(revision, 'client').length,
    requiredScenarios(revision, 'server').length,
  ])
  expect(sizes).toEqual([
    ['2025-11-25', 18, 30],
    ['2026-07-28', 32, 37],
  ])
})

test('every sign-in that the suite knows is in a frozen list or among the extensions', async () => {
  const required = REVISIONS.flatMap((revision) => requiredScenarios(revision, 'client'))
  const others = (await clientScenarios()).filter((name) => name.startsWith('auth/') && !required.includes(name))
  expect(others).not.toEqual([])
  expect(new Set(EXTENSION_RUNS.map(({ scenario }) => scenario))).toEqual(new Set(others))
}, 60_000)

verifies(
  'house.004',
  async () => {
    await using fixture = await startSdk2Http()
    expect(await score('server', '2026-07-28', { url: fixture.url }, { only: SCENARIO })).toMatchObject({
      passed: 2,
      run: 2,
      target: 37,
      failed: [],
    })
    const nobody = { url: `http://127.0.0.1:${await freePort()}/mcp` }
    expect(await score('server', '2025-11-25', nobody, { only: SCENARIO })).toMatchObject({ passed: 0, run: 1 })
    const idle = { command: `${process.execPath} -e 0` }
    const outcomes: string[] = []
    const idleScore = await score('client', '2025-11-25', idle, {
      only: /^initialize$/,
      onOutcome: ({ scenario, passed }) => outcomes.push(`${scenario} ${passed}`),
    })
    expect([idleScore.passed, outcomes]).toEqual([0, ['initialize false']])
  },
  60_000,
)
