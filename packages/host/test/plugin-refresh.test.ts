// Refreshes of one thread: who asks, who waits, who shares, and what is refused.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import type { ExtensionStore } from '../src/extensions/index.ts'
import { HostedPlugins, PLUGIN_RESOURCES, type Refreshed } from '../src/plugins/hosted/refresh.ts'
import type { PluginCatalog } from '../src/plugins/index.ts'
import {
  complete,
  entry,
  idsOf,
  partial,
  ScriptedProvider,
  settled,
  store,
  TestResources,
  VirtualClock,
} from './plugin-support.ts'

const failure = new Error('secret of the provider')

/** One thread with plugins on, and what it was told. */
function threadOf(options: { readonly resources?: TestResources; readonly enabled?: boolean } = {}) {
  const { resources, enabled = true } = options
  const provider = new ScriptedProvider()
  const clock = new VirtualClock()
  const plugins = new HostedPlugins({ provider, appsServer: 'apps', clock })
  const [session, thread, turn, prewarm] = [store('session'), store('thread'), store('turn'), store('turn')]
  const counts: Record<string, number> = {}
  const warnings: string[] = []
  const begin = (of: ExtensionStore): void =>
    plugins.start({
      session,
      thread: of,
      configuration: { pluginsEnabled: enabled, extensions: {} },
      resources,
      metrics: {
        count: (name, by = 1) => {
          counts[name] = (counts[name] ?? 0) + by
        },
      },
      warn: (text) => warnings.push(text),
    })
  begin(thread)
  const inputOf = (of: ExtensionStore, signal: AbortSignal) => ({
    session,
    thread,
    turn: of,
    turnId: of.levelId,
    signal,
  })
  const refresh = (of = turn, signal = new AbortController().signal): Promise<Refreshed> =>
    plugins.refresh(inputOf(of, signal))
  const startTurn = (of = turn): Promise<void> => plugins.startTurn(inputOf(of, new AbortController().signal))
  const visible = (): string[] | undefined => idsOf(plugins.catalog(thread))
  return {
    provider,
    clock,
    plugins,
    session,
    thread,
    turn,
    prewarm,
    counts,
    warnings,
    begin,
    refresh,
    startTurn,
    visible,
  }
}

/** The way that all three stories begin: one asks and is paused, two wait behind it, and one of those goes away. */
async function queueOf(reply: PluginCatalog | Error) {
  const made = threadOf()
  const { provider, refresh, turn, prewarm } = made
  provider.reply = reply
  const paused = provider.pause()
  const holder = new AbortController()
  const first = refresh(turn, holder.signal)
  await paused
  const waiting = refresh(prewarm)
  const gone = new AbortController()
  const leaving = refresh(prewarm, gone.signal)
  await settled()
  gone.abort()
  await expect(leaving).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(provider.calls).toBe(1)
  provider.reply = complete()
  return { ...made, first, waiting, holder }
}

/** What holds after each of them. */
async function retainedThenCleared({
  provider,
  clock,
  session,
  refresh,
  startTurn,
  visible,
  prewarm,
}: Awaited<ReturnType<typeof queueOf>>) {
  const kept = visible()
  expect(kept).toBeDefined()
  const { calls } = provider
  // A turn that starts anew forgets what it has accepted.
  provider.reply = failure
  await startTurn(prewarm)
  expect(visible()).toEqual(kept)
  expect(await refresh(prewarm)).toBe('unchanged')
  expect([visible(), provider.calls]).toEqual([kept, calls + 1])
  session.insert(PLUGIN_RESOURCES, new TestResources())
  expect(await refresh(prewarm)).toBe('changed')
  expect(visible()).toBeUndefined()
  expect(await refresh(prewarm)).toBe('unchanged')
  expect(provider.calls).toBe(calls + 2)
  provider.reply = complete()
  clock.advance(29_999)
  expect(await refresh(prewarm)).toBe('unchanged')
  clock.advance(1)
  expect(await refresh(prewarm)).toBe('changed')
  expect([visible(), provider.calls, clock.timers]).toEqual([[], calls + 3, 0])
}

verifies(['plugin.005', 'plugin.008'], async () => {
  const queue = await queueOf(complete(entry('one')))
  const { provider, first, waiting, refresh, visible, counts, prewarm } = queue
  provider.resume()
  expect([await first, await waiting]).toEqual(['changed', 'unchanged'])
  expect([visible(), provider.calls]).toEqual([['one'], 1])
  expect(await refresh(prewarm)).toBe('unchanged')
  expect(await refresh()).toBe('unchanged')
  expect([provider.calls, counts]).toEqual([1, { 'plugins.calls': 1, 'plugins.coalesced': 1 }])
  await retainedThenCleared(queue)
})

