// Hosted plugins as an extension: phases, settings, the account, and the long life of one thread.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { type ExtensionConfiguration, ExtensionRegistry, type ServerContribution } from '../src/extensions/index.ts'
import { type PluginCatalog, type PluginsExtensionOptions, pluginsExtension } from '../src/plugins/index.ts'
import { complete, entry, partial, ScriptedProvider, store, TestResources, VirtualClock } from './plugin-support.ts'

const signal = new AbortController().signal

/** The contributor of an extension in a thread of its own. */
function installed(
  options: PluginsExtensionOptions,
  { enabled = true, resources = undefined as TestResources | undefined } = {},
) {
  const registry = ExtensionRegistry.of([pluginsExtension(options)])
  const [session, thread] = [store('session'), store('thread')]
  let configuration: ExtensionConfiguration = { pluginsEnabled: enabled, extensions: {} }
  const only = <One>(all: readonly { readonly contributor: One }[]): One => {
    const [first, ...more] = all
    if (first === undefined || more.length > 0) throw new Error('not exactly one')
    return first.contributor
  }
  const [lifecycle, settings, turns, servers] = [
    only(registry.all('threadLifecycle')),
    only(registry.all('configuration')),
    only(registry.all('turnLifecycle')),
    only(registry.all('servers')),
  ]
  const start = (): void =>
    void lifecycle.onThreadStart?.({
      session,
      thread,
      configuration,
      resources,
      metrics: { count: () => {} },
      warn: () => {},
    })
  const configure = (pluginsEnabled: boolean): void => {
    const previous = configuration
    configuration = { ...configuration, pluginsEnabled }
    settings.onConfigurationChanged({ session, thread, previous, next: configuration })
  }
  const turn = (): { readonly started: Promise<void>; step(): Promise<string | undefined> } => {
    const own = store('turn')
    const scope = { session, thread, turn: own, turnId: own.levelId, signal }
    return {
      started: Promise.resolve(turns.onTurnStart?.({ ...scope, phase: 'task-start' })),
      step: async () => turns.refreshCatalogForStep?.(scope),
    }
  }
  const contribute = (authChanged = false): readonly ServerContribution[] => {
    const said = servers.contribute?.({ session, thread, configuration, authChanged, signal })
    if (said === undefined || said instanceof Promise) throw new Error('it waits')
    return said
  }
  const shown = (authChanged = false): string[] =>
    contribute(authChanged).map((one) => (one.kind === 'plugin-connectors' ? one.pluginId : one.kind))
  return { start, configure, turn, contribute, shown, thread, session, lifecycle, turns, servers, registry }
}

verifies('plugin.001', () => {
  const provider = new ScriptedProvider()
  const registry = ExtensionRegistry.of([
    { id: 'plain', install: (registrar) => registrar.register('turnLifecycle', {}) },
    pluginsExtension({ id: 'without' }),
    pluginsExtension({ provider }),
  ])
  const [session, thread] = [store('session'), store('thread')]
  const configurationOf = (pluginsEnabled: boolean): ExtensionConfiguration => ({ pluginsEnabled, extensions: {} })
  const askAll = (): unknown => [
    registry
      .all('turnLifecycle')
      .map(({ contributor }) => contributor.turnStartPhase?.(thread) ?? 'before-registration'),
    registry.all('turnLifecycle').map(({ contributor }) => contributor.requiresRuntime?.(thread) ?? false),
  ]
  const early = 'before-registration'
  const none = [
    [early, early, early],
    [false, false, false],
  ]
  // Before the thread has begun, nobody needs anything.
  expect(askAll()).toEqual(none)
  for (const pluginsEnabled of [false, true, false]) {
    for (const { contributor } of registry.all('configuration'))
      contributor.onConfigurationChanged({
        session,
        thread,
        previous: configurationOf(!pluginsEnabled),
        next: configurationOf(pluginsEnabled),
      })
    expect(askAll()).toEqual(
      pluginsEnabled
        ? [
            [early, early, 'task-start'],
            [false, false, true],
          ]
        : none,
    )
  }
  expect(registry.all('servers').map(({ extension }) => extension)).toEqual(['without', 'plugins'])
})

