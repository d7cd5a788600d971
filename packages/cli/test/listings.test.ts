import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { everythingStdio, verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT } from '../src/index.ts'
import { Home } from './command.ts'
import { entryOf, scripted } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

interface Server {
  readonly name: string
  readonly state: string
  readonly reason?: { readonly code: string; readonly message: string }
  readonly since: string
  readonly nextRetryAt?: string
}
interface Tools {
  readonly version: number
  readonly revision: string
  readonly tools: readonly {
    readonly name: string
    readonly server: string
    readonly rawName: string
    readonly state: string
  }[]
  readonly servers: readonly Server[]
}

const small = (name: string): { name: string; tools: { name: string; inputSchema: object }[] } => ({
  name,
  tools: [{ name: 'one', inputSchema: { type: 'object' } }],
})

verifies(['command.007', 'command.009', 'command.020'], async () => {
  await home.configure({
    good: scripted(small('good')),
    exits: scripted({ exitAtStart: { code: 3 }, stderr: ['no licence found'] }),
    absent: { command: 'convoke-no-such-program' },
    wrong: { command: 'x', args: 'y' },
    off: { ...scripted(), disabled: true },
    noisy: scripted({ ...small('noisy'), banner: ['Welcome!', '\u001b[32mready\u001b[0m'] }),
  })
  const { code, answer, stderr } = await home.json(['tools'])
  const { version, revision, tools, servers } = answer as Tools
  expect(code).toBe(EXIT.ok)
  expect(version).toBe(1)
  expect(revision).toMatch(/^\w+$/)
  expect(tools.map(({ name, server, rawName, state }) => [name, server, rawName, state])).toEqual([
    ['good__one', 'good', 'one', 'live'],
    ['noisy__one', 'noisy', 'one', 'live'],
  ])
  const states = Object.fromEntries(servers.map(({ name, state, reason }) => [name, [state, reason?.message ?? '']]))
  expect(states['good']).toEqual(['ready', ''])
  expect(states['exits']).toEqual(['failed', expect.stringMatching(/exits.*no licence found/s)])
  expect(states['absent']).toEqual(['failed', expect.stringContaining('convoke-no-such-program')])
  expect(states['wrong']?.[1]).toContain(`${home.configFile}:`)
  expect(states['off']?.[0]).toBe('disabled')
  expect(states['noisy']?.[0]).toBe('ready')
  for (const { since } of servers) expect(new Date(since).toISOString()).toBe(since)
  for (const name of ['exits', 'absent']) expect(stderr).toMatch(new RegExp(`not available: ${name} \\(`))
  expect(stderr).not.toMatch(/not available: (off|wrong)/)
  expect(stderr).toMatch(/^error: .*server "wrong": "args" must be a list/m)

  expect((await home.run(['tools', '--strict'])).code).toBe(EXIT.notAvailable)
  expect((await home.run(['tools', '--strict', '--server', 'good'])).code).toBe(EXIT.ok)
})

verifies('command.008', async () => {
  await home.configure({ good: scripted(small('good')), slow: scripted({ startDelayMs: 20_000 }) })
  const startedAtMs = performance.now()
  const { answer, stderr } = await home.json(['tools', '--live', '--wait', '2500'])
  expect(performance.now() - startedAtMs).toBeLessThan(12_000)
  expect((answer as Tools).tools.map(({ name }) => name)).toEqual(['good__one'])
  expect((answer as Tools).servers.map(({ name, state }) => [name, state])).toEqual([
    ['good', 'ready'],
    ['slow', 'starting'],
  ])
  expect(stderr).toMatch(/not available: slow \(starting\): still not ready; wait longer with --wait MS/)
})

verifies('command.010', async () => {
  const tools = [
    {
      name: 'plan trip',
      description: 'Plans\n  a trip',
      inputSchema: {
        type: 'object',
        properties: {
          to: { type: 'string' },
          days: { type: 'integer' },
          by: { enum: ['rail', 'road'] },
          stops: {
            type: 'array',
            items: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
          },
          budget: { anyOf: [{ type: 'number' }, { type: 'null' }] },
        },
        required: ['to'],
      },
    },
  ]
  await home.configure({ travel: scripted({ tools }) })
  const { stdout } = await home.run(['tools'])
  expect(stdout).toBe(
    [
      'travel · 1 tool · ready',
      '  travel/plan trip(to: string, days?: integer, by?: "rail" | "road", stops?: { city: string }[], budget?: number | null)',
      '      Plans a trip',
      '',
    ].join('\n'),
  )
})

verifies('command.016', async () => {
  await home.configure({
    good: scripted({ ...small('good'), banner: ['noise'] }),
    'exits early': scripted({ exitAtStart: { code: 3 }, stderr: ['no licence found'] }),
    web: { url: 'http://127.0.0.1:9/mcp' },
  })
  const human = await home.run(['status', '--live'])
  expect(human.code).toBe(EXIT.ok)
  const lines = human.stdout.split('\n')
  expect(lines[0]).toMatch(/^good {7} {2}ready {2}stdio · 20\d\d-\d\d-\d\d · 1 tool · pid \d+ · 1 line of noise/)
  expect(lines[1]).toMatch(/^exits early {2}failed: .*no licence found/)
  expect(lines[2]).toMatch(/^web {8} {2}failed: /)
  const { code, answer } = await home.json(['status', '--live', '--strict'])
  expect(code).toBe(EXIT.notAvailable)
  expect(answer).toMatchObject({
    version: 1,
    servers: [
      { name: 'good', state: 'ready', transport: 'stdio', pid: expect.any(Number), toolCount: 1, era: 'legacy' },
      {
        name: 'exits early',
        state: 'failed',
        reason: { code: 'SERVER_EXITED' },
        stderrTail: expect.stringContaining('no licence'),
      },
      { name: 'web', state: 'failed', transport: 'http', reason: { code: 'SERVER_UNREACHABLE' } },
    ],
  })
  const one = await home.json(['status', '--server', 'good'])
  expect((one.answer as { servers: Server[] }).servers.map(({ name }) => name)).toEqual(['good'])
})

