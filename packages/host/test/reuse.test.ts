// What a refresh keeps, adopts and replaces, on real servers.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { queryObjects } from 'node:v8'
import {
  createHost,
  defineServer,
  type Environment,
  type Host,
  HostError,
  type HostEvent,
  nodePlatform,
  type ServerDefinition,
} from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { ServerCatalog } from '../src/catalog/index.ts'
import { PublicationGate } from '../src/events/index.ts'
import {
  callTool,
  eventOf,
  hostOf,
  http,
  isAlive,
  rawNames,
  scripted,
  seenBy,
  stateOf,
  statesOf,
  statusOf,
  textIn,
} from './support.ts'

/** The process of a server. */
const pidOf = (host: Host, server: string): number | undefined => statusOf(host, server).pid
const actions = async (host: Host, definitions: readonly ServerDefinition[]): Promise<unknown[]> =>
  (await host.configure(definitions)).map(({ server, action, because }) => [server, action, because])

test('a refresh without changes keeps everything and tells so', async () => {
  const definitions = [scripted('a'), scripted('b')]
  const { host, events } = await hostOf(definitions)
  await using _ = host
  await host.whenSettled()
  const before = host.statuses.map(({ pid, sinceAtMs }) => [pid, sinceAtMs])
  expect((await host.refresh()).map(({ action }) => action)).toEqual(['reuse', 'reuse'])
  expect(host.statuses.map(({ pid, sinceAtMs }) => [pid, sinceAtMs])).toEqual(before)
  expect(events.filter(({ kind }) => kind === 'set.published').at(-1)).toMatchObject({ generation: 2 })
})

verifies(['conn.027', 'conn.040'], async () => {
  const definition = scripted('s')
  const { host } = await hostOf([definition])
  await using _ = host
  await host.whenSettled()
  const pid = pidOf(host, 's')
  expect(await actions(host, [defineServer({ ...definition })])).toEqual([['s', 'reuse', 'unchanged']])
  expect(await actions(host, [defineServer({ ...definition, startupTimeoutMs: 12_345 })])).toEqual([
    ['s', 'reuse', 'unchanged'],
  ])
  expect(pidOf(host, 's')).toBe(pid)
  await using binding = await host.bind()
  expect(rawNames(binding)).toContain('s/echo')
})

verifies('conn.025', async () => {
  const [kept, added] = [scripted('kept'), scripted('added')]
  const { host, events } = await hostOf([kept])
  await using _ = host
  await host.whenSettled()
  await expect.poll(() => events.some(({ kind }) => kind === 'set.startup-completed')).toBe(true)
  const from = events.length
  await host.configure([added, kept])
  const summary = await eventOf(host, 'set.startup-completed')
  expect(summary).toEqual({
    kind: 'set.startup-completed',
    generation: 2,
    ready: ['kept', 'added'],
    failed: [],
    cancelled: [],
  })
  const since = events.slice(from)
  expect(statesOf(since, 'kept')).toEqual(['ready'])
  expect(statesOf(since, 'added')).toEqual(['starting', 'ready'])
  const at = since.indexOf(summary)
  expect(since[at - 1]).toMatchObject({ kind: 'server.state-changed', status: { name: 'kept', state: 'ready' } })
})

test('conn.026 on a server: a refused sign-in is told again, and not tried again, while the store is contended', async () => {
  await using web = await startScriptedHttp({ token: 'right' })
  let isContended = false
  const events: HostEvent[] = []
  await using host = await createHost({
    definitions: [http('s', web.url)],
    credentials: { read: async () => ({ snapshot: { kind: 'none' }, isContended }) },
    onEvent: (event) => events.push(event),
  })
  await stateOf(host, 's', 'needs-auth')
  await expect.poll(() => events.some(({ kind }) => kind === 'set.startup-completed')).toBe(true)
  isContended = true
  const from = events.length
  const asked = web.requests?.length
  expect((await host.refresh())[0]).toMatchObject({ action: 'keep-auth-failure', because: 'store-contended' })
  await expect
    .poll(() => events.slice(from).find(({ kind }) => kind === 'set.startup-completed'))
    .toMatchObject({ ready: [], failed: [{ server: 's', code: 'AUTH_REQUIRED' }] })
  expect(statesOf(events.slice(from), 's')).toEqual(['needs-auth'])
  expect(web.requests?.length).toBe(asked)
  // Free again: tried again.
  isContended = false
  expect((await host.refresh())[0]).toMatchObject({ action: 'start', because: 'not-healthy' })
  await host.whenSettled()
})

