// Threads: what they share, what each of them brings, and what extensions hear of them.
import type { ServerDefinition } from '@convoke/host'
import { type ServerContribution, StoreKey, storeEntry } from '@convoke/host/extension'
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { scripted, seenBy, textIn } from './support.ts'
import { gate, hostWith, stepTool, TestAccount } from './turn-support.ts'

verifies('turn.015', async () => {
  const brings = new StoreKey<readonly ServerContribution[]>('brings')
  const { host } = await hostWith([scripted('all', { tools: 1 })], {
    servers: { contribute: ({ thread }) => thread.get(brings) ?? [] },
  })
  await using _ = host
  const own = scripted('own', { tools: 1 })
  const shared = scripted('shared', { tools: 1 })
  const threadOf = (...definitions: ServerDefinition[]) =>
    host.thread({
      initial: [
        storeEntry(
          brings,
          definitions.map((definition) => ({ kind: 'set', definition })),
        ),
      ],
    })
  const one = await threadOf(own, shared)
  const two = await threadOf(shared)
  const serversOf = async (thread: typeof one): Promise<readonly string[]> => {
    const step = await (await thread.turn({ requiredServers: host.definitions.map(({ name }) => name) })).step()
    return step.tools.map((tool) => (tool.kind === 'server' ? tool.tool.server : ''))
  }
  await one.prewarm()
  await two.prewarm()
  expect(host.definitions.map(({ name }) => name).sort()).toEqual(['all', 'own', 'shared'])
  expect(await serversOf(one)).toEqual(['all', 'own', 'shared'])
  expect(await serversOf(two)).toEqual(['all', 'shared'])
  await one.close()
  expect(host.definitions.map(({ name }) => name)).toEqual(['shared', 'all'])
  expect(await serversOf(two)).toEqual(['all', 'shared'])
  await two.close()
  expect(host.definitions.map(({ name }) => name)).toEqual(['all'])
})

verifies('turn.016', async () => {
  const told: string[] = []
  const slow = gate()
  let waits = false
  const account = new TestAccount()
  const { host } = await hostWith(
    [],
    {
      servers: {
        onAuthChanged: () => void told.push('dropped'),
        selectedPlugins: async () => {
          if (waits) await slow.opened
          return []
        },
        contribute: ({ authChanged }) => {
          told.push(`contribute ${authChanged}`)
          return []
        },
      },
    },
    { account },
  )
  await using _ = host
  const thread = await host.thread()
  await thread.prewarm()
  waits = true
  account.signIn('b')
  // Whoever is slow cannot keep the old account's things visible.
  expect(told).toEqual(['contribute false', 'dropped'])
  slow.open()
  await expect.poll(() => told).toEqual(['contribute false', 'dropped', 'contribute true'])
  await (await thread.turn()).step()
  expect(told).toHaveLength(3)
})

verifies(['turn.017', 'turn.018', 'turn.024'], async () => {
  const told: unknown[] = []
  const { host, events } = await hostWith([], {
    threadLifecycle: {
      onThreadStart: ({ thread, configuration, warn, metrics }) => {
        told.push(['start', thread.levelId, configuration.pluginsEnabled])
        metrics.count('starts')
        for (const text of ['careful', 'careful', 'really']) warn(text)
      },
      onThreadResume: ({ thread }) => void told.push(['resume', thread.levelId]),
      onThreadIdle: ({ cause }) => void told.push(['idle', cause]),
      onThreadStop: ({ thread }) => void told.push(['stop', thread.levelId]),
    },
    configuration: {
      onConfigurationChanged: ({ previous, next }) =>
        void told.push([previous.pluginsEnabled, next.pluginsEnabled, next.extensions]),
    },
  })
  await using _ = host
  const thread = await host.thread({ id: 't', isResumed: true, configuration: { extensions: { test: 1 } } })
  await expect(host.thread({ id: 't' })).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  thread.configure({ pluginsEnabled: false })
  expect(told.at(-1)).toEqual([true, false, { test: 1 }])
  await (await thread.turn()).complete()
  await (await thread.turn()).abort()
  await (await thread.turn()).fail(new Error('x'))
  await thread.close()
  await thread.close()
  expect(told).toEqual([
    ['start', 't', true],
    ['resume', 't'],
    [true, false, { test: 1 }],
    ['idle', 'turn-ended'],
    ['idle', 'turn-aborted'],
    ['idle', 'turn-failed'],
    ['stop', 't'],
  ])
  await expect(thread.turn()).rejects.toMatchObject({ code: 'HOST_CLOSED' })
  expect(host.extensionCounts).toEqual({ starts: 1 })
  expect(events.filter(({ kind }) => kind === 'thread.warned')).toEqual([
    { kind: 'thread.warned', thread: 't', text: 'careful' },
    { kind: 'thread.warned', thread: 't', text: 'really' },
  ])
  // The name is free again.
  await (await host.thread({ id: 't' })).close()
})

