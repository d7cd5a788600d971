// Calls that are pinned to what was shown: connection, listing, contract. And what of `_meta` leaves with them.
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { outgoingMeta } from '../src/base/index.ts'
import { type CatalogTool, HostError, type JsonObject, nodePlatform } from '../src/index.ts'
import {
  type ContractDifference,
  contractDifference,
  type KnownHints,
  knownHints,
  sameContract,
  type ToolContract,
} from '../src/set/contract.ts'
import { entitlementsOf, mintEntitlements } from '../src/set/entitlements.ts'
import { SessionServer } from './session-server.ts'
import { hostOf, http, scripted, seenBy, statusOf, textIn, toolOf } from './support.ts'

const prepare = (binding: Awaited<ReturnType<Awaited<ReturnType<typeof hostOf>>['host']['bind']>>, text: string) => {
  const prepared = binding.prepare(toolOf(binding, text))
  if (prepared === undefined) throw new Error(`${text} cannot be prepared`)
  return prepared
}

verifies('conn.101', async () => {
  await using server = await SessionServer.start()
  const before = http('web', server.url, { approvalMode: 'prompt', toolTotalTimeoutMs: 60_000 })
  const { host } = await hostOf([before])
  await using _ = host
  await host.whenSettled()
  const binding = await host.bind()
  const prepared = prepare(binding, 'web/echo')
  await binding[Symbol.asyncDispose]()
  // Another connection, and another policy.
  await host.configure([http('web', `${server.url}?2`, { approvalMode: 'approve', tools: { deny: ['echo'] } })])
  await host.whenSettled()
  expect(statusOf(host, 'web').state).toBe('ready')
  expect(server.count('initialize')).toBe(2)
  expect([prepared.tool.approvalMode, prepared.tool.environment]).toEqual(['prompt', 'local'])
  // The old connection is still there for it, in its own session.
  expect(textIn(await prepared.call({}))).toBe('s1')
  expect(server.count('DELETE')).toBe(0)
  await prepared[Symbol.asyncDispose]()
  while (server.count('DELETE') === 0) await new Promise((resolve) => setImmediate(resolve))
  expect(server.seen.find(({ what }) => what === 'DELETE')?.session).toBe('s1')
  expect(await prepared.call({})).toMatchObject({ kind: 'failed' })
})