verifies(['plugin.002', 'plugin.003'], async () => {
  const provider = new ScriptedProvider()
  const { start, configure, turn, shown } = installed({ provider, clock: new VirtualClock() }, { enabled: false })
  start()
  const failure = new Error('discovery unavailable')
  const rows: readonly (readonly [string, boolean, PluginCatalog | Error])[] = [
    ['off', false, complete(entry('one'))],
    ['on', true, complete(entry('one'))],
    ['switched off', false, complete(entry('one'))],
    ['on, failing', true, failure],
    ['failed, off', false, complete(entry('one'))],
    ['on again', true, complete(entry('two'))],
  ]
  let calls = 0
  for (const [name, enabled, reply] of rows) {
    provider.reply = reply
    configure(enabled)
    if (!enabled) expect(shown(), name).toEqual([])
    expect(provider.calls, name).toBe(calls)
    const { started, step } = turn()
    await started
    calls += enabled ? 1 : 0
    const wanted = enabled && reply !== failure ? [name === 'on' ? 'one' : 'two'] : []
    for (let look = 0; look < 2; look++) expect(shown(), name).toEqual(wanted)
    expect(await step(), name).toBe('unchanged')
    expect(provider.calls, name).toBe(calls)
    // The same settings again change nothing.
    configure(enabled)
    expect(shown(), name).toEqual(wanted)
  }
  // What settings of a projection say holds at once, whoever was not told.
  const stale = installed({ provider, clock: new VirtualClock() })
  stale.start()
  await stale.turn().started
  expect(stale.shown()).toEqual(['two'])
  const off = { pluginsEnabled: false, extensions: {} }
  const { session, thread, servers } = stale
  expect(servers.contribute?.({ session, thread, configuration: off, authChanged: false, signal })).toEqual([])
  expect(stale.shown()).toEqual([])
})

verifies('plugin.004', async () => {
  const provider = new ScriptedProvider()
  provider.reply = complete(entry('one'))
  const { start, turn, shown, servers, session, thread } = installed({ provider, clock: new VirtualClock() })
  start()
  await turn().started
  expect(shown()).toEqual(['one'])
  // By the host, before anything is contributed; the scope of the server need not be another.
  servers.onAuthChanged?.({ session, thread })
  expect([shown(), provider.calls]).toEqual([[], 1])
  // What the next turn learns is the new account's, also if the projection that was begun for the change is only now at this contributor.
  await turn().started
  expect([shown(true), shown(), provider.calls]).toEqual([['one'], ['one'], 2])
  servers.onAuthChanged?.({ session, thread })
  expect([shown(true), shown(), provider.calls]).toEqual([[], [], 2])
  // By a projection, where nobody tells it before.
  const untold = installed({ provider, clock: new VirtualClock() })
  untold.start()
  await untold.turn().started
  expect(untold.shown()).toEqual(['one'])
  expect([untold.shown(true), untold.shown(), provider.calls]).toEqual([[], [], 3])
  await untold.turn().started
  expect(untold.shown()).toEqual(['one'])
})

test('a turn that starts forgets what was accepted in it before, by a step that came first', async () => {
  const provider = new ScriptedProvider()
  const { start, session, thread, turns } = installed({ provider, clock: new VirtualClock() })
  start()
  const own = store('turn')
  const scope = { session, thread, turn: own, turnId: own.levelId, signal }
  expect(await turns.refreshCatalogForStep?.(scope)).toBe('changed')
  expect(await turns.refreshCatalogForStep?.(scope)).toBe('unchanged')
  await turns.onTurnStart?.({ ...scope, phase: 'task-start' })
  expect([await turns.refreshCatalogForStep?.(scope), provider.calls]).toEqual(['unchanged', 2])
})

test('the thread that ends shows nothing, and asks nobody', async () => {
  const provider = new ScriptedProvider()
  provider.reply = complete(entry('one'))
  const { start, turn, shown, lifecycle, session, thread, turns } = installed({ provider, clock: new VirtualClock() })
  start()
  await turn().started
  void lifecycle.onThreadStop?.({ session, thread })
  expect([shown(), turns.turnStartPhase?.(thread), turns.requiresRuntime?.(thread)]).toEqual([
    [],
    'before-registration',
    false,
  ])
  await turn().started
  expect(provider.calls).toBe(1)
})