test('a session that still holds a token is replaced when the store says that there is none, and kept when the store says the same', async () => {
  await using web = await startScriptedHttp({})
  let stored: string | undefined = 'token-1'
  let held: string | null = 'token-1'
  const { host } = await hostOf([http('s', web.url)], {
    credentials: {
      read: async () => ({
        snapshot: stored === undefined ? { kind: 'none' } : { kind: 'value', key: stored },
        isContended: false,
      }),
      live: () => held,
    },
  })
  await using _ = host
  await host.whenSettled()
  const refreshed = async (): Promise<unknown> => {
    const [row] = await host.refresh()
    await host.whenSettled()
    return [row?.action, row?.because]
  }
  // It refreshed its own token, and the store has it.
  held = stored = 'token-2'
  expect(await refreshed()).toEqual(['reuse', 'unchanged'])
  stored = 'somebody-else'
  expect(await refreshed()).toEqual(['start', 'credentials-changed'])
  held = 'somebody-else'
  stored = undefined
  expect(await refreshed()).toEqual(['start', 'credentials-changed'])
})

verifies('conn.028', async () => {
  const definition = scripted('s', {
    tools: [
      { name: 'grow', does: { kind: 'list-changed', what: 'tools', count: 1, everyMs: 0, adds: 'new' } },
      { name: 'seen', does: { kind: 'seen' } },
    ],
  })
  const { host } = await hostOf([definition])
  await using _ = host
  await host.whenSettled()
  await using before = await host.bind()
  const listings = async (): Promise<number> =>
    (await seenBy(before, 's')).requests.filter((one) => one === 'tools/list').length
  const asked = await listings()
  const pid = pidOf(host, 's')
  const beganAtMs = performance.now()
  expect(await actions(host, [defineServer({ ...definition, toolTimeoutMs: 5_000 })])).toEqual([
    ['s', 'reuse', 'unchanged'],
  ])
  await using after = await host.bind()
  expect(performance.now() - beganAtMs).toBeLessThan(1_000)
  expect(rawNames(after)).toEqual(rawNames(before))
  expect(pidOf(host, 's')).toBe(pid)
  expect(await listings()).toBe(asked)
})

verifies(['conn.029', 'conn.030', 'conn.015'], async () => {
  const definition = scripted('s', { initializeDelayMs: 600, tools: [{ name: 'one' }, { name: 'two' }] })
  const { host, events } = await hostOf([definition])
  await using _ = host
  const pid = async (): Promise<number | undefined> => {
    await expect.poll(() => pidOf(host, 's')).toBeDefined()
    return pidOf(host, 's')
  }
  expect(statusOf(host, 's').state).toBe('starting')
  // The default written out, another order of fields, another filter: the start goes on, and nobody waited for it.
  const { startupTimeoutMs, ...rest } = definition
  expect(await actions(host, [{ ...rest, startupTimeoutMs }])).toEqual([['s', 'adopt', 'starting']])
  expect(await actions(host, [defineServer({ ...definition, tools: { deny: ['two'] } })])).toEqual([
    ['s', 'adopt', 'starting'],
  ])
  expect(statusOf(host, 's').state).toBe('starting')
  await host.whenSettled()
  await using binding = await host.bind()
  expect(rawNames(binding)).toEqual(['s/one'])
  expect(statesOf(events, 's').filter((state) => state === 'ready')).toHaveLength(1)
  const running = await pid()
  expect(statusOf(host, 's').toolCount).toBe(1)
  await binding[Symbol.asyncDispose]()
  await host.configure([])
  await expect.poll(() => isAlive(running), { timeout: 6_000 }).toBe(false)
})

verifies('conn.031', async () => {
  const definition = scripted('s', { initialize: 'silent', discover: 'silent' })
  const { host, events } = await hostOf([definition])
  await using _ = host
  const old = await host.bind({ grace: 'none' })
  expect(await actions(host, [defineServer({ ...definition, toolTimeoutMs: 1 })])).toEqual([['s', 'adopt', 'starting']])
  const processes = (): number[] =>
    nodePlatform.processes
      .carrying('CONVOKE_LEASE')
      // Other test files have servers, too.
      .filter(({ pid }) => nodePlatform.processes.variable(pid, 'TMPDIR') === process.env['TMPDIR'])
      .flatMap(({ pid }) => (isAlive(pid) ? [pid] : []))
  await expect.poll(() => processes().length).toBeGreaterThan(0)
  expect(await actions(host, [defineServer({ ...definition, enabled: false })])).toEqual([['s', 'hold', 'disabled']])
  expect(statusOf(host, 's').state).toBe('disabled')
  // An old view still holds the start.
  expect(processes().length).toBeGreaterThan(0)
  await old[Symbol.asyncDispose]()
  await expect.poll(() => processes(), { timeout: 6_000 }).toEqual([])
  expect(statesOf(events, 's')).not.toContain('ready')
})

