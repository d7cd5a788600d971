// Servers whose tools are known sleep until somebody needs them: what each command makes of that.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agoText, clockText } from '../src/age.ts'
import { unknownArguments } from '../src/call-arguments.ts'
import { EXIT } from '../src/index.ts'
import { mustWake, type Need, type WakeFacts } from '../src/needs.ts'
import { Home } from './command.ts'
import { type Entry, scripted, startsIn } from './servers.ts'

let home: Home
let serial = 0
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

/** A server that no other test has listed, with its own log. */
function fresh(script: object = {}): { readonly entry: Entry; readonly log: string } {
  serial += 1
  const log = join(home.folder, `${serial}.log`)
  return { entry: scripted({ name: `s${serial}`, log, ...script }), log }
}

interface Answer {
  readonly tools: readonly { readonly name: string; readonly state: string }[]
  readonly servers: readonly {
    readonly name: string
    readonly state: string
    readonly since: string
    readonly catalog?: { readonly from: string; readonly toolCount: number; readonly listedAt?: string }
  }[]
}

const catalogs = (answer: unknown): unknown[] =>
  (answer as Answer).servers.map(({ name, state, catalog }) => [name, state, catalog?.from, catalog?.toolCount])

verifies('command.047', async () => {
  const [one, two] = [fresh({ tools: 1 }), fresh({ tools: 1 })]
  await home.configure({ one: one.entry, two: { ...two.entry, startup: 'eager' } })
  const live = await home.json(['tools'])
  expect(catalogs(live.answer)).toEqual([
    ['one', 'ready', 'live', 1],
    ['two', 'ready', 'live', 1],
  ])
  const known = await home.json(['tools'])
  expect(catalogs(known.answer)).toEqual([
    ['one', 'dormant', 'cached', 1],
    ['two', 'ready', 'live', 1],
  ])
  const [first] = (known.answer as Answer).servers
  expect(Date.parse(first?.catalog?.listedAt ?? '')).toBeLessThanOrEqual(Date.now())
  expect((known.answer as Answer).tools.map(({ name, state }) => [name, state])).toEqual([
    ['one__echo', 'cached'],
    ['two__echo', 'live'],
  ])
  expect([await startsIn(one.log), await startsIn(two.log)]).toEqual([1, 2])
  const text = await home.run(['tools', '--server', 'one'])
  expect(text.stdout).toMatch(/^one · 1 tool · dormant · cached, (just now|\d+ (s|min) ago)\n/)
  expect(await startsIn(one.log)).toBe(1)
  const again = await home.json(['tools', '--server', 'one', '--live', '--strict'])
  expect([again.code, catalogs(again.answer)]).toEqual([EXIT.ok, [['one', 'ready', 'live', 1]]])
  expect([await startsIn(one.log), await startsIn(two.log)]).toEqual([2, 2])
})

verifies('command.048', async () => {
  const { entry, log } = fresh({ tools: 2 })
  await home.configure({ sleeper: entry, dead: { command: 'convoke-no-such-program' } })
  await home.run(['tools'])
  const status = await home.run(['status'])
  expect(status.stdout).toMatch(
    /^sleeper {2}dormant {2}stdio · 2 tools · cached, (just now|\d+ s ago) · since \d\d:\d\d:\d\d$/m,
  )
  expect(status.stdout).toMatch(/^dead {5}failed: .*\(since \d\d:\d\d:\d\d\)$/m)
  expect(catalogs((await home.json(['status'])).answer)).toEqual([
    ['sleeper', 'dormant', 'cached', 2],
    ['dead', 'failed', undefined, undefined],
  ])
  expect(await startsIn(log)).toBe(1)
  expect((await home.run(['status', '--server', 'sleeper', '--live'])).stdout).toMatch(
    /^sleeper {2}ready {2}stdio · 20/,
  )
  expect(await startsIn(log)).toBe(2)
})

verifies('command.049', async () => {
  const [one, two, three] = [fresh(), fresh(), fresh()]
  await home.configure({ one: one.entry, two: two.entry, one__echo: three.entry })
  await home.run(['tools'])
  const starts = (): Promise<number[]> => Promise.all([one, two, three].map(({ log }) => startsIn(log)))
  expect(await starts()).toEqual([1, 1, 1])
  expect((await home.run(['call', 'two/echo', 'text=x'])).stdout).toBe('x\n')
  expect(await starts()).toEqual([1, 2, 1])
  // Any of two servers could be meant by the beginning of this one; what is known decides.
  expect((await home.run(['call', 'one__echo__echo', 'text=y'])).stdout).toBe('y\n')
  expect(await starts()).toEqual([1, 2, 2])
  expect((await home.run(['call', 'one__echo', 'text=z'])).stdout).toBe('z\n')
  expect(await starts()).toEqual([2, 2, 2])
  const unknown = await home.run(['call', 'two/ehco', 'text=x'])
  expect([unknown.code, unknown.stderr]).toEqual([EXIT.usage, expect.stringContaining('Did you mean "two/echo"')])
})

