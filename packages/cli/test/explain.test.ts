import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nextStep, placeText, serverLines, toolLines, wrapText } from '../src/explanation.ts'
import { EXIT } from '../src/index.ts'
import { Home } from './command.ts'
import { scripted, startsIn } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

const tool = (name: string, more: object = {}): { name: string; inputSchema: object } => ({
  ...{ name, inputSchema: { type: 'object' } },
  ...more,
})

verifies('command.043', async () => {
  await home.configure({
    shop: {
      ...scripted({ name: 'shop-43', tools: [tool('buy'), tool('sell'), tool('sell')] }),
      tools: { deny: ['buy'] },
    },
    dead: scripted({ name: 'dead-43', exitAtStart: { code: 3 }, stderr: ['no licence found'] }),
    off: { ...scripted(), enabled: false },
  })
  const file = join(home.folder, 'flag.json')
  await writeFile(file, JSON.stringify({ mcpServers: { dead: { command: 'convoke-no-such-program' } } }))
  const live = await home.json(['explain', 'shop'])
  expect([live.code, live.stderr]).toEqual([EXIT.ok, ''])
  expect(live.answer).toMatchObject({
    version: 1,
    name: 'shop',
    server: {
      name: 'shop',
      state: 'ready',
      declaredBy: { source: { layer: 'user', file: home.configFile, line: 3, column: 5 } },
      environment: 'local',
      plan: { action: 'start', because: 'no-previous', reason: 'its tools are not known yet' },
      tools: { from: 'live', shown: 1, hidden: 0, filtered: 1 },
      cache: { kind: 'kept' },
      shadowed: [],
      notes: expect.arrayContaining([expect.objectContaining({ item: 'buy', kind: 'filtered' })]),
    },
    tools: [],
  })
  const asleep = await home.run(['explain', 'shop'])
  const lines = asleep.stdout.split('\n')
  expect(lines[0]).toBe('shop · a server')
  expect(asleep.stdout).toMatch(/^ {2}state +dormant since \d\d:\d\d:\d\d \(stdio\)$/m)
  expect(asleep.stdout).toMatch(/^ {2}declared +.*convoke\.json:3:5$|^ +.*convoke\.json:3:5 \(user\)$/m)
  expect(asleep.stdout).toMatch(/^ {2}plan +defer: its tools are known; it starts when it is needed$/m)
  expect(asleep.stdout).toMatch(/^ {2}tools +1, from an earlier run; 1 left out by its filter$/m)
  expect(asleep.stdout).toMatch(/^ {2}catalog +kept, as listed (just now|\d+ s ago)$/m)
  expect(asleep.stdout).toMatch(/^ {2}to do +nothing: it starts when it is needed/m)
  const long = lines.filter((line) => line.length > 80 && line.trim().split(/ {2,}/).at(-1)?.includes(' ') === true)
  expect(long.filter((line) => !line.includes('convoke.json'))).toEqual([])

  const dead = await home.json(['explain', 'dead'])
  expect(dead.answer).toMatchObject({
    server: {
      state: 'failed',
      reason: { code: 'SERVER_EXITED' },
      nextRetryAt: expect.any(String),
      nextStep: expect.stringContaining('convoke status --server dead'),
      lastFailure: { code: 'SERVER_EXITED', message: expect.stringContaining('no licence found') },
    },
  })
  const shadowing = await home.run(['explain', 'dead', '--config', file])
  expect(shadowing.stdout).toMatch(/flag\.json:1:\d+ \(flag\)/)
  expect(shadowing.stdout.replace(/\s+/g, ' ')).toContain(`in place of ${home.configFile}:`)
  const off = await home.run(['explain', 'off'])
  expect(off.stdout).toMatch(/^ {2}plan +hold: its entry has "enabled": false$/m)
})