describe('what replaces a connection', () => {
  verifies(['conn.037', 'conn.042'], async () => {
    await using web = await startScriptedHttp({})
    await using other = await startScriptedHttp({})
    const definition = http('s', web.url)
    const { host } = await hostOf([definition])
    await using _ = host
    await host.whenSettled()
    const changed = http('s', web.url, {}, { transport: 'streamable' })
    expect(await host.configure([changed])).toEqual([
      { server: 's', action: 'start', because: 'config-changed', changed: ['transport'] },
    ])
    await host.whenSettled()
    expect(await actions(host, [http('s', other.url, {}, { transport: 'streamable' })])).toEqual([
      ['s', 'start', 'config-changed'],
    ])
    await host.whenSettled()
    expect(statusOf(host, 's').state).toBe('ready')
  })

  verifies('conn.041', async () => {
    const { host } = await hostOf([
      scripted('s', { tools: [{ name: 'die', does: { kind: 'exit', code: 3, onCall: 1 } }, { name: 'echo' }] }),
    ])
    await using _ = host
    await host.whenSettled()
    const pid = pidOf(host, 's')
    await using binding = await host.bind()
    await callTool(binding, 's/die')
    await stateOf(host, 's', 'failed')
    expect((await host.refresh())[0]).toMatchObject({ action: 'start', because: 'not-healthy' })
    await host.whenSettled()
    expect(statusOf(host, 's')).toMatchObject({ state: 'ready' })
    expect(pidOf(host, 's')).not.toBe(pid)
  })

  verifies('conn.032', async () => {
    await using web = await startScriptedHttp({ token: 'right' })
    const env: Record<string, string> = { TOKEN: 'wrong' }
    const platform = { ...nodePlatform, env: { ...process.env, ...env } as Record<string, string> }
    const { host } = await hostOf([http('s', web.url, {}, { bearerTokenEnvVar: 'TOKEN' })], { platform })
    await using _ = host
    await stateOf(host, 's', 'needs-auth')
    const again = eventOf(host, 'server.state-changed', ({ status }) => status.state === 'starting')
    expect((await host.refresh())[0]).toMatchObject({ action: 'start', because: 'not-healthy' })
    await again
    await stateOf(host, 's', 'needs-auth')
    // With another value of the variable it is somebody else who asks.
    platform.env['TOKEN'] = 'right'
    expect((await host.refresh())[0]).toMatchObject({ action: 'start', because: 'config-changed' })
    await stateOf(host, 's', 'ready')
  })
})

verifies(['conn.035', 'conn.036'], async () => {
  const definition = scripted('s', { era: 'legacy' })
  const marked = defineServer({
    ...definition,
    transport: {
      ...definition.transport,
      env: { ...('env' in definition.transport ? definition.transport.env : {}), SERVER_PROTOCOL_VERSION: 'odd' },
    },
  } as ServerDefinition)
  const { host } = await hostOf([marked])
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 's').era).toBe('legacy')
  const pid = pidOf(host, 's')
  expect(await actions(host, [defineServer({ ...marked })])).toEqual([['s', 'reuse', 'unchanged']])
  expect((await host.refresh())[0]).toMatchObject({ action: 'reuse' })
  expect(pidOf(host, 's')).toBe(pid)
})

verifies('conn.044', async () => {
  const definition = scripted('s', {
    tools: [{ name: 'one' }, { name: 'two' }, { name: 'seen', does: { kind: 'seen' } }],
  })
  const { host } = await hostOf([definition])
  await using _ = host
  await host.whenSettled()
  await using old = await host.bind()
  await host.configure([
    defineServer({ ...definition, tools: { deny: ['two'] }, approvalMode: 'prompt', parallelToolCalls: true }),
  ])
  await using fresh = await host.bind()
  expect(rawNames(old)).toEqual(['s/one', 's/seen', 's/two'])
  expect(rawNames(fresh)).toEqual(['s/one', 's/seen'])
  expect(old.tools.map(({ approvalMode, parallelToolCalls }) => [approvalMode, parallelToolCalls])).toContainEqual([
    'auto',
    false,
  ])
  expect(
    fresh.tools.every(({ approvalMode, parallelToolCalls }) => approvalMode === 'prompt' && parallelToolCalls),
  ).toBe(true)
  expect((await seenBy(old, 's')).pid).toBe((await seenBy(fresh, 's')).pid)
  // The old view still calls what the new one does not show.
  expect(textIn(await callTool(old, 's/two', { text: 'still' }))).toBe('still')
})