verifies('plugin.006', async () => {
  const queue = await queueOf(failure)
  const { provider, clock, first, waiting, refresh, visible, counts, prewarm } = queue
  provider.resume()
  expect([await first, await waiting]).toEqual(['unchanged', 'unchanged'])
  expect([visible(), provider.calls]).toEqual([undefined, 1])
  expect(counts).toEqual({ 'plugins.calls': 1, 'plugins.failures': 1, 'plugins.cooldown-hits': 1 })
  clock.advance(29_999)
  expect(await refresh(prewarm)).toBe('unchanged')
  clock.advance(1)
  expect(await refresh(prewarm)).toBe('changed')
  expect([visible(), provider.calls]).toEqual([[], 2])
  expect(await refresh(prewarm)).toBe('unchanged')
  expect(provider.calls).toBe(2)
  await retainedThenCleared(queue)
})

verifies('plugin.007', async () => {
  const queue = await queueOf(complete(entry('one')))
  const { provider, first, waiting, holder, visible, counts } = queue
  holder.abort()
  await expect(first).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(await waiting).toBe('changed')
  // What the first one was told comes too late, and changes nothing.
  provider.resume()
  await settled()
  expect([visible(), provider.calls]).toEqual([[], 2])
  expect(counts).toEqual({ 'plugins.calls': 2 })
  await retainedThenCleared(queue)
})

verifies('plugin.009', async () => {
  const { provider, clock, refresh, startTurn, visible, turn, prewarm } = threadOf({ resources: new TestResources() })
  provider.reply = complete(entry('one'))
  expect(await refresh()).toBe('changed')
  provider.reply = failure
  await startTurn(turn)
  expect(await refresh(prewarm)).toBe('unchanged')
  expect([visible(), provider.calls]).toEqual([['one'], 2])
  // Failures in a row wait longer; a success forgets them.
  clock.advance(30_000)
  expect(await refresh(prewarm)).toBe('unchanged')
  clock.advance(59_999)
  await refresh(prewarm)
  expect(provider.calls).toBe(3)
  clock.advance(1)
  provider.reply = complete(entry('two'))
  expect(await refresh(prewarm)).toBe('changed')
  provider.reply = failure
  await startTurn(turn)
  clock.advance(30_000)
  await startTurn(turn)
  expect([visible(), provider.calls]).toEqual([['two'], 6])
})

verifies('plugin.010', async () => {
  const { provider, session, refresh, visible, prewarm } = threadOf()
  provider.reply = complete(entry('one'))
  expect(await refresh()).toBe('changed')
  // The same turn, and nothing has changed: nobody is asked, also where there is nobody to ask who one is.
  expect(await refresh()).toBe('unchanged')
  const resources = new TestResources()
  session.insert(PLUGIN_RESOURCES, resources)
  provider.reply = failure
  expect(await refresh()).toBe('changed')
  expect([visible(), await refresh(), provider.calls]).toEqual([undefined, 'unchanged', 2])
  // A server that goes is another account too, also where nobody speaks for it; and one that is connected anew is not, but may be asked.
  provider.reply = complete(entry('two'))
  resources.scope = undefined
  expect(await refresh(prewarm)).toBe('changed')
  resources.hasApps = false
  expect(await refresh(prewarm)).toBe('changed')
  expect([visible(), provider.calls]).toEqual([['two'], 4])
  resources.hasApps = true
  expect(visible()).toBeUndefined()
  provider.reply = failure
  expect(await refresh(prewarm)).toBe('changed')
  resources.reconnect()
  provider.reply = complete(entry('two'))
  expect(await refresh(prewarm)).toBe('changed')
  resources.reconnect()
  expect([await refresh(prewarm), visible(), provider.calls]).toEqual(['unchanged', ['two'], 6])
})

test('what a turn accepted before a failed refresh does not count after it', async () => {
  const resources = new TestResources()
  const { provider, refresh, turn, prewarm } = threadOf({ resources })
  const before = resources.scope
  await refresh(turn)
  resources.signIn()
  provider.reply = failure
  await refresh(turn)
  resources.scope = before
  provider.reply = complete()
  expect(await refresh(prewarm)).toBe('changed')
  expect([await refresh(turn), provider.calls]).toEqual(['changed', 4])
})

test('whoever waited for a refresh that came to nothing does not take the success before it', async () => {
  const { provider, refresh, startTurn, turn, prewarm } = threadOf()
  await refresh(turn)
  const paused = provider.pause()
  const abort = new AbortController()
  const holder = refresh(prewarm, abort.signal)
  await paused
  const waiting = startTurn(turn)
  abort.abort()
  await expect(holder).rejects.toMatchObject({ code: 'CANCELLED' })
  await waiting
  expect(provider.calls).toBe(3)
})

