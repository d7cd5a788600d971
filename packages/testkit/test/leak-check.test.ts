// Runs Vitest on planted leaks: every kind must go red and be named; the clean file must stay green.
import { spawn } from 'node:child_process'
import { basename, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { verifies } from '../src/index.ts'

interface FileReport {
  readonly name: string
  readonly status: string
  readonly message: string
}

const fixtures = resolve(import.meta.dirname, '../fixtures/leaks')
const vitest = resolve(import.meta.dirname, '../../../node_modules/vitest/vitest.mjs')

async function runPlanted(): Promise<Map<string, FileReport>> {
  const child = spawn(
    process.execPath,
    [vitest, 'run', '--config', resolve(fixtures, 'vitest.config.ts'), '--reporter=json'],
    {
      cwd: fixtures,
      env: {
        ...process.env,
        CONVOKE_LEAK_GRACE_MS: '400',
        VITEST: undefined,
        VITEST_WORKER_ID: undefined,
        VITEST_POOL_ID: undefined,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const parts: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => parts.push(part))
  child.stderr.resume()
  await new Promise((settle) => child.once('close', settle))
  const text = Buffer.concat(parts).toString()
  const report = JSON.parse(text.slice(text.indexOf('{"numTotal'))) as { testResults: readonly FileReport[] }
  return new Map(report.testResults.map((file) => [basename(file.name, '.leaks.ts'), file]))
}

const expected: Readonly<Record<string, RegExp>> = {
  child: /process \d+: .*planted-child/,
  orphan: /process \d+: .*planted-orphan/,
  server: /listening server 127\.0\.0\.1:\d+, opened .*server\.leaks\.ts:\d+/,
  socket: /socket 127\.0\.0\.1:\d+ to 127\.0\.0\.1:\d+.*socket\.leaks\.ts:\d+/,
  timer: /timer \(after 61234 ms\), opened .*timer\.leaks\.ts:\d+/,
  interval: /timer \(every 45678 ms\), opened .*interval\.leaks\.ts:\d+/,
  watcher: /file watcher, opened .*watcher\.leaks\.ts:\d+/,
  temp: /temporary entry .*planted-/,
}

verifies(
  'house.001',
  async () => {
    const files = await runPlanted()
    expect([...files.keys()].sort()).toEqual(['clean', ...Object.keys(expected)].sort())
    expect(files.get('clean')).toMatchObject({ status: 'passed', message: '' })
    for (const [name, message] of Object.entries(expected)) {
      expect(files.get(name), name).toMatchObject({ status: 'failed', message: expect.stringMatching(message) })
    }
  },
  60_000,
)

test('the marked search path reaches children and changes nothing else', () => {
  expect(process.env['PATH']).toMatch(/:\/nonexistent\/convoke-test-\d+-[0-9a-f]{12}$/)
})