verifies('command.044', async () => {
  const renamed = 'a tool with spaces'
  await home.configure({
    one: {
      ...scripted({ name: 'one-44', tools: [tool('save'), tool(renamed), tool('drop')] }),
      tools: { deny: ['drop'] },
      omitToolsFrom: ['gateway'],
    },
    save: scripted({ name: 'save-44', tools: [tool('save')] }),
  })
  await home.run(['tools'])
  type Answer = { server?: { name: string }; tools: { server: string; rawName: string; shownAs?: { flat: string } }[] }
  const meanings = async (name: string): Promise<unknown[]> => {
    const { server, tools } = (await home.json(['explain', name])).answer as Answer
    return [server?.name, ...tools.map((one) => `${one.server}/${one.rawName}`)]
  }
  expect(await meanings('save')).toEqual(['save', 'one/save', 'save/save'])
  expect(await meanings('one/save')).toEqual([undefined, 'one/save'])
  expect(await meanings('one__save')).toEqual([undefined, 'one/save'])
  expect(await meanings(renamed)).toEqual([undefined, `one/${renamed}`])
  const text = await home.run(['explain', 'save'])
  expect(text.stdout).toMatch(/^save · a server$/m)
  expect(text.stdout).toMatch(/^one\/save · a tool$/m)
  expect(text.stdout).toMatch(/^ {2}shown as +one__save$/m)
  expect(text.stdout).toMatch(/^ {2}to models +mcp__one save$/m)
  expect(text.stdout).toMatch(/^ {2}filter +allowed: tools\.deny does not name it$/m)
  expect(text.stdout).toMatch(/^ {2}not in +gateway \(omitToolsFrom\)$/m)
  expect(text.stdout).toMatch(/^ {2}listed +cached, (just now|\d+ s ago)$/m)
  const spaced = await home.json(['explain', `one/${renamed}`])
  expect(spaced.answer).toMatchObject({
    tools: [{ renamedBecause: expect.any(String), shownAs: { flat: 'one__a_tool_with_spaces' }, from: 'cached' }],
  })
  const denied = await home.run(['explain', 'one/drop'])
  expect(denied.code).toBe(EXIT.ok)
  expect(denied.stdout).toMatch(/^ {2}filter +denied: tools\.deny names it$/m)
  expect(denied.stdout).toMatch(/^ {2}not shown +/m)
  expect(denied.stdout).not.toContain('shown as')
})

verifies('command.045', async () => {
  const [one, two] = [join(home.folder, 'one.log'), join(home.folder, 'two.log')]
  await home.configure({ one: scripted({ name: 'one-45', log: one }), two: scripted({ name: 'two-45', log: two }) })
  const starts = (): Promise<number[]> => Promise.all([startsIn(one), startsIn(two)])
  for (const name of ['one', 'one/echo', 'one__echo'])
    expect((await home.run(['explain', name, '--no-start'])).code).toBe(name === 'one__echo' ? EXIT.usage : EXIT.ok)
  const unheard = await home.run(['explain', 'one__echo', '--no-start'])
  expect(unheard.stderr).toContain('The tools of "one" are not known.')
  expect(await starts()).toEqual([0, 0])
  expect((await home.run(['explain', 'one/echo'])).stdout).toMatch(/^ {2}listed +live, /m)
  expect(await starts()).toEqual([1, 0])
  await home.run(['explain', 'one__echo'])
  await home.run(['explain', 'one'])
  expect(await starts()).toEqual([1, 0])
  expect((await home.run(['explain', 'echo'])).stdout).toMatch(/^two\/echo · a tool$/m)
  expect(await starts()).toEqual([1, 1])
})

verifies('command.046', async () => {
  await home.configure({ shop: scripted({ name: 'shop-46', tools: [tool('buy_milk'), tool('buy_bread')] }) })
  const rows: [string, string, RegExp][] = [
    ['shpo', 'TOOL_UNKNOWN', /Did you mean "shop"/],
    ['buy_mlik', 'TOOL_UNKNOWN', /Did you mean "buy_milk"/],
    ['shop/buy_mlik', 'TOOL_UNKNOWN', /Did you mean "shop\/buy_milk"/],
    ['shpo/buy_milk', 'SERVER_UNKNOWN', /Did you mean "shop\/buy_milk"/],
    ['zzzzzzzz', 'TOOL_UNKNOWN', /convoke list and convoke tools show/],
  ]
  for (const [name, code, hint] of rows) {
    const { code: exit, answer, stderr } = await home.json(['explain', name])
    expect([name, exit, (answer as { error: { code: string } }).error.code]).toEqual([name, EXIT.usage, code])
    expect([name, stderr]).toEqual([name, expect.stringMatching(hint)])
  }
})

