// Whom a binding waits for, how long, and when it is the same again.
import { createCatalogCache, defineServer, type Host, nodePlatform } from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import {
  callTool,
  eventOf,
  hostOf,
  http,
  inFolder,
  rawNames,
  remember,
  scripted,
  stateOf,
  statesOf,
  statusOf,
  textIn,
  toolOf,
} from './support.ts'

const SLOW = { initializeDelayMs: 1_500 } as const
const PLUGIN = { id: 'calendar', displayName: 'Calendar', isSelected: true } as const

/** How long a binding takes, in milliseconds. */
async function bindingTime(
  host: Host,
  request: Parameters<Host['bind']>[0] = {},
): Promise<{ ms: number; names: string[] }> {
  const beganAtMs = performance.now()
  await using binding = await host.bind(request)
  return { ms: performance.now() - beganAtMs, names: rawNames(binding) }
}

verifies(['conn.084', 'conn.085'], async () => {
  const { host } = await hostOf(
    [
      scripted('one', SLOW),
      scripted('two', SLOW),
      scripted('selected', SLOW, { plugin: PLUGIN }),
      scripted('found', SLOW, { plugin: { ...PLUGIN, id: 'found', isSelected: false } }),
    ],
    { optionalStartupGraceMs: 250 },
  )
  await using _ = host
  // One grace for all of them together.
  const first = await bindingTime(host)
  expect(first.names).toEqual([])
  expect(first.ms).toBeGreaterThan(240)
  expect(first.ms).toBeLessThan(900)
  // It is over: nobody waits again, also not for plugins that are not selected or only look alike.
  for (const requiredPlugins of [[], ['found'], ['calendar2'], ['cal']]) {
    const next = await bindingTime(host, { requiredPlugins })
    expect(next.names).toEqual([])
    expect(next.ms).toBeLessThan(200)
  }
  const beganAtMs = performance.now()
  await using bulk = await host.bind()
  expect((await bulk.resources()).items).toEqual([])
  expect(performance.now() - beganAtMs).toBeLessThan(300)
  // Whoever needs one of them waits for it.
  expect((await bindingTime(host, { requiredPlugins: ['calendar'] })).names).toContain('selected/echo')
  expect((await bindingTime(host, { requiredServers: ['two'] })).names).toContain('two/echo')
})

test('conn.084 on one server: reading its resources waits for it', async () => {
  await using web = await startScriptedHttp({ initializeDelayMs: 500 })
  const { host } = await hostOf([http('s', web.url)], { optionalStartupGraceMs: 1 })
  await using _ = host
  await using binding = await host.bind()
  expect(statusOf(host, 's').state).toBe('starting')
  const { resources } = await host.resources.listResources('s')
  expect(resources.length).toBeGreaterThan(0)
  expect(rawNames(binding)).toEqual([])
})

verifies('conn.087', async () => {
  const { host } = await hostOf([scripted('s', { initializeDelayMs: 700 })], { optionalStartupGraceMs: 0 })
  await using _ = host
  await using binding = await host.bind()
  expect(textIn(await callTool(binding, 's/echo', { text: 'here' }))).toBe('here')
})

verifies(['conn.088', 'conn.095'], async () => {
  const optional = scripted('optional', { exitAtStart: { code: 3 } }, { startup: 'eager' })
  const required = defineServer({ ...optional, name: 'required', required: true })
  const { host } = await hostOf([scripted('s'), optional])
  await using _ = host
  await host.whenSettled()
  const same = async (): Promise<boolean> => {
    await using one = await host.bind()
    await using two = await host.bind()
    expect(rawNames(two)).toContain('s/echo')
    expect(two.tools).toBe(one.tools)
    return two.statuses === one.statuses
  }
  // The failed one waits for its next try; nothing changes meanwhile.
  expect(await same()).toBe(true)
  await using before = await host.bind()
  await host.refresh()
  await host.whenSettled()
  await using after = await host.bind()
  expect(after.generation).toBe(before.generation + 1)
  expect(after.statuses).not.toBe(before.statuses)
  await host.configure([scripted('s'), required])
  await host.whenSettled()
  expect(await same()).toBe(false)
})