verifies('conn.102', async () => {
  const hidden = { name: 'hidden', _meta: { ui: { visibility: ['app'] } } }
  const { host } = await hostOf([
    scripted('s', { tools: [hidden, { name: 'shown' }, { name: 'denied' }] }, { tools: { deny: ['denied'] } }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const tool = toolOf(binding, 's/hidden')
  expect(binding.prepare(tool)).toBeUndefined()
  expect(binding.prepare(tool, { audience: 'model' })).toBeUndefined()
  await using forHost = binding.prepare(tool, { audience: 'host' })
  expect((await forHost?.call({ text: 'x' }))?.kind).toBe('ok')
  await using shown = binding.prepare(toolOf(binding, 's/shown'))
  expect((await shown?.call({ text: 'x' }))?.kind).toBe('ok')
  // What the configuration denies is prepared for nobody, nor is what is only known from an earlier run.
  for (const other of [
    { ...tool, rawName: 'denied' },
    { ...tool, state: 'cached' } as CatalogTool,
    { ...tool, server: 'x' },
  ])
    expect(binding.prepare(other, { audience: 'host' })).toBeUndefined()
})

describe('the contract of a tool', () => {
  const tool: ToolContract = {
    rawName: 'read',
    inputSchema: { type: 'object', properties: { a: {}, b: {} } },
    outputSchema: { type: 'object' },
    annotations: { destructiveHint: false, title: 'Read' },
    meta: { own: 1 },
    parallelToolCalls: false,
  }
  const without = (key: keyof ToolContract): ToolContract => {
    const { [key]: _, ...rest } = tool
    return rest as ToolContract
  }
  const rows: readonly [string, ToolContract, ToolContract, KnownHints, ContractDifference | undefined][] = [
    ['equal', tool, { ...tool }, 'all', undefined],
    [
      'members in another order',
      tool,
      { ...tool, inputSchema: { properties: { b: {}, a: {} }, type: 'object' } },
      'all',
      undefined,
    ],
    ['the name', tool, { ...tool, rawName: 'write' }, 'all', 'its name'],
    ['the arguments', tool, { ...tool, inputSchema: { type: 'object' } }, 'all', 'its arguments'],
    ['the result', tool, { ...tool, outputSchema: { type: 'object', required: ['a'] } }, 'all', 'its result'],
    ['a result that is new', without('outputSchema'), tool, 'all', 'its result'],
    [
      'a title of the annotations',
      tool,
      { ...tool, annotations: { destructiveHint: false, title: 'X' } },
      'all',
      undefined,
    ],
    ['missing and empty annotations', without('annotations'), { ...tool, annotations: {} }, 'all', undefined],
    ['empty and missing annotations', { ...tool, annotations: {} }, without('annotations'), 'all', undefined],
    [
      'a hint where there was known to be none',
      without('annotations'),
      { ...tool, annotations: { openWorldHint: true } },
      'all',
      'its policy hints',
    ],
    [
      'the same, where only the read-only hint is unknown',
      { ...tool, annotations: {} },
      { ...tool, annotations: { idempotentHint: true } },
      'without-read-only',
      'its policy hints',
    ],
    ['destructive', tool, { ...tool, annotations: { destructiveHint: true } }, 'all', 'its policy hints'],
    ['a hint that is gone', tool, without('annotations'), 'all', 'its policy hints'],
    [
      'read-only, known',
      tool,
      { ...tool, annotations: { ...tool.annotations, readOnlyHint: true } },
      'all',
      'its policy hints',
    ],
    [
      'read-only, stripped',
      tool,
      { ...tool, annotations: { ...tool.annotations, readOnlyHint: true } },
      'without-read-only',
      undefined,
    ],
    ['all hints stripped', without('annotations'), tool, 'none', undefined],
    ['the _meta', tool, { ...tool, meta: { own: 2 } }, 'all', 'its _meta'],
    ['missing and empty _meta', without('meta'), { ...tool, meta: {} }, 'all', undefined],
    ['side by side', tool, { ...tool, parallelToolCalls: true }, 'all', 'whether calls may run side by side'],
  ]
  for (const [it, advertised, live, known, difference] of rows)
    test(it, () => {
      expect(contractDifference(advertised, live, known)).toBe(difference)
      expect(sameContract(advertised, live, known)).toBe(difference === undefined)
    })

  test('which hints are known', () => {
    expect(knownHints('live', { isHosted: true })).toBe('all')
    expect(knownHints('cached', { isHosted: true })).toBe('without-read-only')
    expect(knownHints('cached', { isHosted: false })).toBe('none')
  })
})

verifies('conn.103', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('web', server.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const cached = (more: Partial<CatalogTool> = {}): CatalogTool => ({
    ...toolOf(binding, 'web/echo'),
    state: 'cached',
    ...more,
  })
  expect(textIn(await binding.call(cached(), {}))).toBe('s1')
  // What is only shown does not matter; what a call depends on does.
  expect(textIn(await binding.call(cached({ title: 'T', description: 'D', name: 'n' }), {}))).toBe('s1')
  server.ran.length = 0
  for (const [more, difference] of [
    [{ inputSchema: { type: 'object', required: ['a'] } }, 'has changed its arguments'],
    [{ outputSchema: { type: 'object' } }, 'has changed its result'],
    [{ meta: { own: 1 } }, 'has changed its _meta'],
    [{ parallelToolCalls: true }, 'has changed whether calls may run side by side'],
    [{ rawName: 'gone' }, 'does not have it any more'],
  ] as const)
    expect(await binding.call(cached(more as Partial<CatalogTool>), {}), difference).toMatchObject({
      kind: 'failed',
      error: { code: 'TOOL_CHANGED', details: { server: 'web', difference, sent: false } },
    })
  await expect(binding.callRaw(cached({ meta: { own: 1 } }), {})).rejects.toMatchObject({ code: 'TOOL_CHANGED' })
  expect(server.ran).toEqual([])
  // A server that slept is started for it, and a limit of the caller holds for that too.
  await host.configure([http('web', server.url), scripted('slow', { initialize: 'silent' })])
  await using now = await host.bind({ grace: 'none' })
  const sleeping = { ...cached(), server: 'slow' }
  expect(await now.call(sleeping, {}, { timeoutMs: 200 })).toMatchObject({
    kind: 'failed',
    error: {
      code: 'CALL_TOTAL_TIMEOUT',
      details: { sent: false },
      message: expect.stringContaining('not ready within 200 ms'),
    },
  })
  expect(await now.call(sleeping, {}, { signal: AbortSignal.timeout(50) })).toMatchObject({ kind: 'cancelled' })
  expect(await now.call({ ...sleeping, server: 'nobody' }, {})).toMatchObject({ error: { code: 'SERVER_UNKNOWN' } })
})

verifies('conn.104', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('web', server.url), scripted('s')])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  await using prepared = prepare(binding, 's/echo')
  expect((await prepare(binding, 's/crash').call({})).kind).toBe('unknown')
  expect((await host.reconnect('s')).state).toBe('ready')
  await using fresh = await host.bind()
  expect((await seenBy(fresh, 's')).pid).toBe(statusOf(host, 's').pid)
  expect(await prepared.call({ text: 'x' })).toMatchObject({
    kind: 'failed',
    error: { code: 'CONNECTION_LOST', details: { sent: false } },
  })
  expect((await seenBy(fresh, 's')).calls['echo']).toBeUndefined()
})