verifies('command.017', async () => {
  await home.configure({ a: scripted({ name: 'a' }), b: scripted({ name: 'b' }), plain: scripted(small('plain')) })
  const { code, answer } = await home.json(['resources'])
  expect(code).toBe(EXIT.ok)
  const { resources, resourceTemplates } = answer as Record<
    string,
    { server: string; uri?: string; uriTemplate?: string }[]
  >
  expect(resources?.filter(({ server }) => server === 'a').map(({ uri }) => uri)).toEqual([
    'scripted://one',
    'scripted://two',
  ])
  expect(resourceTemplates?.filter(({ server }) => server === 'b').map(({ uriTemplate }) => uriTemplate)).toEqual([
    'scripted://item/{id}',
  ])
  expect((await home.run(['resources', '--server', 'a'])).stdout).toContain('scripted://one  one: A text')

  const ambiguous = await home.run(['read', 'scripted://one'])
  expect(ambiguous.code).toBe(EXIT.usage)
  expect(ambiguous.stderr).toMatch(/"a".*"b"|a, b/)
  const read = await home.run(['read', 'scripted://one', '--server', 'a'])
  expect([read.code, read.stdout.length > 1]).toEqual([EXIT.ok, true])
  const bytes = await home.run(['read', 'scripted://two', '--server', 'b'])
  expect(bytes.stdout).toMatch(/^\[binary application\/octet-stream, \d+ bytes: scripted:\/\/two\]$/m)
  const file = join(home.folder, 'out.bin')
  expect((await home.run(['read', 'scripted://two', '--server', 'b', '--output', file])).stdout).toBe('')
  const whole = await home.json(['read', 'scripted://two', '--server', 'b'])
  const [content] = (whole.answer as { contents: { blob: string }[] }).contents
  const { stdout: base64 } = await home.startProgram('base64', ['-w0', file]).ended
  expect(base64).toBe(content?.blob)
  const unknown = await home.run(['read', 'nobody://x'])
  expect(unknown.code).toBe(EXIT.usage)
})

verifies('command.018', async () => {
  await home.configure({ every: entryOf(everythingStdio()), a: scripted({ name: 'a' }) })
  const list = await home.run(['prompts'])
  expect(list.stdout).toContain('  every/args-prompt(city, state?)')
  expect(list.stdout).toContain('  a/greet(who)')
  const { answer } = await home.json(['prompts', '--server', 'a'])
  expect(answer).toMatchObject({
    version: 1,
    prompts: [{ name: 'a__greet', server: 'a', rawName: 'greet', arguments: [{ name: 'who' }] }],
  })
  const prompt = await home.run(['prompt', 'every/args-prompt', 'city=Berlin', 'state=01'])
  expect([prompt.code, prompt.stdout]).toEqual([EXIT.ok, "user:\nWhat's weather in Berlin, 01?\n"])
  const flat = await home.json(['prompt', 'every__args-prompt', '--args', '{"city":"Rome"}'])
  expect(flat.answer).toMatchObject({ version: 1, messages: [{ role: 'user', content: { type: 'text' } }] })
  const missing = await home.run(['prompt', 'every/args-prompt'])
  expect([missing.code, missing.stderr]).toEqual([EXIT.usage, expect.stringContaining('needs "city"')])
  const unknown = await home.run(['prompt', 'every/args-promt'])
  expect([unknown.code, unknown.stderr]).toEqual([
    EXIT.usage,
    expect.stringContaining('There is no prompt "every/args-promt"'),
  ])
})

verifies('command.034', async () => {
  const one = { name: 'one', inputSchema: { type: 'object' } }
  await home.configure({ twins: scripted({ name: 'twins', tools: [one, one] }) })
  const { code, answer, stderr } = await home.json(['tools'])
  const { tools, notes } = answer as Tools & { notes: readonly { item: string; kind: string; reason: string }[] }
  expect(code).toBe(EXIT.ok)
  expect(tools.map(({ rawName }) => rawName)).toEqual(['one'])
  expect(notes.map(({ item, kind }) => [item, kind])).toEqual([['one', 'rejected']])
  expect(stderr).toContain('left out: twins/one: a second tool of the same name')
})

test('says how to begin when nothing is configured', async () => {
  await home.configure('{}')
  for (const name of ['tools', 'status', 'resources', 'prompts', 'list']) {
    const { code, stdout, stderr } = await home.run([name])
    expect([name, code, stdout]).toEqual([name, EXIT.ok, ''])
    expect(stderr).toContain('No server is configured. Add one: convoke add')
  }
  expect(((await home.json(['tools'])).answer as Tools).tools).toEqual([])
})

test('reads the file of --config on top of the own one', async () => {
  await home.configure({ mine: scripted(small('mine')), both: { command: 'convoke-no-such-program' } })
  const file = join(home.folder, 'project.json')
  await writeFile(file, JSON.stringify({ mcpServers: { both: scripted(small('both')) } }))
  const { answer } = await home.json(['tools', '--config', file])
  expect((answer as Tools).tools.map(({ name }) => name).sort()).toEqual(['both__one', 'mine__one'])
})