describe('publication', () => {
  verifies('conn.008', () => {
    const told: string[] = []
    const event = (text: string): HostEvent => ({ kind: 'server.noise', server: 's', text })
    const gate = new PublicationGate((one) => told.push(one.kind === 'server.noise' ? one.text : one.kind))
    gate.emit(event('held'))
    expect(told).toEqual([])
    gate.publish()
    gate.emit(event('after'))
    expect(told).toEqual(['held', 'after'])
    gate.discard()
    gate.emit(event('the first decision stands'))
    expect(told).toHaveLength(3)
    const dropped = new PublicationGate((one) => told.push(one.kind))
    dropped.emit(event('never'))
    dropped.discard()
    dropped.publish()
    dropped.emit(event('never'))
    expect(told).toHaveLength(3)
  })

  verifies('conn.009', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'convoke-host-'))
    const events: HostEvent[] = []
    let reads = 0
    const abort = new AbortController()
    await using web = await startScriptedHttp({})
    await using host = await createHost({
      definitions: [scripted('old')],
      // The second plan hangs while it looks at sign-ins.
      credentials: {
        read: async () => {
          reads += 1
          abort.abort()
          return new Promise(() => {})
        },
      },
      onEvent: (event) => events.push(event),
    })
    await host.whenSettled()
    await expect.poll(() => events.at(-1)?.kind).toBe('set.startup-completed')
    const from = events.length
    const marker = join(folder, 'started')
    const candidate = [http('new', web.url), scripted('other', { log: marker })]
    await expect(host.configure(candidate, { signal: abort.signal })).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(reads).toBe(1)
    expect(events.slice(from)).toEqual([])
    expect(host.statuses.map(({ name, state }) => [name, state])).toEqual([['old', 'ready']])
    await expect(import('node:fs/promises').then(({ stat }) => stat(marker))).rejects.toMatchObject({ code: 'ENOENT' })
    await rm(folder, { recursive: true })
  })

  test('plan says what configure would do, and does nothing', async () => {
    const [kept, changed, gone] = [scripted('kept'), scripted('changed'), scripted('gone')]
    const { host, events } = await hostOf([kept, changed, gone])
    await using _ = host
    await host.whenSettled()
    const next = [
      kept,
      defineServer({ ...changed, messageBytesMax: 1_000_000 }),
      scripted('new'),
      defineServer({ ...kept, name: 'off', enabled: false }),
    ]
    const from = events.length
    const planned = await host.plan(next)
    expect(planned).toEqual([
      { server: 'kept', action: 'reuse', because: 'unchanged', changed: [] },
      // Its tools are known, and nothing about them has changed.
      { server: 'changed', action: 'defer', because: 'cached', changed: ['messageBytesMax'] },
      { server: 'new', action: 'start', because: 'no-previous', changed: [] },
      { server: 'off', action: 'hold', because: 'disabled', changed: [] },
      { server: 'gone', action: 'retire', because: 'removed', changed: [] },
    ])
    expect(events.slice(from)).toEqual([])
    expect(host.statuses.map(({ name }) => name)).toEqual(['kept', 'changed', 'gone'])
    expect(await host.configure(next)).toEqual(planned)
    await host.whenSettled()
    expect(host.statuses.map(({ name, state }) => [name, state])).toEqual([
      ['kept', 'ready'],
      ['changed', 'dormant'],
      ['new', 'ready'],
      ['off', 'disabled'],
    ])
    // Asked of a host that has none of them: what the change would do to one that has.
    await using other = await createHost({ definitions: [] })
    const change = await other.plan([kept, scripted('new')], { running: [kept, gone] })
    expect(change.map(({ server, action, because }) => [server, action, because])).toEqual([
      ['kept', 'reuse', 'unchanged'],
      ['new', 'start', 'no-previous'],
      ['gone', 'retire', 'removed'],
    ])
    await expect(host.configure([kept, kept])).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  })
})