verifies('command.050', async () => {
  const [plain, rich] = [fresh({ tools: 1, capabilities: { tools: {} } }), fresh()]
  await home.configure({ plain: plain.entry, rich: rich.entry })
  await home.run(['tools'])
  const starts = (): Promise<number[]> => Promise.all([plain, rich].map(({ log }) => startsIn(log)))
  expect(await starts()).toEqual([1, 1])
  expect((await home.run(['resources'])).stdout).toContain('scripted://one')
  expect((await home.run(['prompts'])).stdout).toContain('rich/greet(who)')
  expect((await home.run(['read', 'scripted://one'])).code).toBe(EXIT.ok)
  expect((await home.run(['prompt', 'rich/greet', 'who=Ada'])).code).toBe(EXIT.ok)
  expect((await home.run(['prompt', 'rich__greet', 'who=Ada'])).code).toBe(EXIT.ok)
  expect(await starts()).toEqual([1, 6])
  const both = fresh()
  await home.configure({ rich: rich.entry, both: both.entry })
  const nobody = await home.run(['read', 'foo://bar'])
  expect([nobody.code, nobody.stderr]).toEqual([
    EXIT.usage,
    'error: No server lists foo://bar. Name the one to ask with --server: rich, both\n',
  ])
  const several = await home.run(['read', 'scripted://one'])
  expect(several.stderr).toContain('Several servers offer scripted://one. Name one with --server: rich, both')
})

verifies('command.051', async () => {
  await home.configure({ a: fresh().entry })
  const { code, stderr } = await home.run(['call', 'a/seen', '--args', '{"txt":"x"}'])
  expect([code, stderr]).toEqual([EXIT.ok, ''])
  const told = await home.run(['call', 'a/echo', '--args', '{"text":"x","txt":"y"}'])
  expect([told.code, told.stdout]).toEqual([EXIT.ok, 'x\n'])
  expect(told.stderr).toBe('warning: the tool does not declare "txt"; it is sent all the same. Did you mean "text"?\n')
  const schema = { type: 'object', properties: { text: {} } }
  const rows: [object, object, number][] = [
    [{ text: 1 }, schema, 0],
    [{ txt: 1, other: 2 }, schema, 2],
    [{ txt: 1 }, { ...schema, additionalProperties: false }, 1],
    [{ txt: 1 }, { ...schema, additionalProperties: true }, 0],
    [{ txt: 1 }, { ...schema, additionalProperties: { type: 'string' } }, 0],
    [{ txt: 1 }, { ...schema, patternProperties: {} }, 0],
    [{ txt: 1 }, { type: 'object', properties: {} }, 0],
    [{ txt: 1 }, { type: 'object' }, 0],
    [JSON.parse('{"__proto__":1,"toString":2}') as object, schema, 2],
  ]
  for (const [args, inputSchema, count] of rows)
    expect([args, unknownArguments({ ...args }, { ...inputSchema }).length]).toEqual([args, count])
})

verifies('command.052', async () => {
  const { entry, log } = fresh()
  await home.configure({ github: entry, 'my notes': entry })
  const rows: string[][] = [
    ['tools', '--server', 'githup'],
    ['status', '--server', 'githup'],
    ['resources', '--server', 'githup'],
    ['prompts', '--server', 'githup'],
    ['read', 'x://y', '--server', 'githup'],
    ['plan', '--server', 'githup'],
    ['explain', 'echo', '--server', 'githup'],
    ['get', 'githup'],
    ['remove', 'githup'],
    ['call', 'githup/echo'],
    ['prompt', 'githup/greet'],
    ['serve', '--server', 'githup'],
  ]
  for (const words of rows) {
    const { code, answer, stderr } = await home.json(words)
    const { error } = answer as { error: { code: string; message: string } }
    expect([words, code, error.code]).toEqual([words, EXIT.usage, 'SERVER_UNKNOWN'])
    expect([words, stderr]).toEqual([words, expect.stringMatching(/Did you mean "github(\/\w+)?"\?/)])
  }
  expect((await home.run(['remove', 'nope'])).stderr).toContain(
    'There is no server "nope". There are "github", "my notes".',
  )
  expect(await startsIn(log)).toBe(0)
})

verifies('command.053', async () => {
  await home.configure('{\n "mcpServers": {\n  "bad": { "comand": "x" },\n  "good": { "command": "x" } } }')
  const file = join(home.folder, 'more.json')
  await writeFile(file, '{"mcpServers": {"good": {"url": "http://127.0.0.1:9/mcp"}}}')
  const list = await home.run(['list', '--config', file])
  expect(list.stdout.split('\n').map((line) => line.trim())).toEqual([
    'bad   not used  user:3',
    'good  enabled   flag:1  http://127.0.0.1:9/mcp',
    '',
  ])
  expect((await home.run(['status'])).stdout).toMatch(/^bad {3}not used: .*needs "command"/m)
  expect((await home.run(['get', 'bad'])).stdout).toContain('not used: ')
  expect((await home.run(['explain', 'bad'])).stdout).toMatch(/^ {2}state +not used since/m)
  expect((await home.run(['plan'])).stdout).toMatch(/^bad {3}hold +its entry cannot be used$/m)
})