test('a server that comes late is told, and is in the next binding', async () => {
  const { host, events } = await hostOf([scripted('late', { initializeDelayMs: 600 }), scripted('s')], {
    optionalStartupGraceMs: 300,
  })
  await using _ = host
  await using before = await host.bind()
  expect(rawNames(before).some((name) => name.startsWith('late/'))).toBe(false)
  const joined = await eventOf(host, 'server.joined-late', ({ server }) => server === 'late')
  expect(joined).toEqual({ kind: 'server.joined-late', server: 'late', generation: before.generation })
  expect(rawNames(before).some((name) => name.startsWith('late/'))).toBe(false)
  await using after = await host.bind()
  expect(rawNames(after)).toContain('late/echo')
  expect(events.filter((event) => event.kind === 'server.joined-late' && event.server === 'late')).toHaveLength(1)
})

verifies('conn.090', async () => {
  const catalogs = createCatalogCache()
  let spawned = 0
  // The first process that is started never says anything; every later one is the real server.
  const platform = {
    ...nodePlatform,
    spawn: (spec: Parameters<typeof nodePlatform.spawn>[0]) => {
      spawned += 1
      return nodePlatform.spawn(spawned === 1 ? { ...spec, command: 'sleep', args: ['60'] } : spec)
    },
  }
  const definition = scripted('s')
  const { host: waits, events } = await hostOf([definition], { catalogs, platform, optionalStartupGraceMs: 60_000 })
  await using _ = waits
  const binding = waits.bind()
  await expect.poll(() => spawned).toBe(1)
  const { host: peer } = await hostOf([definition], { catalogs, platform })
  await using __ = peer
  await using bound = await binding
  expect(toolOf(bound, 's/echo').state).toBe('cached')
  expect(statusOf(waits, 's').state).toBe('starting')
  expect(statesOf(events, 's')).not.toContain('ready')
})

verifies('conn.049', async () => {
  await using one = await startScriptedHttp({ initializeDelayMs: 400 })
  await using two = await startScriptedHttp({ initializeDelayMs: 400 })
  const { host } = await hostOf([http('one', one.url), http('two', two.url)])
  await using _ = host
  // Both are under way before either has answered.
  expect(host.statuses.map(({ state }) => state)).toEqual(['starting', 'starting'])
  const beganAtMs = performance.now()
  await using binding = await host.bind({ requiredServers: ['one', 'two'] })
  expect(performance.now() - beganAtMs).toBeLessThan(790)
  expect(rawNames(binding)).toEqual(expect.arrayContaining(['one/echo', 'two/echo']))
})

verifies('conn.050', async () => {
  const { host } = await hostOf([scripted('s', { listDelayMs: 500 })], { optionalStartupGraceMs: 20_000 })
  await using _ = host
  const { ms, names } = await bindingTime(host)
  expect(names).toContain('s/echo')
  expect(ms).toBeGreaterThan(400)
})

