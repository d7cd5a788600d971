// Turns: their phases, their interruptions, their ends, and how the servers are brought up to date for them.
import type { HostEvent, ServerDefinition } from '@convoke/host'
import type { ServerContribution, TurnStartInput } from '@convoke/host/extension'
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { scripted, seenBy } from './support.ts'
import { extension, gate, hostWith, type Some } from './turn-support.ts'

const published = (events: readonly HostEvent[]): number => events.filter(({ kind }) => kind === 'set.published').length

verifies('turn.001', async () => {
  const told: string[] = []
  const slow = gate()
  const startOf = (name: string) => (input: TurnStartInput) => {
    told.push(`${name} ${input.phase} ${input.usage?.inputTokens ?? 'no usage'}`)
    return name === 'task' ? slow.opened : undefined
  }
  const { host } = await hostWith(
    [],
    [
      extension({ turnLifecycle: { turnStartPhase: () => 'task-start', onTurnStart: startOf('task') } }, 'a'),
      extension({ turnLifecycle: { onTurnStart: startOf('quick') } }, 'b'),
    ],
  )
  await using _ = host
  const thread = await host.thread()
  const usage = { inputTokens: 7, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 }
  const beginning = thread.turn({ id: 't1', usage })
  await expect.poll(() => told).toEqual(['quick before-registration 7', 'task task-start no usage'])
  slow.open()
  const turn = await beginning
  expect(turn.id).toBe('t1')
  await turn.complete()
  // Work beside regular turns refreshes nothing.
  told.length = 0
  await (await thread.turn({ kind: 'auxiliary' })).complete()
  expect(told).toEqual(['quick before-registration no usage'])
})

verifies(['turn.002', 'turn.003'], async () => {
  let contributed: readonly ServerContribution[] = []
  let needs = false
  const seen: number[] = []
  const { host, events } = await hostWith([scripted('one')], {
    servers: { contribute: () => contributed },
    turnLifecycle: {
      turnStartPhase: () => 'task-start',
      requiresRuntime: () => needs,
      onTurnStart: () => void seen.push(host.definitions.length),
    },
  })
  await using _ = host
  const thread = await host.thread()
  await thread.prewarm()
  contributed = [{ kind: 'set', definition: scripted('two') }]
  thread.configure({})
  await (await thread.turn()).complete()
  needs = true
  await (await thread.turn()).complete()
  expect(seen).toEqual([1, 2])
  await host.whenSettled()
  // Nothing is other than before.
  const before = published(events)
  const first = await (await thread.turn()).step()
  const pid = (await seenBy(first.binding, 'two')).pid
  const second = await (await thread.turn()).step()
  expect((await seenBy(second.binding, 'two')).pid).toBe(pid)
  expect(published(events)).toBe(before)
})

verifies('turn.004', async () => {
  const aborted: string[] = []
  const idle: string[] = []
  let contributed: readonly ServerContribution[] = []
  const { host } = await hostWith([], {
    servers: { contribute: () => contributed },
    threadLifecycle: { onThreadIdle: ({ cause }) => void idle.push(cause) },
    turnLifecycle: {
      turnStartPhase: () => 'task-start',
      requiresRuntime: () => true,
      onTurnStart: () => {
        // It has dropped what it contributed, and hangs.
        contributed = [{ kind: 'set', definition: scripted('late') }]
        return new Promise(() => {})
      },
      onTurnAbort: ({ reason }) => void aborted.push(reason),
    },
  })
  await using _ = host
  const thread = await host.thread()
  const abort = new AbortController()
  const beginning = thread.turn({ signal: abort.signal })
  await expect.poll(() => contributed.length).toBe(1)
  abort.abort()
  await expect(beginning).rejects.toMatchObject({ code: 'CANCELLED' })
  expect([aborted, idle]).toEqual([['interrupted'], ['turn-aborted']])
  // What it left behind is published all the same.
  await expect.poll(() => host.definitions.map(({ name }) => name)).toEqual(['late'])
})

verifies('turn.005', async () => {
  const keys: unknown[] = []
  const { host } = await hostWith([scripted('one')], {
    turnLifecycle: {
      turnStartPhase: () => 'task-start',
      requiresRuntime: () => true,
      onTurnStart: () => void keys.push(host.resources.connectionKey('one')),
    },
  })
  await using _ = host
  await host.whenSettled()
  const thread = await host.thread()
  const before = host.resources.connectionKey('one')
  await (await thread.turn()).complete()
  thread.refreshServers()
  await (await thread.turn()).complete()
  expect(keys[0]).toBe(before)
  expect(keys[1]).not.toBe(before)
})