test('tells in words what can be done, and breaks lines between words', () => {
  const status = { name: 'my shop', sinceAtMs: 0, transport: 'stdio' } as const
  const problem = { code: 'CONFIG_PROBLEM', message: '' } as const
  expect(nextStep({ ...status, state: 'ready' })).toBeUndefined()
  expect(nextStep({ ...status, state: 'dormant' })).toContain("--server 'my shop' starts it now")
  expect(nextStep({ ...status, state: 'failed' })).toContain("--server 'my shop' tries it again")
  expect(nextStep({ ...status, state: 'starting' })).toContain('--wait')
  expect(nextStep({ ...status, state: 'disabled', reason: problem })).toBe('mend its entry')
  expect(nextStep({ ...status, state: 'disabled' })).toBeUndefined()
  expect(wrapText('one two three', 7)).toEqual(['one two', 'three'])
  expect(wrapText('one two three', 6)).toEqual(['one', 'two', 'three'])
  expect(wrapText('toolongaword x', 5)).toEqual(['toolongaword', 'x'])
  expect(wrapText('', 5)).toEqual([''])
  expect(placeText({ file: '/a' })).toBe('/a')
  expect(placeText({ file: '/a', line: 3, column: 4 })).toBe('/a:3:4')
})

type Server = Parameters<typeof serverLines>[0]
type Tool = Parameters<typeof toolLines>[0]

const nowMs = new Date(2026, 2, 4, 12, 0, 0).getTime()
const source = { layer: 'user', file: '/c.json', line: 2, column: 3 } as const
const server: Server['life'] = {
  status: { name: 's', state: 'ready', sinceAtMs: nowMs, transport: 'http', protocolVersion: '2025-11-25' },
  declaredBy: { source },
  environment: 'local',
  plan: { action: 'start', because: 'no-previous' },
  generation: 1,
  cache: { kind: 'empty' },
  tools: { from: 'live', shown: 3, hidden: 0, filtered: 0 },
  notes: [],
}
const oneTool: Tool = {
  server: 's',
  rawName: 't',
  declaredBy: { source },
  shownAs: { flat: 's__t' },
  missingBecause: undefined,
  filter: { verdict: 'allowed', because: 'there is no filter' },
  visibility: 'visible',
  omittedFrom: [],
  renamedBecause: undefined,
  connector: undefined,
  from: 'live',
  sinceAtMs: nowMs - 7_200_000,
  cache: { kind: 'kept', atMs: nowMs - 90_000, staleBecause: undefined },
}

