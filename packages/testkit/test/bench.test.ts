import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import type { Sample } from '../../../bench/execute.ts'
import type { Workload } from '../../../bench/plan.ts'
import { median, meets, summarize, toMarkdown } from '../../../bench/summary.ts'
import { verifies } from '../src/index.ts'

const root = resolve(import.meta.dirname, '../../..')

const workload: Workload = {
  name: 'W',
  kind: 'library',
  work: 'latency',
  config: {},
  peers: ['raw', 'ours'],
  metrics: [
    { key: 'cpuUs', unit: 'us', target: { at: 1.3, of: 'ratio' } },
    { key: 'perSecond', unit: '1/s', target: { at: 1.5, of: 'ratio' }, better: 'higher' },
    { key: 'launches', unit: '', target: { at: 10, of: 'absolute' } },
  ],
}

const sample = (peer: string, round: number, cpuUs: number): Sample => ({
  peer,
  round,
  figures: { cpuUs, perSecond: 1_000 / cpuUs, launches: 10 },
})

test('the median of an even number of values is the middle of two', () => {
  expect([median([]), median([3]), median([4, 1]), median([9, 1, 2])]).toEqual([undefined, 3, 2.5, 2])
})

test('ratios compare figures of the same round, and failed rounds count as none', () => {
  const samples = [
    sample('raw', 0, 10),
    sample('ours', 0, 20),
    sample('raw', 1, 100),
    sample('ours', 1, 110),
    { peer: 'ours', round: 2, figures: {}, error: 'broken\npipe' },
  ]
  const table = summarize(workload, samples)
  const [, ours] = table.rows
  expect(ours).toMatchObject({ peer: 'ours', rounds: 2, errors: ['broken\npipe'] })
  expect(ours?.cells[0]).toEqual({ key: 'cpuUs', median: 65, ratio: (2 + 1.1) / 2 })
  const [cpu, rate, launches] = workload.metrics
  if (cpu === undefined || rate === undefined || launches === undefined) throw new Error('Three figures')
  expect(meets(cpu, { key: 'cpuUs', median: 5, ratio: 1.3 })).toBe(true)
  expect(meets(rate, { key: 'perSecond', median: 5, ratio: 1.4 })).toBe(false)
  expect(meets(launches, { key: 'launches', median: 10, ratio: 1 })).toBe(true)
  expect(toMarkdown([table])).toContain(
    '| ours | **1.55× (65.0)** | **0.70× (29.5)** | 10.0 (1.00×) | 2 1 failed: broken pipe |',
  )
})

verifies('house.003', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'))
  try {
    const args = [
      '--no-build',
      '--rounds',
      '2',
      '--peers',
      'raw',
      '--only',
      '^W2 stdio, cold',
      '--json',
      '--out',
      folder,
    ]
    const child = spawn(process.execPath, [resolve(root, 'scripts/bench.ts'), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    child.stdout.on('data', (part: Buffer) => {
      stdout += part.toString()
    })
    child.stderr.resume()
    const code = await new Promise((settle) => child.once('close', settle))
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      rounds: 2,
      tables: [{ workload: expect.stringContaining('W2 stdio, cold'), rows: [{ peer: 'raw', rounds: 2, errors: [] }] }],
    })
    expect(await readdir(folder)).toHaveLength(1)
  } finally {
    await rm(folder, { recursive: true })
  }
})
