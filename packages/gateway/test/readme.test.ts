// What the README says is so: its limits are the defaults, and its program runs.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { DEFAULT_LIMITS } from '@convoke/wire/server'
import { expect, test } from 'vitest'

const file = new URL('../README.md', import.meta.url)
const readme = readFileSync(file, 'utf8')
const UNITS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 * 1024 }

test('the table of limits has every limit with its default', () => {
  const rows = readme.matchAll(/^\| `(\w+)` \| ([\d,]+)(?: (KiB|MiB))? \|/gm)
  const told = Object.fromEntries(
    [...rows].map(([, name, number, unit]) => [name, Number(number?.replaceAll(',', '')) * (UNITS[unit ?? ''] ?? 1)]),
  )
  expect(told).toEqual({ ...DEFAULT_LIMITS, listWaitMs: 5_000, callWaitMs: 30_000 })
})

test('the program at the top runs and ends', async () => {
  const [, program = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? []
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=@convoke/source', '--input-type=module-typescript', '--eval', program],
    { cwd: fileURLToPath(new URL('.', file)), timeout: 60_000 },
  )
  expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp\n$/)
})