verifies('conn.105', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('web', server.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  await using prepared = prepare(binding, 'web/echo')
  let prepares = 0
  const run = () =>
    prepared.run(async () => {
      prepares += 1
      return { args: {} }
    })
  // Listed anew without changes to it.
  server.tools = ['echo', 'more']
  server.forget()
  await prepare(binding, 'web/hold')
    .call({})
    .catch(() => {})
  expect((await run()).kind).toBe('ok')
  server.schema = { type: 'object', required: ['path'] }
  server.forget()
  expect(await prepared.call({})).toMatchObject({ error: { code: 'CATALOG_CHANGED' } })
  server.ran.length = 0
  expect(await run()).toMatchObject({
    kind: 'failed',
    error: { code: 'CATALOG_CHANGED', details: { server: 'web', sent: false } },
  })
  expect([prepares, server.ran]).toEqual([1, []])
})

test('a preparation runs before the limits begin, and what it fails with is the outcome', async () => {
  const { host } = await hostOf([scripted('s', {}, { toolTotalTimeoutMs: 400 })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  await using prepared = prepare(binding, 's/late')
  const slowly = async (): Promise<{ args: JsonObject }> => {
    await new Promise((resolve) => setTimeout(resolve, 500))
    return { args: { ms: 50, text: 'fine' } }
  }
  expect(textIn(await prepared.run(slowly))).toBe('fine')
  const failing = (): Promise<never> => Promise.reject(new HostError('ARGUMENTS_INVALID', 'no such file'))
  expect(await prepared.run(failing)).toMatchObject({ kind: 'failed', error: { message: 'no such file' } })
  expect(await prepared.run(async () => ({ args: [] as unknown as JsonObject }))).toMatchObject({
    error: { code: 'ARGUMENTS_INVALID' },
  })
})

verifies('conn.099', async () => {
  const rows: readonly [number, number | undefined, number][] = [
    [300, undefined, 300],
    [300, 60_000, 300],
    [60_000, 300, 300],
    [350, 350, 350],
  ]
  for (const [toolTotalTimeoutMs, timeoutMs, limitMs] of rows) {
    const { host } = await hostOf([scripted('s', {}, { toolTotalTimeoutMs })])
    await using _ = host
    await host.whenSettled()
    const options = timeoutMs === undefined ? {} : { timeoutMs }
    expect(await host.callTool({ server: 's', tool: 'silent', ...options })).toMatchObject({
      kind: 'failed',
      error: { code: 'CALL_TOTAL_TIMEOUT', message: expect.stringContaining(`within ${limitMs} ms in all`) },
    })
  }
})

describe('what of a caller leaves with a call', () => {
  const family = [
    'threadId',
    'thread_id',
    'Thread-Id',
    'session_id',
    'conversationId',
    'turn_id',
    'installation_id',
    'workspaceId',
    'window_id',
    'requestKind',
    'compaction',
    'turn_started_at',
    'turnStartTime',
    'forked_from_thread_id',
    'parentThreadId',
    'subagent_kind',
    'threadSource',
    'sandbox',
    'workspaces',
    'pluginId',
    'plugin_name',
    'connector_id',
    'connectorName',
    'link_id',
    'templateId',
    'template_name',
    'connected_account_email',
    'resourceUri',
    'resource_uri',
    'openai/x',
    'x-openai-x',
    '_openai_x',
    'codex/x',
    'X-Codex-x',
    '_codex_x',
    'codex_x',
    'x-convoke-x',
    '_convoke_x',
    'convoke_x',
  ]
  const nobodys = [
    'convoke/entitlements',
    'Convoke/x',
    'openai/entitlementContext',
    'OPENAI/EntitlementContext',
    'progressToken',
  ]
  const own = ['own', 'com.example/x', 'threads', 'traceparent', 'opencodex/x', 'session']

  test('only a server of the family gets what a host knows, and nobody what only the host may say', () => {
    for (const key of family) {
      expect(outgoingMeta({ [key]: 1, own: 2 }, { passesMeta: false }), key).toEqual({ own: 2 })
      expect(outgoingMeta({ [key]: 1 }, { passesMeta: true }), key).toEqual({ [key]: 1 })
    }
    for (const key of nobodys)
      for (const passesMeta of [true, false]) expect(outgoingMeta({ [key]: 1 }, { passesMeta }), key).toBeUndefined()
    for (const key of own) expect(outgoingMeta({ [key]: 1 }, { passesMeta: false }), key).toEqual({ [key]: 1 })
  })

  test('nothing is sent where nothing is left', () => {
    expect(outgoingMeta(undefined, { passesMeta: true })).toBeUndefined()
    expect(outgoingMeta({}, { passesMeta: true })).toBeUndefined()
    const meta = { own: 1 }
    expect(outgoingMeta(meta, { passesMeta: false })).toBe(meta)
  })
})

verifies('conn.100', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('plain', server.url), http('family', `${server.url}?2`, { hosted: true })])
  await using _ = host
  await host.whenSettled()
  const meta = {
    'openai/entitlementContext': 'forged',
    'convoke/entitlements': { status: 'granted' },
    threadId: 't',
    own: 1,
  }
  await using binding = await host.bind()
  for (const name of ['plain', 'family']) {
    expect((await host.callTool({ server: name, tool: 'echo', meta })).kind).toBe('ok')
    // Also for a tool that nobody lists.
    expect((await host.callTool({ server: name, tool: 'unlisted', meta })).kind).toBe('ok')
  }
  expect((await binding.call(toolOf(binding, 'plain/echo'), {}, { meta })).kind).toBe('ok')
  const sent = server.metas.map((one) => {
    const { progressToken, ...rest } = one as JsonObject
    return [typeof progressToken, rest]
  })
  const [plain, hosted] = [{ own: 1 }, { threadId: 't', own: 1 }]
  expect(sent).toEqual([plain, plain, hosted, hosted, plain].map((one) => ['number', one]))
})

