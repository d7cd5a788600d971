// Threads, turns and steps, with real servers behind them.
import { createHost, type Host, type HostEvent, type HostOptions, type ServerDefinition } from '@convoke/host'
import {
  type ContributorKind,
  type ContributorKinds,
  type Extension,
  type ServerContribution,
  StoreKey,
  storeEntry,
  type TurnStartInput,
} from '@convoke/host/extension'
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { type ConsentFacts, decideConsent } from '../src/turn/consent.ts'
import { scripted, seenBy, textIn } from './support.ts'
import { gate, stepTool, TestAccount } from './turn-support.ts'

type Some = { readonly [Kind in ContributorKind]?: ContributorKinds[Kind] }

/** An extension of these contributors. */
function extension(contributors: Some, id = 'test'): Extension {
  return {
    id,
    install(registrar) {
      for (const [kind, contributor] of Object.entries(contributors))
        registrar.register(kind as ContributorKind, contributor as never)
    },
  }
}

/** A host with these contributors, and everything that it told. */
async function hostWith(
  definitions: readonly ServerDefinition[],
  contributors: Some | readonly Extension[],
  options: Partial<HostOptions> = {},
): Promise<{ host: Host; events: HostEvent[] }> {
  const events: HostEvent[] = []
  const host = await createHost({
    ...options,
    definitions,
    extensions: Array.isArray(contributors) ? contributors : [extension(contributors as Some)],
    onEvent: (event) => events.push(event),
  })
  return { host, events }
}

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

verifies('turn.008', () => {
  const ask = { approvals: 'ask', fullAccess: false } as const
  const never = { approvals: 'never', fullAccess: false } as const
  const full = { approvals: 'never', fullAccess: true } as const
  const reads = { readOnly: true }
  const rows: readonly [string, Partial<ConsentFacts>, string][] = [
    ['approve', { mode: 'approve' }, 'allowed'],
    ['approve, destructive', { mode: 'approve', hints: { destructive: true } }, 'allowed'],
    ['prompt', { mode: 'prompt', hints: reads }, 'ask'],
    ['prompt, approved before', { mode: 'prompt', isRemembered: true }, 'ask'],
    ['writes, nothing said', { mode: 'writes' }, 'ask'],
    ['writes, reads', { mode: 'writes', hints: reads }, 'allowed'],
    ['writes, reads and destroys nothing', { mode: 'writes', hints: { destructive: false } }, 'ask'],
    ['auto, nothing said', {}, 'ask'],
    ['auto, reads', { hints: reads }, 'allowed'],
    ['auto, reads an open world', { hints: { readOnly: true, openWorld: true } }, 'allowed'],
    ['auto, reads and destroys', { hints: { readOnly: true, destructive: true } }, 'ask'],
    ['auto, destroys nothing', { hints: { destructive: false } }, 'ask'],
    ['auto, destroys nothing in a closed world', { hints: { destructive: false, openWorld: false } }, 'allowed'],
    ['auto, a closed world', { hints: { openWorld: false } }, 'ask'],
    ['approved before', { isRemembered: true }, 'allowed'],
    ['nobody may be asked', { trust: never }, 'denied'],
    ['nobody may be asked, approved before', { trust: never, isRemembered: true }, 'denied'],
    ['nobody may be asked, and it needs nothing', { trust: never, mode: 'approve' }, 'allowed'],
    ['full access', { trust: full, mode: 'prompt' }, 'allowed'],
    ['full access, and people are asked', { trust: { approvals: 'ask', fullAccess: true } }, 'ask'],
    ['servers may not ask, tools do', { trust: { approvals: { mcpElicitations: false }, fullAccess: true } }, 'ask'],
  ]
  const facts: ConsentFacts = { mode: 'auto', hints: undefined, trust: ask, isRemembered: false }
  for (const [what, more, kind] of rows) expect([what, decideConsent({ ...facts, ...more }).kind]).toEqual([what, kind])
})