verifies('command.055', async () => {
  await home.configure({
    a: { command: 'x', args: ['$HOME/docs', '%USERPROFILE%\\docs', '-c', 'echo $HOME/x'], cwd: '$HOME/z', timout: 3 },
  })
  const { stderr } = await home.run(['list'])
  const warned = [...stderr.matchAll(/^warning: .*"a": "([\w.]+)" (.*)$/gm)].map(([, field, text]) => [field, text])
  const written = expect.stringMatching(/passed on as it stands\. Variables are written \$\{NAME\}\.$/)
  expect(warned).toEqual([
    ['args.0', written],
    ['args.1', written],
    ['cwd', written],
    ['timout', 'is not a known key and is ignored. Did you mean "timeout"?'],
  ])
})

test('waits for a required server no longer than --wait, and starts it for no call of another one', async () => {
  const [needed, other] = [fresh({ startDelayMs: 20_000 }), fresh({ tools: 1 })]
  await home.configure({ needed: { ...needed.entry, required: true }, other: other.entry })
  expect((await home.run(['call', 'other/echo', 'text=x'])).stdout).toBe('x\n')
  expect(await startsIn(needed.log)).toBe(0)
  const startedAtMs = performance.now()
  const { answer } = await home.json(['tools', '--wait', '700'])
  expect(performance.now() - startedAtMs).toBeLessThan(10_000)
  expect(catalogs(answer)).toEqual([
    ['needed', 'starting', undefined, undefined],
    ['other', 'dormant', 'cached', 1],
  ])
  expect(await startsIn(needed.log)).toBe(1)
})

test('starts what is needed and nothing else', () => {
  const facts = (isEager: boolean, hasKnownTools: boolean, capabilities?: object): WakeFacts => ({
    ...{ isEager, hasKnownTools },
    capabilities: capabilities === undefined ? undefined : { ...capabilities },
  })
  const rows: [Need, WakeFacts, boolean][] = [
    ['tools', facts(false, true), false],
    ['tools', facts(false, false), true],
    ['tools', facts(true, true), true],
    ['unknown', facts(true, true), false],
    ['unknown', facts(false, false), true],
    ['live', facts(false, true), true],
    ['resources', facts(true, true, {}), false],
    ['resources', facts(false, true, { resources: {} }), true],
    ['resources', facts(false, true, { prompts: {} }), false],
    ['resources', facts(false, true), true],
    ['prompts', facts(false, true, { prompts: {} }), true],
    ['prompts', facts(false, true, { resources: {} }), false],
  ]
  for (const [need, known, wakes] of rows) expect([need, known, mustWake(need, known)]).toEqual([need, known, wakes])
})

test('says how long ago something was', () => {
  const rows: [number, string][] = [
    [-5_000, 'just now'],
    [999, 'just now'],
    [1_000, '1 s ago'],
    [59_999, '59 s ago'],
    [60_000, '1 min ago'],
    [7_200_000, '2 h ago'],
    [86_399_999, '23 h ago'],
    [172_800_000, '2 d ago'],
  ]
  for (const [ageMs, text] of rows) expect([ageMs, agoText(1_000_000, 1_000_000 + ageMs)]).toEqual([ageMs, text])
  const at = new Date(2026, 2, 4, 5, 6, 7).getTime()
  expect(clockText(at, at + 60_000)).toBe('05:06:07')
  expect(clockText(at, at + 86_400_000)).toBe('2026-03-04 05:06:07')
})

test('shows a catalog as stale after a day, and why', async () => {
  const { entry } = fresh({ tools: 1 })
  await home.configure({ old: entry })
  await home.run(['tools'])
  const later = join(home.folder, 'later.cjs')
  await writeFile(later, 'const now = Date.now; Date.now = () => now() + 30 * 3600_000')
  const env = { NODE_OPTIONS: `--require=${later}` }
  const { stdout } = await home.run(['tools'], { env })
  expect(stdout).toMatch(
    /^old · 1 tool · dormant · cached, 1 d ago, may be stale: it was listed more than 24 hours ago\n/,
  )
  const { answer } = await home.json(['status'], { env })
  expect((answer as Answer).servers[0]?.catalog).toMatchObject({ staleBecause: expect.stringContaining('24 hours') })
})

test('does not ask a server over HTTP whose tools are known', async () => {
  await using remote = await startScriptedHttp({ tools: 2 })
  await home.configure({ web: { url: remote.url } })
  await home.run(['tools'])
  const asked = remote.requests.length
  for (const name of ['tools', 'status', 'plan', 'list']) await home.run([name])
  expect(remote.requests.length).toBe(asked)
  expect(await readFile(home.configFile, 'utf8')).toContain(remote.url)
})