verifies('turn.021', async () => {
  let loads = 0
  const plugin = (pluginId: string, connectorIds: string[] = []) => ({
    pluginId,
    rootId: `${pluginId}-root`,
    load: async () => {
      loads += 1
      if (pluginId === 'broken') throw new Error('no manifest')
      return {
        displayName: pluginId.toUpperCase(),
        connectorIds,
        definitions: [scripted(`${pluginId}-server`, { tools: 1 })],
      }
    },
  })
  const { host, events } = await hostWith([], {
    servers: {
      selectedPlugins: () => [plugin('one', ['c1']), plugin('broken'), plugin('two')],
      contribute: () => [{ kind: 'plugin-connectors', pluginId: 'hosted', pluginName: 'Hosted', connectorIds: ['c1'] }],
    },
  })
  await using _ = host
  const thread = await host.thread()
  const turn = await thread.turn({ requiredPlugins: ['one', 'two'] })
  const step = await turn.step()
  expect(step.plugins).toEqual({
    plugins: [
      { pluginId: 'one', rootId: 'one-root' },
      { pluginId: 'broken', rootId: 'broken-root' },
      { pluginId: 'two', rootId: 'two-root' },
      { pluginId: 'hosted' },
    ],
    disabledRoots: [],
  })
  expect(step.tools.map((tool) => tool.kind === 'server' && tool.tool.plugins)).toEqual([['ONE'], ['TWO']])
  expect(events).toContainEqual({
    kind: 'extension.failed',
    extension: 'test',
    contributor: 'servers',
    callback: 'load',
    message: 'no manifest',
  })
  expect(loads).toBe(3)
  thread.configure({ pluginsEnabled: false })
  const without = await turn.step()
  expect([without.tools, without.plugins, loads]).toEqual([
    [],
    { plugins: [], disabledRoots: ['one-root', 'broken-root', 'two-root'] },
    3,
  ])
})

verifies('turn.023', async () => {
  const stopped: string[] = []
  const { host } = await hostWith([scripted('one')], {
    threadLifecycle: { onThreadStop: ({ thread }) => void stopped.push(thread.levelId) },
  })
  const thread = await host.thread({ id: 't', approve: async () => ({ kind: 'approved' }) })
  const turn = await thread.turn({ requiredServers: ['one'] })
  const step = await turn.step()
  const silent = step.call(stepTool(step, 'one/silent'), {})
  await expect.poll(async () => (await seenBy(step.binding, 'one')).calls['silent']).toBe(1)
  await host.close()
  expect(await silent).toEqual({ kind: 'cancelled' })
  expect(stopped).toEqual(['t'])
  await expect(thread.turn()).rejects.toMatchObject({ code: 'HOST_CLOSED' })
  await expect(host.thread()).rejects.toMatchObject({ code: 'HOST_CLOSED' })
})

test('a thread ends with the signal that it was given', async () => {
  const { host } = await hostWith([scripted('one', { tools: 1 })], {})
  await using _ = host
  await host.whenSettled()
  const abort = new AbortController()
  const thread = await host.thread({ signal: abort.signal, approve: async () => ({ kind: 'approved' }) })
  const turn = await thread.turn()
  const step = await turn.step()
  const outcome = await step.call(stepTool(step, 'one/echo'), { text: 'hello' })
  expect(outcome.kind === 'called' && textIn(outcome.outcome)).toContain('hello')
  abort.abort()
  await expect.poll(() => turn.signal.aborted).toBe(true)
})