verifies(['turn.009', 'turn.022'], async () => {
  const told: string[] = []
  const reviewed: string[] = []
  let asked: readonly string[] = []
  let answer: 'approved' | 'approved-for-thread' | 'denied' | 'aborted' = 'denied'
  const observer = {
    onToolStart: (input: Record<string, unknown>) => void told.push(`start ${JSON.stringify(plain(input))}`),
    onToolFinish: ({ durationMs, ...input }: { durationMs: number; [key: string]: unknown }) => {
      expect(durationMs).toBeGreaterThanOrEqual(0)
      told.push(`finish ${JSON.stringify(plain(input))}`)
    },
  }
  const plain = ({ callId, tool, server, outcome, ...rest }: Record<string, unknown>): object => {
    expect(Object.keys(rest).sort()).toEqual(['session', 'step', 'thread', 'turn'])
    return { callId, tool, server, outcome }
  }
  const { host } = await hostWith(
    [scripted('one')],
    [
      extension({ toolLifecycle: observer as never }, 'observer'),
      extension({ approvalReview: { review: ({ tool }) => void reviewed.push(tool) } }, 'has-no-opinion'),
      extension(
        {
          approvalReview: {
            review: ({ arguments: args }) => (args['text'] === 'fine' ? { kind: 'approved' } : undefined),
          },
        },
        'knows',
      ),
    ],
  )
  await using _ = host
  await host.whenSettled()
  const thread = await host.thread({
    approve: async ({ tool, arguments: args, listed }) => {
      asked = [...asked, `${tool} ${JSON.stringify(args)} ${listed?.rawName}`]
      return { kind: answer }
    },
  })
  const turn = await thread.turn()
  const step = await turn.step()
  const echo = stepTool(step, 'one/echo')
  expect(await step.call(echo, { text: 'fine' }, { callId: 'c1' })).toMatchObject({ kind: 'called' })
  expect([asked, reviewed]).toEqual([[], ['one__echo']])
  expect(await step.call(echo, { text: 'no' }, { callId: 'c2' })).toEqual({
    kind: 'blocked',
    reason: 'the call was not approved',
  })
  expect(asked).toEqual(['one__echo {"text":"no"} echo'])
  answer = 'approved'
  expect(await step.call(echo, { text: 'a' })).toMatchObject({ kind: 'called' })
  answer = 'approved-for-thread'
  expect(await step.call(echo, { text: 'b' })).toMatchObject({ kind: 'called' })
  answer = 'denied'
  expect(await step.call(echo, { text: 'c' })).toMatchObject({ kind: 'called' })
  expect(asked).toHaveLength(3)
  // It was that tool that was approved.
  expect(await step.call(stepTool(step, 'one/fail'), {}, { callId: 'c3' })).toMatchObject({ kind: 'blocked' })
  expect((await seenBy(step.binding, 'one')).calls['fail']).toBeUndefined()
  expect(told.slice(0, 3)).toEqual([
    'start {"callId":"c1","tool":"one__echo","server":"one"}',
    'finish {"callId":"c1","tool":"one__echo","server":"one","outcome":"completed"}',
    'finish {"callId":"c2","tool":"one__echo","server":"one","outcome":"blocked"}',
  ])
  expect(told.join()).not.toMatch(/fine|"no"/)
  answer = 'aborted'
  expect(await step.call(stepTool(step, 'one/fail'), {})).toEqual({ kind: 'cancelled' })
  expect(turn.signal.aborted).toBe(true)
  await expect(turn.step()).rejects.toMatchObject({ code: 'CANCELLED' })
  // Nobody to ask.
  await using silent = await host.thread()
  const alone = await (await silent.turn()).step()
  expect(await alone.call(stepTool(alone, 'one/echo'), { text: 'x' })).toEqual({
    kind: 'blocked',
    reason: 'it needs a consent, and there is nobody to ask',
  })
  // Full access, for one thread.
  await using free = await host.thread({ trust: { approvals: 'never', fullAccess: true } })
  const open = await (await free.turn()).step()
  expect(await open.call(stepTool(open, 'one/echo'), { text: 'x' })).toMatchObject({ kind: 'called' })
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

verifies(['turn.011', 'turn.014'], async () => {
  const { host } = await hostWith([scripted('one')], {})
  await using _ = host
  await host.whenSettled()
  const thread = await host.thread({ approve: async () => ({ kind: 'approved' }) })
  const turn = await thread.turn()
  const step = await turn.step()
  const { tools } = step
  const late = step.call(stepTool(step, 'one/late'), { ms: 400 })
  const next = await turn.step()
  expect(next.tools).toBe(tools)
  expect(await step.call(stepTool(step, 'one/echo'), {})).toMatchObject({ kind: 'blocked' })
  await host.configure([])
  const after = await turn.step()
  expect([after.tools, step.tools]).toEqual([[], tools])
  // What was called goes on, with the connection that it was shown with.
  expect(await late).toMatchObject({ kind: 'called', outcome: { kind: 'ok' } })
  const [first] = tools
  if (first?.kind !== 'server') throw new Error('no tool')
  expect([step.find(first.name), step.find(first.namespaced), step.find('nobody')]).toEqual([first, first, undefined])
  await turn.complete()
})

verifies('turn.012', async () => {
  let sections = [
    { id: 'time', text: 'noon' },
    { id: 'place', text: 'here' },
  ]
  const { host } = await hostWith([], { context: { worldState: () => sections } })
  await using _ = host
  const thread = await host.thread()
  const turn = await thread.turn()
  const told = async (of = turn): Promise<unknown> => (await of.step()).worldState
  expect(await told()).toEqual({ changed: sections, removed: [] })
  expect(await told()).toEqual({ changed: [], removed: [] })
  sections = [
    { id: 'time', text: 'one' },
    { id: 'weather', text: 'rain' },
  ]
  expect(await told()).toEqual({ changed: sections, removed: ['place'] })
  // The next turn goes on where this one was.
  expect(await told(await thread.turn())).toEqual({ changed: [], removed: [] })
})

verifies('turn.013', async () => {
  const tool = (name: string, text = name) => ({
    name,
    description: name,
    inputSchema: { type: 'object' },
    run: async ({ fails }: { fails?: boolean }) => {
      if (fails === true) throw new Error('it broke')
      return { text }
    },
  })
  const tools = [tool('clock'), tool('bad__name'), tool('bad name'), tool('clock', 'another')]
  const many = Array.from({ length: 200 }, (_, index) => tool(`extra${index}`))
  const { host } = await hostWith(
    [scripted('one', { tools: 1 })],
    [
      extension({ tools: { tools: () => tools as never } }, 'a'),
      extension({ tools: { tools: () => many as never } }, 'b'),
    ],
  )
  await using _ = host
  await host.whenSettled()
  const step = await (await (await host.thread()).turn()).step()
  const names = step.tools.map(({ name }) => name)
  expect(names.slice(0, 3)).toEqual(['one__echo', 'clock', 'extra0'])
  expect(names).toHaveLength(129)
  const clock = step.find('clock')
  if (clock === undefined) throw new Error('no clock')
  expect(await step.call(clock, {})).toMatchObject({ kind: 'native', text: 'clock', isError: false })
  expect(await step.call(clock, { fails: true })).toMatchObject({ kind: 'native', text: 'it broke', isError: true })
})

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

verifies('turn.025', async () => {
  const tools = [
    { name: 'shown', inputSchema: { type: 'object' } },
    { name: 'app', inputSchema: { type: 'object' }, _meta: { ui: { visibility: ['app'] } } },
  ]
  const omitted = scripted('omitted', { tools }, { omitToolsFrom: ['model'] })
  const { host } = await hostWith([scripted('one', { tools }), omitted], {})
  await using _ = host
  await host.whenSettled()
  const turn = await (await host.thread()).turn()
  const names = async (): Promise<readonly string[]> => (await turn.step()).tools.map(({ name }) => name)
  expect(await names()).toEqual(['one__shown'])
  await host.configure([{ ...omitted, omitToolsFrom: ['gateway'] }])
  await host.whenSettled()
  expect(await names()).toEqual(['omitted__shown'])
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