test('a provider may answer without a promise', async () => {
  const { provider, refresh, visible } = threadOf()
  provider.reply = () => complete(entry('one')) as never
  expect([await refresh(), visible()]).toEqual(['changed', ['one']])
})

test('an account that changes within a turn is asked about in its next step', async () => {
  const resources = new TestResources()
  const { provider, refresh, startTurn, visible } = threadOf({ resources })
  provider.reply = complete(entry('one'))
  await startTurn()
  resources.signIn()
  expect(visible()).toBeUndefined()
  provider.reply = complete(entry('two'))
  expect(await refresh()).toBe('changed')
  expect([await refresh(), visible(), provider.calls]).toEqual(['unchanged', ['two'], 2])
  expect(provider.queries[0]).toEqual({
    threadId: expect.any(String),
    turnId: expect.any(String),
    resources,
    appsServer: 'apps',
  })
})

verifies('plugin.016', async () => {
  const made = threadOf()
  const { provider, plugins, session, begin, refresh, visible } = made
  const other = store('thread')
  begin(other)
  const turn = store('turn')
  const inOther = (): Promise<Refreshed> =>
    plugins.refresh({ session, thread: other, turn, turnId: 'other', signal: new AbortController().signal })
  provider.reply = failure
  const paused = provider.pause()
  const first = refresh()
  await paused
  // Nobody waits for another thread, nor for its wait.
  provider.reply = complete(entry('two'))
  expect(await inOther()).toBe('changed')
  provider.resume()
  expect(await first).toBe('unchanged')
  expect([visible(), idsOf(plugins.catalog(other)), provider.calls]).toEqual([undefined, ['two'], 2])
  plugins.drop(other)
  expect(await inOther()).toBe('changed')
  expect(await refresh()).toBe('unchanged')
  expect(provider.calls).toBe(3)
  // Another extension of the same kind shares nothing either.
  const beside = new HostedPlugins({ provider, appsServer: 'apps', clock: new VirtualClock() })
  expect(beside.catalog(other)).toBeUndefined()
  expect(
    await beside.refresh({ session, thread: other, turn, turnId: 't', signal: new AbortController().signal }),
  ).toBe('unchanged')
  expect(provider.calls).toBe(3)
})

verifies('plugin.017', async () => {
  const { provider, clock, refresh, visible, turn, prewarm } = threadOf()
  await expect(refresh(turn, AbortSignal.abort())).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(provider.calls).toBe(0)
  provider.reply = complete(entry('one'))
  const paused = provider.pause()
  const abort = new AbortController()
  const first = refresh(turn, abort.signal)
  await paused
  const gone = new AbortController()
  const waiting = refresh(prewarm, gone.signal)
  const last = refresh(prewarm)
  gone.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(provider.signals[0]?.aborted).toBe(false)
  abort.abort()
  await expect(first).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(provider.signals[0]?.aborted).toBe(true)
  expect([await last, visible(), provider.calls, clock.timers]).toEqual(['changed', ['one'], 2, 0])
  // Nothing is aborted that has ended.
  expect(provider.signals[1]?.aborted).toBe(false)
})

verifies('plugin.018', async () => {
  const rows: readonly (readonly [ScriptedProvider['reply'], string])[] = [
    [failure, 'they could not be listed'],
    [
      () => {
        throw failure
      },
      'they could not be listed',
    ],
    [() => Promise.resolve({ entries: 'none' } as never), 'the answer is no catalog'],
    [() => Promise.resolve(undefined as never), 'the answer is no catalog'],
    [() => new Promise(() => {}), 'they were not listed within 10000 ms'],
  ]
  for (const [reply, why] of rows) {
    const { provider, clock, refresh, visible, warnings, counts, prewarm } = threadOf()
    provider.reply = complete(entry('one'))
    await refresh()
    provider.reply = reply
    const asked = refresh(prewarm)
    await settled()
    clock.advance(9_999)
    await settled()
    clock.advance(1)
    expect(await asked).toBe('unchanged')
    expect([visible(), warnings, counts['plugins.failures']], why).toEqual([
      ['one'],
      [`Plugins of server "apps": ${why}`],
      1,
    ])
    expect(await refresh(prewarm)).toBe('unchanged')
    expect([provider.calls, clock.timers]).toEqual([2, 0])
    clock.advance(30_000)
    provider.reply = complete()
    expect(await refresh(prewarm)).toBe('changed')
  }
  // It hears that nobody waits any more.
  const { provider, clock, refresh } = threadOf()
  provider.reply = () => new Promise(() => {})
  const asked = refresh()
  await settled()
  clock.advance(9_999)
  expect(provider.signals[0]?.aborted).toBe(false)
  clock.advance(1)
  expect(provider.signals[0]?.aborted).toBe(true)
  await asked
})