test('required servers: named when they fail, all of them, and waited for by bindings', async () => {
  const { host } = await hostOf(
    [
      scripted('slow', { initializeDelayMs: 400 }, { required: true }),
      scripted('dies', { exitAtStart: { code: 7 } }, { required: true }),
      scripted('also', { exitAtStart: { code: 8 } }, { required: true }),
      scripted('optional', { exitAtStart: { code: 9 } }),
    ],
    { optionalStartupGraceMs: 1 },
  )
  await using _ = host
  const failure = await host.requireReady().then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(HostError.is(failure, 'REQUIRED_SERVERS_FAILED')).toBe(true)
  expect((failure as HostError).details['servers']).toMatchObject([
    { server: 'also', code: 'SERVER_EXITED' },
    { server: 'dies', code: 'SERVER_EXITED' },
  ])
  await using binding = await host.bind()
  expect(rawNames(binding)).toContain('slow/echo')
  await expect(host.requireReady({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'CANCELLED' })
})

describe('environments', () => {
  verifies('conn.001', async () => {
    await using web = await startScriptedHttp({})
    const { host } = await hostOf([scripted('process'), http('web', web.url)], { environments: {} })
    await using _ = host
    await host.whenSettled()
    expect(statusOf(host, 'process')).toMatchObject({
      state: 'failed',
      reason: { code: 'ENVIRONMENT_UNAVAILABLE', message: expect.stringContaining('Server "process"') },
    })
    expect(statusOf(host, 'web').state).toBe('ready')
  })

  test('another environment starts processes in its own place, and a new object under the same name is another place', async () => {
    const spawned: string[] = []
    const place = (name: string): Environment => ({
      platform: {
        ...nodePlatform,
        spawn: (spec) => {
          spawned.push(name)
          return nodePlatform.spawn(spec)
        },
      },
    })
    const definition = scripted('s', {}, { environment: 'box' })
    const { host } = await hostOf([definition, scripted('lost', {}, { environment: 'nowhere' })], {
      environments: { box: place('box') },
    })
    await using _ = host
    await host.whenSettled()
    expect(statusOf(host, 's').state).toBe('ready')
    expect(spawned).toEqual(['box'])
    expect(statusOf(host, 'lost').reason).toMatchObject({ code: 'ENVIRONMENT_UNAVAILABLE' })
  })
})

test('a connection that only an old view holds tells nothing under its name any more', async () => {
  const tools = [
    { name: 'grow', does: { kind: 'list-changed', what: 'tools', count: 1, everyMs: 0, adds: 'new' } },
    { name: 'die', does: { kind: 'exit', code: 3, onCall: 1 } },
    { name: 'seen', does: { kind: 'seen' } },
  ] as const
  const definition = scripted('s', { tools })
  const { host, events } = await hostOf([definition])
  await using _ = host
  await host.whenSettled()
  await using old = await host.bind()
  await host.configure([defineServer({ ...definition, enabled: false })])
  await expect.poll(() => events.at(-1)).toMatchObject({ kind: 'set.startup-completed', generation: 2 })
  const from = events.length
  await callTool(old, 's/grow')
  await expect.poll(async () => (await seenBy(old, 's')).requests.filter((one) => one === 'tools/list').length).toBe(2)
  await callTool(old, 's/die')
  expect(events.slice(from)).toEqual([])
  expect(statusOf(host, 's').state).toBe('disabled')
})

test('the revision of a binding changes exactly when its tools do', async () => {
  const definition = scripted('s')
  const { host } = await hostOf([definition, scripted('empty', { tools: [] })])
  await using _ = host
  const revision = async (): Promise<string> => {
    await host.whenSettled()
    await using binding = await host.bind()
    return binding.revision
  }
  const first = await revision()
  await host.configure([definition])
  expect(await revision()).toBe(first)
  await host.configure([defineServer({ ...definition, toolTimeoutMs: 1_234 })])
  expect(await revision()).toBe(first)
  await host.configure([defineServer({ ...definition, parallelToolCalls: true })])
  expect(await revision()).not.toBe(first)
})

test('what was replaced is not held by what replaced it', async () => {
  const { host } = await hostOf([scripted('s')])
  await using _ = host
  for (let round = 0; round < 8; round += 1) await host.reconnect('s')
  // Collects garbage first. The one of now, and the one that may just be ending.
  await expect.poll(() => queryObjects(ServerCatalog, { format: 'count' })).toBeLessThan(4)
})
