// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are what is tested here
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT } from '../src/index.ts'
import { planReason } from '../src/plan-text.ts'
import { Home } from './command.ts'
import { scripted, startsIn } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

interface Plan {
  readonly version: number
  readonly change: boolean
  readonly servers: readonly {
    readonly name: string
    readonly action: string
    readonly because: string
    readonly changed: readonly string[]
    readonly problem?: { readonly code: string; readonly message: string }
  }[]
  readonly problems: readonly { readonly line: number; readonly column: number; readonly message: string }[]
}

const rowsOf = ({ servers }: Plan): unknown[] =>
  servers.map(({ name, action, because, changed }) => [name, action, because, changed])

verifies('command.040', async () => {
  await using remote = await startScriptedHttp()
  const log = join(home.folder, 'plan.log')
  await home.configure({
    known: scripted({ tools: 2, log }),
    eager: { ...scripted({ tools: 2, log }), startup: 'eager' },
    needed: { ...scripted({ tools: 2, log }), required: true },
    fresh: scripted({ log }),
    web: { url: remote.url },
    off: { ...scripted({ log }), enabled: false },
    wrong: { comand: 'x' },
  })
  const before = await home.json(['plan'])
  expect(before.code).toBe(EXIT.ok)
  const first = before.answer as Plan
  expect([first.version, first.change]).toEqual([1, false])
  expect(rowsOf(first)).toEqual([
    ['known', 'start', 'no-previous', []],
    ['eager', 'start', 'no-previous', []],
    ['needed', 'start', 'no-previous', []],
    ['fresh', 'start', 'no-previous', []],
    ['web', 'start', 'no-previous', []],
    ['off', 'hold', 'disabled', []],
    ['wrong', 'hold', 'config-problem', []],
  ])
  expect(await startsIn(log)).toBe(0)

  for (const name of ['known', 'eager', 'needed']) await home.run(['tools', '--server', name])
  const started = await startsIn(log)
  const { code, stdout, stderr } = await home.run(['plan'])
  expect(code).toBe(EXIT.ok)
  expect(stdout.split('\n')).toEqual([
    'known   defer  its tools are known; it starts when it is needed',
    'eager   start  "startup" is "eager"',
    'needed  start  it is required',
    'fresh   start  its tools are not known yet',
    'web     start  its tools are not known yet',
    'off     hold   its entry has "enabled": false',
    'wrong   hold   its entry cannot be used',
    '',
  ])
  expect(stderr).toMatch(/^error: .*convoke\.json:\d+:\d+: server "wrong": needs "command"/m)
  expect(await startsIn(log)).toBe(started)
  expect(remote.requests).toEqual([])
  const one = await home.json(['plan', '--server', 'web'])
  expect(rowsOf(one.answer as Plan)).toEqual([['web', 'start', 'no-previous', []]])
  expect(one.stderr).toBe('')
})