test('the life of a thread, turn by turn', async () => {
  const resources = new TestResources()
  const provider = new ScriptedProvider()
  const clock = new VirtualClock()
  const { start, turn, shown, contribute, servers, session, thread } = installed({ provider, clock }, { resources })
  start()
  const remote = entry('plugin_remote', { displayName: 'Cloud Demo' })
  const gmail = entry('plugin_gmail', { displayName: 'Gmail Demo', connectorIds: ['gmail'] })
  const failure = new Error('unavailable')
  const warned = (catalog: PluginCatalog): PluginCatalog => ({
    ...catalog,
    warnings: ['resource listing was truncated'],
  })
  const signIn = (): void => {
    resources.signIn()
    servers.onAuthChanged?.({ session, thread })
    expect(shown(true)).toEqual([])
  }
  interface Row {
    readonly row: string
    readonly before?: () => void
    readonly reply: PluginCatalog | Error
    readonly shown: readonly string[]
    readonly callsTool?: string
  }
  const rows: readonly Row[] = [
    { row: 'initial-partial', reply: partial(gmail), shown: ['plugin_gmail'] },
    { row: 'partial-replaces-partial', reply: partial(remote), shown: ['plugin_remote'], callsTool: 'Cloud Demo' },
    { row: 'partial-empty-replaces-partial', reply: warned(partial()), shown: [] },
    { row: 'empty', reply: complete(), shown: [], callsTool: 'calendar' },
    { row: 'partial-after-complete-empty', reply: partial(gmail), shown: [] },
    { row: 'discovered', reply: complete(remote), shown: ['plugin_remote'], callsTool: 'Cloud Demo' },
    { row: 'partial-refresh', reply: partial(gmail), shown: ['plugin_remote'], callsTool: 'Cloud Demo' },
    { row: 'partial-empty-refresh', reply: warned(partial()), shown: [] },
    { row: 'same-account-failure', reply: failure, shown: [] },
    {
      row: 'complete-with-warning-disables-plugin',
      before: () => resources.reconnect(),
      reply: warned(complete({ ...remote, enabled: false })),
      shown: [],
    },
    { row: 'partial-after-disable', reply: partial(gmail), shown: [] },
    { row: 're-enabled', reply: complete(remote), shown: ['plugin_remote'] },
    { row: 'removed', reply: complete(), shown: [] },
    { row: 'restored', reply: complete(remote), shown: ['plugin_remote'] },
    { row: 'auth-changed-failure', before: signIn, reply: failure, shown: [] },
    {
      row: 'new-account-partial',
      before: () => resources.reconnect(),
      reply: partial(gmail),
      shown: ['plugin_gmail'],
      callsTool: 'Gmail Demo',
    },
    { row: 'new-account-discovered', reply: complete(gmail), shown: ['plugin_gmail'], callsTool: 'Gmail Demo' },
  ]
  for (const { row, before, reply, shown: wanted, callsTool } of rows) {
    const { calls } = provider
    before?.()
    expect(provider.calls, row).toBe(calls)
    provider.reply = reply
    const { started, step } = turn()
    await started
    for (let steps = callsTool === undefined ? 1 : 2; steps > 0; steps--) {
      expect(await step(), row).toBe('unchanged')
      expect(shown(), row).toEqual(wanted)
    }
    expect(provider.calls, row).toBe(calls + 1)
    if (wanted.length > 0 && callsTool !== undefined)
      expect(contribute()[0], row).toMatchObject({ pluginName: callsTool, pluginId: wanted[0] })
  }
  // in-flight-auth-change
  const { calls } = provider
  provider.reply = complete(remote)
  const paused = provider.pause()
  const { started, step } = turn()
  await paused
  signIn()
  provider.reply = failure
  provider.resume()
  await started
  expect([shown(), provider.calls]).toEqual([[], calls + 1])
  expect(await step()).toBe('unchanged')
  expect([shown(), provider.calls, clock.timers]).toEqual([[], calls + 2, 0])
})