verifies('conn.024', async () => {
  await inFolder(async (cacheDirectory) => {
    const sleeper = scripted('dormant')
    await remember(cacheDirectory, [sleeper])
    await using locked = await startScriptedHttp({ token: 'secret' })
    const definitions = [
      sleeper,
      scripted('ready', {}, { startup: 'eager' }),
      scripted('starting', { discover: 'silent', initialize: 'silent' }),
      scripted('failed', { exitAtStart: { code: 1 } }),
      scripted('off', {}, { enabled: false }),
      http('needs-auth', locked.url),
      http('needs-input', locked.url, {}, { bearerTokenEnvVar: 'CONVOKE_TEST_NOT_SET' }),
      scripted('cancelled', { discover: 'silent', initialize: 'silent' }),
    ]
    const { host, events } = await hostOf(definitions, { cacheDirectory })
    await using _ = host
    for (const [server, state] of [
      ['ready', 'ready'],
      ['failed', 'failed'],
      ['needs-auth', 'needs-auth'],
      ['needs-input', 'needs-input'],
    ] as const)
      await stateOf(host, server, state)
    const starting = host.statuses.filter(({ state }) => state === 'starting').map(({ name }) => name)
    expect(starting).toEqual(['starting', 'cancelled'])
    host.cancelStarts()
    await host.configure(
      definitions.map((one) => (one.name === 'starting' ? defineServer({ ...one, toolTimeoutMs: 1 }) : one)),
    )
    const beganAtMs = performance.now()
    const states = Object.fromEntries(
      host.statuses.map(({ name, state, reason }) => [name, [state, reason === undefined]]),
    )
    expect(performance.now() - beganAtMs).toBeLessThan(100)
    expect(states).toMatchObject({
      dormant: ['dormant', false],
      ready: ['ready', true],
      off: ['disabled', false],
    })
    for (const { state, reason, sinceAtMs } of host.statuses) {
      if (state !== 'ready') expect(reason?.message.length).toBeGreaterThan(0)
      expect(sinceAtMs).toBeGreaterThan(1_600_000_000_000)
    }
    expect(statesOf(events, 'cancelled')).toContain('cancelled')
    expect(statesOf(events, 'dormant')).toEqual([])
    // Cancelled again: told as cancelled, and what is ready stays usable.
    host.cancelStarts()
    expect(statusOf(host, 'cancelled')).toMatchObject({ state: 'cancelled', reason: { code: 'CANCELLED' } })
    await using binding = await host.bind({ grace: 'none' })
    expect(textIn(await callTool(binding, 'ready/echo', { text: 'fine' }))).toBe('fine')
  })
})

verifies('conn.107', async () => {
  const { host } = await hostOf([scripted('s', { discover: 'silent', initialize: 'silent' })], {
    optionalStartupGraceMs: 60_000,
  })
  const binding = host.bind().then(rawNames, (error: unknown) => error)
  const beganAtMs = performance.now()
  await host.close()
  expect(await binding).toEqual([])
  expect(performance.now() - beganAtMs).toBeLessThan(1_000)
})

verifies('conn.108', async () => {
  const abort = new AbortController()
  const { host } = await hostOf([scripted('s', { stubborn: { ignoreStdinEnd: true } })], {
    signal: abort.signal,
    closeGraceMs: 300,
  })
  await host.whenSettled()
  const { pid } = statusOf(host, 's')
  // Nobody waits for this close.
  abort.abort()
  const { isAlive } = await import('./support.ts')
  await expect.poll(() => isAlive(pid), { timeout: 6_000 }).toBe(false)
  await host.close()
})

verifies('conn.111', async () => {
  const { host } = await hostOf([
    scripted('s', { tools: [{ name: 'die', does: { kind: 'exit', code: 3, onCall: 1 } }, { name: 'echo' }] }),
  ])
  await using _ = host
  await host.whenSettled()
  await using before = await host.bind()
  await callTool(before, 's/die')
  const lost = await stateOf(host, 's', 'failed')
  expect(lost.nextRetryAtMs).toBeGreaterThanOrEqual(lost.sinceAtMs)
  // Nothing but somebody's need starts it: looking at it does not.
  expect(statusOf(host, 's').state).toBe('failed')
  await using during = await host.bind()
  expect(rawNames(during)).toEqual([])
  await expect
    .poll(
      async () => {
        await using binding = await host.bind()
        return rawNames(binding)
      },
      { timeout: 10_000 },
    )
    .toContain('s/echo')
})

test('a tool named from a binding says whether it is live', async () => {
  const { host } = await hostOf([scripted('s')])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(toolOf(binding, 's/echo')).toMatchObject({ state: 'live', environment: 'local', origin: 'stdio' })
})