verifies('command.041', async () => {
  const log = join(home.folder, 'change.log')
  await home.configure({
    same: scripted({ log }),
    moved: { url: 'http://127.0.0.1:9/mcp', headers: { 'X-Key': 'canary-old' } },
    'other kind': { url: 'http://127.0.0.1:9/mcp' },
    filtered: scripted({ tools: 2, log }),
    gone: scripted({ log }),
    off: scripted({ log }),
  })
  const next = join(home.folder, 'next.json')
  await writeFile(
    next,
    JSON.stringify({
      mcpServers: {
        same: scripted({ log }),
        moved: { url: 'http://127.0.0.1:9/mcp', headers: { 'X-Key': 'canary-new' } },
        'other kind': scripted({ log }),
        filtered: { ...scripted({ tools: 2, log }), tools: { deny: ['tool_1'] }, approvalMode: 'prompt' },
        off: { ...scripted({ log }), enabled: false },
        new: scripted({ log }),
      },
    }),
  )
  const { code, answer } = await home.json(['plan', '--config', next])
  expect([code, (answer as Plan).change]).toEqual([EXIT.ok, true])
  expect(rowsOf(answer as Plan)).toEqual([
    ['same', 'reuse', 'unchanged', []],
    ['moved', 'start', 'config-changed', ['headers']],
    ['other kind', 'start', 'config-changed', ['args', 'auth', 'command', 'url']],
    ['filtered', 'reuse', 'unchanged', ['approvalMode', 'tools']],
    ['off', 'hold', 'disabled', ['enabled']],
    ['new', 'start', 'no-previous', []],
    ['gone', 'retire', 'removed', []],
  ])
  const { stdout, stderr } = await home.run(['plan', '--config', next])
  expect(stdout).toContain('filtered    reuse   stays connected; changed without a new start: approvalMode, tools\n')
  expect(stdout).toContain('moved       start   its connection is made of other settings; changed: headers\n')
  expect(stdout).toContain('gone        retire  it is not in the new configuration\n')
  expect(stdout + stderr + JSON.stringify(answer)).not.toContain('canary')
  expect(await startsIn(log)).toBe(0)
  expect((await home.run(['plan', '--help'])).stdout).toContain('as if every server of yours were\nconnected now')
})

verifies('command.042', async () => {
  await home.configure({ good: scripted() })
  const next = join(home.folder, 'bad.json')
  await writeFile(next, '{"mcpServers": {\n "one": { "command": "x", "args": "y" },\n "two": { "comand": "x" } }}')
  const { code, answer, stderr } = await home.json(['plan', '--config', next])
  const { problems } = answer as Plan
  expect(code).toBe(EXIT.configuration)
  expect(rowsOf(answer as Plan)).toEqual([
    ['one', 'hold', 'config-problem', []],
    ['two', 'hold', 'config-problem', []],
    ['good', 'retire', 'removed', []],
  ])
  expect(problems.map(({ line }) => line)).toEqual([2, 3, 3])
  expect(stderr).toContain(`${next}:2:`)
  const absent = await home.json(['plan', '--config', '/absent.json'])
  expect([absent.code, absent.answer]).toEqual([
    EXIT.configuration,
    { version: 1, error: { code: 'CONFIG_FILE_NOT_FOUND', message: expect.stringContaining('/absent.json') } },
  ])
  const folder = await home.json(['plan', '--config', home.folder])
  expect([folder.code, folder.answer]).toEqual([
    EXIT.configuration,
    { version: 1, error: { code: 'CONFIG_FILE_NOT_REGULAR', message: expect.any(String) } },
  ])
})

test('leaves no trace: a plan writes neither state nor configuration', async () => {
  await using other = await Home.make()
  await other.configure({ one: scripted() })
  await other.run(['plan'])
  expect(await readdir(other.folder)).not.toContain('state')
  expect(await readdir(join(other.folder, 'config/convoke'))).toEqual(['convoke.json'])
})

test('has words for every reason, and names changed fields', () => {
  const row = { server: 'a', action: 'start', because: 'no-previous', changed: [] } as const
  const definition = (required: boolean, startup: 'eager' | 'lazy-when-cached'): Parameters<typeof planReason>[1] =>
    ({ required, startup }) as Parameters<typeof planReason>[1]
  expect(planReason(row, undefined)).toBe('its tools are not known yet')
  expect(planReason(row, definition(true, 'eager'))).toBe('it is required')
  expect(planReason(row, definition(false, 'eager'))).toBe('"startup" is "eager"')
  expect(planReason(row, definition(false, 'lazy-when-cached'))).toBe('its tools are not known yet')
  expect(planReason({ ...row, because: 'wanted-now', changed: ['startup'] }, undefined)).toBe(
    'it may not sleep any longer; changed: startup',
  )
  expect(planReason({ ...row, action: 'reuse', because: 'unchanged', changed: ['a', 'b'] }, undefined)).toBe(
    'stays connected; changed without a new start: a, b',
  )
})