verifies('plugin.019', async () => {
  for (const reply of [complete(entry('one')), failure]) {
    const { provider, clock, plugins, thread, refresh, visible, warnings, prewarm } = threadOf()
    provider.reply = reply
    const paused = provider.pause()
    const asked = refresh()
    await paused
    const waiting = refresh(prewarm)
    plugins.stop(thread)
    expect(provider.signals[0]?.aborted).toBe(true)
    expect([await asked, await waiting]).toEqual(['unchanged', 'unchanged'])
    provider.resume()
    await settled()
    expect([visible(), warnings, provider.calls, clock.timers]).toEqual([undefined, [], 1, 0])
    expect(await refresh()).toBe('unchanged')
    expect(provider.calls).toBe(1)
  }
})

verifies('plugin.022', async () => {
  const changes = {
    account: ({ resources }: { resources: TestResources }) => resources.signIn(),
    dropped: ({ plugins, thread }: ReturnType<typeof threadOf>) => plugins.drop(thread),
    'off and on': ({ plugins, thread }: ReturnType<typeof threadOf>) => {
      plugins.configure(thread, false)
      plugins.configure(thread, true)
    },
  }
  for (const [name, change] of Object.entries(changes))
    for (const late of [complete(entry('one')), failure]) {
      const resources = new TestResources()
      const made = threadOf({ resources })
      const { provider, refresh, visible, counts, warnings } = made
      provider.reply = late
      const paused = provider.pause()
      const asked = refresh()
      await paused
      change({ ...made, resources })
      provider.reply = complete(entry('two'))
      provider.resume()
      expect([await asked, visible(), counts['plugins.refused-late'], warnings], name).toEqual([
        'unchanged',
        undefined,
        1,
        [],
      ])
      // Nothing was accepted, and there is no wait: the next step asks.
      expect([await refresh(), visible(), provider.calls], name).toEqual(['changed', ['two'], 2])
    }
  const { provider, plugins, thread, refresh, visible } = threadOf()
  const paused = provider.pause()
  const asked = refresh()
  await paused
  plugins.configure(thread, false)
  provider.resume()
  expect([await asked, visible(), await refresh(), provider.calls]).toEqual(['unchanged', undefined, 'unchanged', 1])
})

verifies('plugin.023', async () => {
  const { provider, clock, refresh, startTurn, warnings, counts, turn } = threadOf()
  provider.reply = { ...complete(entry('one')), warnings: ['listing was cut', 'listing was cut', 'b\n\u200b\u0007c'] }
  await startTurn(turn)
  await startTurn(turn)
  provider.reply = { ...partial(entry('two')), warnings: ['listing was cut', 'third'] }
  await startTurn(turn)
  provider.reply = failure
  await startTurn(turn)
  await startTurn(turn)
  clock.advance(30_000)
  await startTurn(turn)
  expect(warnings).toEqual(
    ['listing was cut', 'b c', 'third', 'they could not be listed'].map((text) => `Plugins of server "apps": ${text}`),
  )
  expect(JSON.stringify(warnings)).not.toContain('secret')
  expect(counts).toEqual({
    'plugins.calls': 5,
    'plugins.partial-kept': 1,
    'plugins.failures': 2,
    'plugins.cooldown-hits': 1,
  })
  expect(await refresh()).toBe('unchanged')
})

test('only a thread that has begun, has plugins on and a provider asks', async () => {
  const off = threadOf({ enabled: false })
  expect([await off.refresh(), off.provider.calls]).toEqual(['unchanged', 0])
  const none = new HostedPlugins({ provider: undefined, appsServer: 'apps', clock: new VirtualClock() })
  const thread = store('thread')
  none.configure(thread, true)
  const input = {
    session: store('session'),
    thread,
    turn: store('turn'),
    turnId: 't',
    signal: new AbortController().signal,
  }
  expect([await none.refresh(input), none.asks(thread), none.catalog(thread)]).toEqual(['unchanged', false, undefined])
  const provider = new ScriptedProvider()
  const unknown = new HostedPlugins({ provider, appsServer: 'apps', clock: new VirtualClock() })
  expect([await unknown.refresh(input), provider.calls]).toEqual(['unchanged', 0])
  // Settings may come before the thread has begun.
  unknown.configure(thread, true)
  expect([unknown.asks(thread), await unknown.refresh(input), provider.calls]).toEqual([true, 'changed', 1])
})