describe('entitlements', () => {
  const tool = {
    state: 'live' as const,
    origin: 'stdio',
    annotations: { readOnlyHint: true },
    meta: { 'openai/requestedEntitlements': ['trusted'] },
  }
  const definition = { environment: 'local', plugin: { id: 'p', displayName: 'P', isSelected: false } }
  const facts = { tool, definition, args: {} }

  test('only a local process of a plugin gets any, for a tool that asks, only reads and is called without arguments', () => {
    expect(entitlementsOf(facts)).toEqual(['trusted'])
    const asking = (value: unknown): object => ({ meta: { 'openai/requestedEntitlements': value } })
    const not: readonly object[] = [
      { tool: { ...tool, ...asking([]) } },
      { tool: { ...tool, ...asking(['a', 1]) } },
      { tool: { ...tool, ...asking('trusted') } },
      { tool: { ...tool, ...asking(Array(65).fill('a')) } },
      { tool: { ...tool, meta: undefined } },
      { tool: { ...tool, state: 'cached' } },
      { tool: { ...tool, origin: 'https://a.test' } },
      { tool: { ...tool, annotations: {} } },
      { tool: { ...tool, annotations: { readOnlyHint: 'true' } } },
      { definition: { environment: 'local' } },
      { definition: { ...definition, environment: 'box' } },
      { args: { a: 1 } },
    ]
    for (const more of not)
      expect(entitlementsOf({ ...facts, ...more } as typeof facts), JSON.stringify(more)).toBeUndefined()
  })

  test('any doubt certifies nothing', async () => {
    const request = { server: 's', tool: 't', entitlements: ['trusted'] }
    const account = {}
    const granted = { status: 'granted' }
    let current: object | undefined = account
    const mint = (how: () => Promise<JsonObject>, limitMs = 60_000, signal?: AbortSignal): Promise<JsonObject> => {
      current = account
      return mintEntitlements({ account: () => current, mint: how }, request, {
        platform: nodePlatform,
        limitMs,
        signal,
      })
    }
    const unknown = { status: 'unknown' }
    expect(await mint(async () => granted)).toEqual(granted)
    expect(await mint(() => Promise.reject(new Error('no')))).toEqual(unknown)
    expect(
      await mint(() => {
        throw new Error('no')
      }),
    ).toEqual(unknown)
    expect(await mint(() => new Promise(() => {}), 20)).toEqual(unknown)
    expect(await mint(() => new Promise(() => {}), 60_000, AbortSignal.timeout(20))).toEqual(unknown)
    expect(await mint(async () => 'granted' as unknown as JsonObject)).toEqual(unknown)
    expect(await mint(async () => ({ ...granted, pad: 'x'.repeat(1024 * 1024) }))).toEqual(unknown)
    expect(
      await mint(async () => {
        current = {}
        return granted
      }),
    ).toEqual(unknown)
    current = undefined
    expect(
      await mintEntitlements({ account: () => undefined, mint: async () => granted }, request, {
        platform: nodePlatform,
        limitMs: 1_000,
      }),
    ).toEqual(unknown)
  })

  test('a prepared call of a tool that asks carries them, a call by name does not', async () => {
    const asks = {
      name: 'seen',
      does: { kind: 'seen' },
      annotations: { readOnlyHint: true },
      _meta: { 'openai/requestedEntitlements': ['trusted'] },
    } as const
    const minted: unknown[] = []
    const { host } = await hostOf([scripted('s', { tools: [asks] }, { plugin: definition.plugin })], {
      entitlements: {
        account: () => definition,
        mint: async (request) => {
          minted.push(request)
          return { status: 'granted', jwt: 'x' }
        },
      },
    })
    await using _ = host
    await host.whenSettled()
    await using binding = await host.bind()
    const meta = { 'convoke/entitlements': 'forged', own: 1 }
    await using prepared = prepare(binding, 's/seen')
    const seen = JSON.parse(textIn(await prepared.call({}, { meta }))) as { meta: JsonObject }
    expect(seen.meta).toMatchObject({ own: 1, 'convoke/entitlements': { status: 'granted', jwt: 'x' } })
    expect(minted).toEqual([{ server: 's', tool: 'seen', entitlements: ['trusted'] }])
    const direct = await host.callTool({ server: 's', tool: 'seen', meta })
    expect(JSON.parse(textIn(direct)) as object).not.toHaveProperty('meta.convoke/entitlements')
    await prepared.call({ a: 1 })
    expect(minted).toHaveLength(1)
  })
})