verifies('turn.006', async () => {
  const plugin = { id: 'calendar', displayName: 'Calendar', isSelected: true }
  const slow = { initializeDelayMs: 700 }
  const { host } = await hostWith(
    [scripted('named', slow), scripted('beside', slow)],
    {
      servers: {
        selectedPlugins: () => [
          {
            pluginId: 'calendar',
            rootId: 'root',
            load: async () => ({
              displayName: 'Calendar',
              connectorIds: [],
              definitions: [scripted('bundled', slow, { plugin })],
            }),
          },
        ],
      },
    },
    { optionalStartupGraceMs: 1 },
  )
  await using _ = host
  const thread = await host.thread()
  const turn = await thread.turn({ requiredServers: ['named'], requiredPlugins: ['calendar'] })
  const step = await turn.step()
  const servers = new Set(step.tools.flatMap((tool) => (tool.kind === 'server' ? [tool.tool.server] : [])))
  expect([servers.has('named'), servers.has('bundled')]).toEqual([true, true])
})

verifies('turn.007', async () => {
  const hang = (): Promise<never> => new Promise(() => {})
  const waits: readonly [string, Some, ServerDefinition[]][] = [
    ['the start', { turnLifecycle: { turnStartPhase: () => 'task-start', onTurnStart: hang } }, []],
    ['fragments of the turn', { context: { turnContext: hang } }, []],
    ['fragments of the input', { turnInput: { turnInput: hang } }, []],
    ['catalogs', { turnLifecycle: { refreshCatalogForStep: hang } }, []],
    ['contributions', { servers: { contribute: hang } }, []],
    ['selected plugins', { servers: { selectedPlugins: hang } }, []],
    ['a plugin', { servers: { selectedPlugins: () => [{ pluginId: 'p', rootId: 'r', load: hang }] } }, []],
    ['servers', {}, [scripted('slow', { initialize: 'silent' }, { required: true })]],
    ['native tools', { tools: { tools: hang } }, []],
    ['the world', { context: { worldState: hang } }, []],
  ]
  for (const [what, contributors, definitions] of waits) {
    const { host, events } = await hostWith(definitions, contributors)
    await using _ = host
    await using thread = await host.thread()
    const abort = new AbortController()
    const stepping = thread.turn({ signal: abort.signal }).then((turn) => turn.step())
    stepping.catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 30))
    const beganAtMs = performance.now()
    abort.abort()
    await expect(stepping, what).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(performance.now() - beganAtMs, what).toBeLessThan(1_000)
    expect(
      events.filter(({ kind }) => kind === 'extension.failed'),
      what,
    ).toEqual([])
  }
})

verifies('turn.010', async () => {
  const told: string[] = []
  const slow = gate()
  const { host } = await hostWith([], {
    turnLifecycle: {
      turnStartPhase: () => 'task-start',
      onTurnStart: ({ turnId }) => {
        told.push(`start ${turnId}`)
        return turnId === 'slow' ? slow.opened : undefined
      },
      onTurnStop: ({ turnId }) => void told.push(`stop ${turnId}`),
      onTurnAbort: ({ turnId, reason }) => void told.push(`abort ${turnId}: ${reason}`),
      onTurnError: ({ turnId, error }) => void told.push(`error ${turnId}: ${String(error)}`),
    },
  })
  await using _ = host
  const thread = await host.thread()
  const first = await thread.turn({ id: 'first' })
  const beginning = thread.turn({ id: 'slow' })
  beginning.catch(() => {})
  await expect.poll(() => told.at(-1)).toBe('start slow')
  expect(first.signal.aborted).toBe(true)
  const last = await thread.turn({ id: 'last' })
  await expect(beginning).rejects.toMatchObject({ code: 'CANCELLED' })
  await last.complete()
  await last.abort()
  await (await thread.turn({ id: 'bad' })).fail('broken')
  expect(told).toEqual([
    'start first',
    'abort first: replaced',
    'start slow',
    'abort slow: replaced',
    'start last',
    'stop last',
    'start bad',
    'error bad: broken',
  ])
})

verifies('turn.019', async () => {
  let fails = true
  const twice = scripted('twice')
  const { host } = await hostWith([], {
    servers: {
      contribute: async ({ signal }) => {
        if (fails) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        return [{ kind: 'set', definition: twice }]
      },
    },
  })
  await using _ = host
  const thread = await host.thread()
  const abort = new AbortController()
  const turn = await thread.turn({ signal: abort.signal })
  const stepping = turn.step()
  stepping.catch(() => {})
  await new Promise((resolve) => setTimeout(resolve, 20))
  abort.abort()
  await expect(stepping).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(host.definitions).toEqual([])
  fails = false
  await (await thread.turn()).step()
  expect(host.definitions.map(({ name }) => name)).toEqual(['twice'])
})
