// Servers that sleep because their tools are known from before.
import { defineServer, type HostEvent, type HostOptions, nodePlatform, type ServerDefinition } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import {
  callTool,
  eventOf,
  hostOf,
  inFolder,
  rawNames,
  remember,
  scripted,
  statesOf,
  statusOf,
  textIn,
  toolOf,
} from './support.ts'

/** A host whose every event is heard, also those of its first publication. */
async function heardHost(
  definitions: readonly ServerDefinition[],
  options: Omit<HostOptions, 'definitions' | 'onEvent'> = {},
): Promise<{ host: Awaited<ReturnType<typeof hostOf>>['host']; events: HostEvent[] }> {
  const events: HostEvent[] = []
  const { host } = await hostOf(definitions, { ...options, onEvent: (event) => events.push(event) })
  return { host, events }
}

function completed(events: readonly HostEvent[]): HostEvent | undefined {
  return events.find(({ kind }) => kind === 'set.startup-completed')
}

verifies(['conn.002', 'conn.014'], async () => {
  await inFolder(async (cacheDirectory) => {
    const definitions = [scripted('sleeps'), scripted('starts', {}, { startup: 'eager' })]
    await remember(cacheDirectory, definitions)
    const { host, events } = await heardHost(definitions, { cacheDirectory })
    await using _ = host
    await host.whenSettled()
    expect(statusOf(host, 'sleeps')).toMatchObject({ state: 'dormant', reason: { code: 'SERVER_NOT_READY' } })
    expect(events[0]).toMatchObject({
      kind: 'set.published',
      servers: [
        { server: 'sleeps', action: 'defer', because: 'cached' },
        { server: 'starts', action: 'start', because: 'no-previous' },
      ],
    })
    await expect.poll(() => completed(events)).toMatchObject({ ready: ['starts'], failed: [], cancelled: [] })
    await host.configure([])
    expect(host.statuses).toEqual([])
    // From its first to its last day nothing was ever told of it: it was never started.
    expect(statesOf(events, 'sleeps')).toEqual([])
    await expect(host.reconnect('sleeps')).rejects.toMatchObject({ code: 'SERVER_UNKNOWN' })
  })
})

verifies('conn.003', async () => {
  await inFolder(async (cacheDirectory) => {
    const hidden = { name: 'hidden', _meta: { ui: { visibility: ['app'] } } }
    const filtered = scripted('filtered', { tools: [{ name: 'one' }] })
    const unseen = scripted('unseen', { tools: [hidden] })
    await remember(cacheDirectory, [filtered, unseen])
    const denied = defineServer({ ...filtered, tools: { deny: ['one'] } })
    const { host } = await heardHost([denied, unseen], { cacheDirectory })
    await using _ = host
    await host.whenSettled()
    expect(host.statuses.map(({ name, state }) => [name, state])).toEqual([
      ['filtered', 'ready'],
      ['unseen', 'ready'],
    ])
  })
})

verifies('conn.004', async () => {
  await inFolder(async (cacheDirectory) => {
    const plugin = { id: 'calendar', displayName: 'Calendar' }
    const selected = scripted('selected', {}, { plugin: { ...plugin, isSelected: true } })
    const found = scripted('found', {}, { plugin: { ...plugin, isSelected: false } })
    await remember(cacheDirectory, [selected, found])
    const { host } = await heardHost([selected, found], { cacheDirectory })
    await using _ = host
    await host.whenSettled()
    expect(host.statuses.map(({ name, state }) => [name, state])).toEqual([
      ['selected', 'ready'],
      ['found', 'dormant'],
    ])
  })
})

verifies('conn.005', async () => {
  await inFolder(async (cacheDirectory) => {
    const definitions = [scripted('a'), scripted('b')]
    await remember(cacheDirectory, definitions)
    const { host, events } = await heardHost(definitions, { cacheDirectory })
    await using _ = host
    await host.whenSettled()
    host.reconnectOnNextRefresh()
    expect(statesOf(events, 'a')).toEqual([])
    // Whoever gives up before the new generation is there has not used up the wish.
    await expect(host.refresh({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(await host.refresh()).toEqual([
      { server: 'a', action: 'start', because: 'reconnect-asked', changed: [] },
      { server: 'b', action: 'start', because: 'reconnect-asked', changed: [] },
    ])
    await host.whenSettled()
    expect(host.statuses.map(({ state }) => state)).toEqual(['ready', 'ready'])
    const pids = host.statuses.map(({ pid }) => pid)
    // Once.
    expect((await host.refresh()).map(({ action }) => action)).toEqual(['reuse', 'reuse'])
    expect(host.statuses.map(({ pid }) => pid)).toEqual(pids)
  })
})

test('a tool that is known from before is called by starting its server', async () => {
  await inFolder(async (cacheDirectory) => {
    const definitions = [scripted('s'), scripted('other')]
    await remember(cacheDirectory, definitions)
    const { host, events } = await heardHost(definitions, { cacheDirectory })
    await using _ = host
    await using binding = await host.bind()
    expect(toolOf(binding, 's/echo')).toMatchObject({ state: 'cached' })
    expect(statesOf(events, 's')).toEqual([])
    expect(textIn(await callTool(binding, 's/echo', { text: 'hello' }))).toBe('hello')
    expect(statesOf(events, 's')).toEqual(['starting', 'ready'])
    expect(statusOf(host, 'other').state).toBe('dormant')
    // The view of before stays what it was; the next one has the tools of the live server.
    expect(toolOf(binding, 's/echo').state).toBe('cached')
    await using next = await host.bind()
    expect(toolOf(next, 's/echo').state).toBe('live')
    expect(rawNames(next)).toEqual(rawNames(binding))
  })
})

verifies('conn.091', async () => {
  await inFolder(async (cacheDirectory) => {
    const sleeper = scripted('sleeper')
    await remember(cacheDirectory, [sleeper])
    let ageMs = 0
    const platform = { ...nodePlatform, dateMs: () => Date.now() + ageMs }
    const slow = scripted('slow', { initializeDelayMs: 500 }, { required: true })
    const { host, events } = await heardHost([sleeper, slow], { cacheDirectory, platform })
    await using _ = host
    const binding = host.bind()
    await eventOf(host, 'server.state-changed', ({ status }) => status.name === 'slow' && status.state === 'ready')
    // While it was waited for, a week has passed.
    ageMs = 8 * 24 * 3_600_000
    await using bound = await binding
    expect(rawNames(bound)).toContain('sleeper/echo')
    expect(rawNames(bound)).toContain('slow/echo')
    expect(statesOf(events, 'sleeper')).toEqual([])
    // The next one has nothing to show any more, and starts the server.
    await using next = await host.bind()
    expect(rawNames(next)).toContain('sleeper/echo')
    expect(toolOf(next, 'sleeper/echo').state).toBe('live')
  })
})

verifies('conn.086', async () => {
  const plugin = { id: 'p', displayName: 'P', isSelected: true }
  const { host } = await hostOf(
    [
      scripted('needed', { initializeDelayMs: 700 }, { plugin, required: true }),
      scripted('optional', { initializeDelayMs: 1_500 }),
    ],
    { optionalStartupGraceMs: 50 },
  )
  await using _ = host
  await using binding = await host.bind()
  expect(rawNames(binding)).toContain('needed/echo')
  expect(rawNames(binding)).not.toContain('optional/echo')
})