test('shows of a server what there is to show, and nothing else', () => {
  const plain = [
    ['state', 'ready since 12:00:00 (http, 2025-11-25)'],
    ['declared', '/c.json:2:3 (user)'],
    ['tools', '3, live'],
    ['catalog', 'nothing is kept of it yet'],
  ]
  const facts = { plan: undefined, shadowed: [], nowMs }
  expect(serverLines({ ...facts, life: server })).toEqual(plain)
  const reason = { code: 'SERVER_EXITED', message: 'it ended' } as const
  const failed = { ...server.status, state: 'failed', reason, nextRetryAtMs: nowMs + 5_000, pid: 7 } as const
  const note = (index: number): Server['life']['notes'][number] => ({
    ...{ server: 's', item: `tool ${index}`, kind: 'rejected', reason: 'no schema' },
  })
  const rich: Server['life'] = {
    ...server,
    status: failed,
    environment: 'box',
    declaredBy: { source: { layer: 'host' }, plugin: 'Mail' },
    lastFailure: { code: 'SERVER_EXITED', message: 'it ended', atMs: nowMs },
    cache: { kind: 'kept', listedAtMs: nowMs - 60_000, staleBecause: 'it speaks otherwise', capabilities: {} },
    tools: { from: 'cached', shown: 3, hidden: 2, filtered: 1 },
    notes: Array.from({ length: 9 }, (_, index) => note(index)),
  }
  const row = { server: 's', action: 'start', because: 'no-previous', changed: [] } as const
  const lines = serverLines({ ...facts, life: rich, plan: { row, reason: 'why' }, shadowed: ['/d.json:1:1'] })
  expect(lines.map(([label, text]) => `${label}: ${text}`)).toEqual([
    'state: failed since 12:00:00 (http, 2025-11-25, pid 7)',
    'why: it ended',
    'next try: not before 12:00:05',
    'to do: mend what is named above; convoke status --server s tries it again',
    'declared: host, plugin Mail',
    'in place of: /d.json:1:1',
    'runs in: box',
    'plan: start: why',
    'tools: 3, from an earlier run; 2 of them hidden from models; 1 left out by its filter',
    'catalog: kept, as listed 1 min ago; may be stale: it speaks otherwise',
    ...Array.from({ length: 8 }, (_, index) => `note: tool ${index} rejected: no schema`),
    'note: … and 1 more (all with --json)',
  ])
  const again = { ...rich, status: server.status, notes: [], cache: { kind: 'none', because: 'nobody knows' } } as const
  expect(serverLines({ ...facts, life: again })).toContainEqual(['failed', '12:00:00 SERVER_EXITED: it ended'])
  expect(serverLines({ ...facts, life: again })).toContainEqual(['catalog', 'not kept: nobody knows'])
  const asleep = { ...server, status: { ...server.status, state: 'dormant', reason } } as const
  expect(serverLines({ ...facts, life: asleep }).map(([label]) => label)).not.toContain('why')
  const broken = { code: 'CONFIG_PROBLEM', message: 'no command' } as const
  const notUsed = { ...server, status: { ...server.status, state: 'disabled', reason: broken } } as const
  expect(serverLines({ ...facts, life: notUsed }).slice(0, 3)).toEqual([
    ['state', 'not used since 12:00:00 (http, 2025-11-25)'],
    ['why', 'no command'],
    ['to do', 'mend its entry'],
  ])
  const eight = serverLines({
    ...facts,
    life: { ...server, notes: Array.from({ length: 8 }, (_, index) => note(index)) },
  })
  expect(eight.at(-1)).toEqual(['note', 'tool 7 rejected: no schema'])
  const unknown = { ...server, tools: { ...server.tools, from: 'nowhere' } } as const
  expect(serverLines({ ...facts, life: unknown })).toContainEqual(['tools', 'not known'])
})

test('shows of a tool what there is to show, and nothing else', () => {
  expect(toolLines(oneTool, nowMs)).toEqual([
    ['shown as', 's__t'],
    ['declared', '/c.json:2:3 (user)'],
    ['filter', 'allowed: there is no filter'],
    ['listed', 'live, 2 h ago'],
    ['catalog', 'kept, as listed 1 min ago'],
  ])
  const rich: Tool = {
    ...oneTool,
    shownAs: { flat: 's__t', namespaced: { namespace: 'mcp__s', tool: 't' } },
    renamedBecause: 'it has a space',
    visibility: 'hidden',
    omittedFrom: ['model', 'gateway'],
    connector: { id: 'c1', name: 'Mail' },
    cache: { kind: 'kept', atMs: nowMs, staleBecause: 'old' },
  }
  expect(toolLines(rich, nowMs).map(([label, text]) => `${label}: ${text}`)).toEqual([
    'shown as: s__t',
    'to models: mcp__s t',
    'renamed: it has a space',
    'declared: /c.json:2:3 (user)',
    'filter: allowed: there is no filter',
    'models: do not see it: its server hides it from them; it can be called by name',
    'not in: model, gateway (omitToolsFrom)',
    'connector: Mail (c1)',
    'listed: live, 2 h ago',
    'catalog: kept, as listed just now; may be stale: old',
  ])
  const missing: Tool = {
    ...oneTool,
    shownAs: undefined,
    missingBecause: 'its server does not list it',
    visibility: 'unknown',
    from: 'nowhere',
    sinceAtMs: undefined,
    cache: { kind: 'empty' },
  }
  expect(toolLines(missing, nowMs)).toEqual([
    ['not shown', 'its server does not list it'],
    ['declared', '/c.json:2:3 (user)'],
    ['filter', 'allowed: there is no filter'],
    ['catalog', 'nothing is kept of it yet'],
  ])
})
