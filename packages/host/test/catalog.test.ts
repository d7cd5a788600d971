// What servers offer, on real servers: listings, bad tools, changes, resources and prompts.
import type { HostEvent } from '@convoke/host'
import { everythingStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { startRawHttp } from './raw-http.ts'
import { callTool, eventOf, hostOf, http, scripted, seenBy, statusOf, stdio, textIn, toolOf } from './support.ts'

const changesIn = (events: readonly HostEvent[], server: string): HostEvent[] =>
  events.filter((event) => event.kind === 'tool-catalog.changed' && event.server === server)

verifies('catalog.006', async () => {
  const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e'
  const hostile = scripted(uuid, { tools: 'hostile-names' })
  const names = async (definitions: readonly (typeof hostile)[]): Promise<Map<string, string>> => {
    const { host } = await hostOf(definitions)
    await using _ = host
    await host.whenSettled()
    await using binding = await host.bind()
    for (const tool of binding.tools) {
      expect(tool.name).toMatch(/^[A-Za-z0-9_-]{1,48}$/)
      if (tool.server === uuid) expect(textIn(await binding.call(tool, {}))).toBe(tool.rawName)
    }
    expect(new Set(binding.tools.map(({ name }) => name)).size).toBe(binding.tools.length)
    return new Map(binding.tools.filter(({ server }) => server === uuid).map(({ rawName, name }) => [rawName, name]))
  }
  const alone = await names([hostile])
  expect(alone.size).toBe(19) // 21 listed: one has no name, one comes twice
  // The same after a restart, with other servers around, in another order.
  expect(await names([scripted('zz'), hostile, scripted('aa')])).toEqual(alone)
})

verifies('catalog.011', async () => {
  const { host } = await hostOf([
    scripted('s', {
      tools: [
        { name: 'shown', _meta: { ui: { visibility: ['model', 'app'] } } },
        { name: 'hidden', _meta: { ui: { visibility: ['app'] } } },
      ],
    }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(binding.tools.map(({ rawName, visibleToModel }) => [rawName, visibleToModel])).toEqual([
    ['hidden', false],
    ['shown', true],
  ])
  expect(textIn(await callTool(binding, 's/hidden', { text: 'called' }))).toBe('called')
})

verifies('catalog.012', async () => {
  const { host } = await hostOf([
    scripted('zoo', { tools: 'schema-zoo' }),
    scripted('names', { tools: 'hostile-names' }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const notes = (server: string): string[] =>
    binding.notes.filter((note) => note.server === server).map(({ item, kind, reason }) => `${item} ${kind}: ${reason}`)
  expect(notes('zoo')).toEqual([
    'schema_missing rejected: no inputSchema',
    'schema_null rejected: no inputSchema',
    'schema_array rejected: inputSchema is not an object schema',
  ])
  expect(notes('names')).toContain('? rejected: no name')
  expect(notes('names')).toContain('twice rejected: a second tool of the same name; the first one is kept')
  const good = binding.tools.filter(({ server }) => server === 'zoo')
  expect(good.map(({ rawName }) => rawName)).toHaveLength(11)
  // A promised structure that does not come, and a schema that cannot be used, fail no call.
  for (const tool of good) expect((await binding.call(tool, { text: 'x' })).kind).toBe('ok')
})

verifies('catalog.013', async () => {
  const { host } = await hostOf([
    scripted('pages', { tools: 950, pageItems: 100 }),
    scripted('loops', { listing: 'same-cursor' }),
    scripted('endless', { listing: 'endless' }),
    scripted('many', { tools: 2_049 }),
    scripted('fails', { listing: 'error' }),
  ])
  await using _ = host
  await host.whenSettled()
  expect(host.statuses.map(({ name, state, toolCount, reason }) => [name, state, toolCount, reason?.code])).toEqual([
    ['pages', 'ready', 950, undefined],
    ['loops', 'failed', undefined, 'LISTING_FAILED'],
    ['endless', 'failed', undefined, 'LISTING_FAILED'],
    ['many', 'failed', undefined, 'LISTING_FAILED'],
    ['fails', 'failed', undefined, 'SERVER_ERROR'],
  ])
  const why = (name: string): string => statusOf(host, name).reason?.message ?? ''
  expect(why('loops')).toContain('the same cursor twice')
  expect(why('endless')).toContain('more than 100 pages')
  expect(why('many')).toContain('more than 2048 items')
})

verifies('catalog.014', async () => {
  // A server of resources only, that has never heard of tools.
  await using server = await startRawHttp({}, { resources: {} })
  const { host } = await hostOf([http('resources-only', server.url)])
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'resources-only')).toMatchObject({ state: 'ready', toolCount: 0 })
})

verifies(['catalog.020', 'catalog.023'], async () => {
  const { host, events } = await hostOf([
    scripted('s', {
      tools: [
        { name: 'grow', does: { kind: 'list-changed', what: 'tools', count: 1, everyMs: 0, adds: 'new' } },
        { name: 'cry', does: { kind: 'list-changed', what: 'tools', count: 3, everyMs: 0 } },
        { name: 'seen', does: { kind: 'seen' } },
      ],
    }),
  ])
  await using _ = host
  await host.whenSettled()
  await using before = await host.bind()
  // A call that was prepared on an older listing is not sent: each look takes a view of its own.
  const listings = async (): Promise<number> => {
    await using now = await host.bind()
    return (await seenBy(now, 's')).requests.filter((one) => one === 'tools/list').length
  }
  const changed = eventOf(host, 'tool-catalog.changed')
  await callTool(before, 's/grow')
  const { revision } = await changed
  await using after = await host.bind()
  expect(after.tools.map(({ rawName }) => rawName)).toEqual(['cry', 'grow', 'new_1_1', 'seen'])
  expect(before.tools.map(({ rawName }) => rawName)).toEqual(['cry', 'grow', 'seen'])
  expect(after.revision).not.toBe(before.revision)
  expect(textIn(await callTool(after, 's/new_1_1', { text: 'new' }))).toBe('new')
  expect(before.tool('s__new_1_1')).toBeUndefined()
  // Notices without a change are answered by one listing and told to nobody.
  const asked = await listings()
  await callTool(after, 's/cry')
  await expect.poll(listings, { interval: 50, timeout: 10_000 }).toBe(asked + 1)
  await using same = await host.bind()
  expect([same.revision, same.tools]).toEqual([after.revision, after.tools])
  expect(changesIn(events, 's')).toEqual([{ kind: 'tool-catalog.changed', server: 's', revision }])
})

test('a list that changes while it is listed for the first time is listed again', async () => {
  let listings = 0
  const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } })
  const notice = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
  await using server = await startRawHttp({
    'tools/list': () => {
      listings += 1
      return listings === 1
        ? { before: [notice], result: { tools: [tool('old')] } }
        : { result: { tools: [tool('old'), tool('new')] } }
    },
  })
  const { host } = await hostOf([http('s', server.url)])
  await using _ = host
  const changed = eventOf(host, 'tool-catalog.changed')
  await host.whenSettled()
  await changed
  await using binding = await host.bind()
  expect(binding.tools.map(({ rawName }) => rawName)).toEqual(['new', 'old'])
})

test('whoever stops waiting for a listing is let go, and the listing serves the others', async () => {
  const { host } = await hostOf([scripted('s')])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const abort = new AbortController()
  const [gone, stays] = [binding.resources({ signal: abort.signal }), binding.resources()]
  abort.abort()
  await expect(gone).rejects.toMatchObject({ code: 'CANCELLED' })
  expect((await stays).items).toHaveLength(2)
  expect((await seenBy(binding, 's')).requests.filter((one) => one === 'resources/list')).toHaveLength(1)
})

verifies('catalog.021', async () => {
  const { host, events } = await hostOf([scripted('s', { listDelayMs: 100 })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  // 40 notices in half a second: a handful of listings at most, and the last state is seen.
  await callTool(binding, 's/change', { count: 40, everyMs: 10 })
  const all = (): number => changesIn(events, 's').length
  await expect
    .poll(
      async () => {
        await using now = await host.bind()
        return now.tools.filter(({ rawName }) => rawName.startsWith('added_')).length
      },
      { timeout: 10_000 },
    )
    .toBe(40)
  expect(all()).toBeLessThanOrEqual(3)
  await using last = await host.bind()
  const { requests } = await seenBy(last, 's')
  expect(requests.filter((one) => one === 'tools/list').length).toBeLessThanOrEqual(5)
})

verifies('catalog.022', async () => {
  const { host } = await hostOf([
    scripted('s', {
      tools: [
        { name: 'cry', does: { kind: 'list-changed', what: 'tools', count: 400, everyMs: 20 } },
        { name: 'seen', does: { kind: 'seen' } },
        { name: 'echo' },
      ],
    }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  // A notice right after each listing, until the breaker speaks.
  const storm = callTool(binding, 's/cry')
  await expect.poll(() => statusOf(host, 's').reason?.code, { timeout: 20_000 }).toBe('CATALOG_STORM')
  expect(statusOf(host, 's')).toMatchObject({
    state: 'ready',
    reason: { message: expect.stringMatching(/^Server "s" said 12 times within a minute that its tools changed/) },
  })
  const { requests } = await seenBy(binding, 's')
  expect(requests.filter((one) => one === 'tools/list')).toHaveLength(13)
  await storm
  expect(textIn(await callTool(binding, 's/echo', { text: 'alive' }))).toBe('alive')
})

verifies('catalog.024', async () => {
  await using web = await startScriptedHttp({ era: 'modern' })
  const { host } = await hostOf([scripted('pipe', { era: 'modern' }), http('web', web.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const listening = async (server: string): Promise<boolean> =>
    (await seenBy(binding, server)).requests.includes('subscriptions/listen')
  for (const server of ['pipe', 'web']) {
    await expect.poll(() => listening(server), { timeout: 10_000 }).toBe(true)
    const changed = eventOf(host, 'tool-catalog.changed', (event) => event.server === server)
    await callTool(binding, `${server}/change`)
    await changed
    await using after = await host.bind()
    expect(after.resolveTool(`${server}/added_1_1`).kind).toBe('found')
  }
  const quiet = (await hostOf([scripted('pipe', { era: 'modern' })], { watch: 'none' })).host
  await using _quiet = quiet
  await quiet.whenSettled()
  await using unwatched = await quiet.bind()
  expect((await seenBy(unwatched, 'pipe')).requests).not.toContain('subscriptions/listen')
})

verifies('catalog.025', async () => {
  const revisionOf = async (tools: number): Promise<string> => {
    const { host } = await hostOf([scripted('s', { tools }), scripted('t')])
    await using _ = host
    await host.whenSettled()
    await using binding = await host.bind()
    return binding.revision
  }
  const [first, again, other] = [await revisionOf(20), await revisionOf(20), await revisionOf(21)]
  expect(first).toBe(again)
  expect(first).not.toBe(other)
})

verifies(['catalog.030', 'catalog.031', 'catalog.032'], async () => {
  const { host } = await hostOf([
    scripted('one', { name: 'one' }),
    scripted('two', { name: 'two' }),
    stdio('everything', everythingStdio()),
    scripted('plain', { capabilities: { tools: {} } }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const { items, failures } = await binding.resources()
  expect(failures).toEqual([])
  expect(
    items.filter(({ uri }) => uri === 'scripted://one').map(({ server, definition }) => [server, definition['_meta']]),
  ).toEqual([
    ['one', { 'convoke/server': 'one' }],
    ['two', { 'convoke/server': 'two' }],
  ])
  expect(items.some(({ server }) => server === 'everything')).toBe(true)
  expect((await binding.resources({ servers: ['two'] })).items.map(({ server }) => server)).toEqual(['two', 'two'])
  await expect(binding.readResource('scripted://one')).rejects.toMatchObject({
    code: 'RESOURCE_AMBIGUOUS',
    message: expect.stringContaining('one, two'),
    details: { servers: ['one', 'two'] },
  })
  for (const options of [{ server: 'two' }, { meta: { 'convoke/server': 'two' } }])
    expect(await binding.readResource('scripted://one', options)).toMatchObject({
      contents: [{ uri: 'scripted://one' }],
    })
  expect((await seenBy(binding, 'two')).requests.filter((one) => one === 'resources/read')).toHaveLength(2)
  expect((await seenBy(binding, 'one')).requests).not.toContain('resources/read')
  // Only its template says whose this is.
  const templates = await binding.resourceTemplates()
  expect(templates.items.map(({ uriTemplate }) => uriTemplate)).toContain('demo://resource/dynamic/text/{resourceId}')
  expect(await binding.readResource('demo://resource/dynamic/text/3')).toMatchObject({
    contents: [{ uri: 'demo://resource/dynamic/text/3' }],
  })
  await expect(binding.readResource('scripted://item/9')).rejects.toMatchObject({ code: 'RESOURCE_AMBIGUOUS' })
  await expect(binding.readResource('nobody://x')).rejects.toMatchObject({
    code: 'RESOURCE_UNKNOWN',
    details: { servers: ['one', 'two', 'everything'] },
  })
  await expect(binding.readResource('scripted://one', { server: 'nobody' })).rejects.toMatchObject({
    code: 'SERVER_NOT_READY',
  })
  await expect(binding.readResource('scripted://nothing', { server: 'one' })).rejects.toMatchObject({
    code: 'SERVER_ERROR',
    details: { rpc: { code: -32002 } },
  })
})

test('a server that cannot list its resources is named, and hides nobody', async () => {
  await using broken = await startScriptedHttp({ failures: [{ method: 'resources/list', status: 501 }] })
  const { host } = await hostOf([http('broken', broken.url), scripted('fine')])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(await binding.resources()).toMatchObject({
    items: [{ server: 'fine' }, { server: 'fine' }],
    failures: [{ server: 'broken', code: 'HTTP_STATUS', message: expect.stringContaining('broken') }],
  })
})

verifies('catalog.033', async () => {
  const { host } = await hostOf([
    scripted('one'),
    scripted('two', { era: 'modern' }),
    stdio('everything', everythingStdio()),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const { items } = await binding.prompts()
  expect(items.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['one__greet', 'two__greet', 'everything__simple-prompt', 'everything__completable-prompt']),
  )
  expect(items.find(({ name }) => name === 'two__greet')).toMatchObject({ server: 'two', rawName: 'greet' })
  expect(await binding.getPrompt('two__greet', { who: 'Ada' })).toMatchObject({
    messages: [{ content: { text: 'Greet Ada' } }],
  })
  expect((await seenBy(binding, 'two')).requests).toContain('prompts/get')
  expect((await seenBy(binding, 'one')).requests).not.toContain('prompts/get')
  await expect(binding.getPrompt('two__gret', {})).rejects.toMatchObject({
    code: 'PROMPT_UNKNOWN',
    message: expect.stringContaining('Did you mean "two__greet"'),
  })
  const ref = { type: 'ref/prompt', name: 'everything__completable-prompt' }
  expect(await binding.complete({ ref, argument: { name: 'department', value: 'E' } })).toMatchObject({
    completion: { values: ['Engineering'] },
  })
  const template = { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' }
  expect(await binding.complete({ ref: template, argument: { name: 'resourceId', value: '1' } })).toHaveProperty(
    'completion',
  )
  const shared = { type: 'ref/resource', uri: 'scripted://item/{id}' }
  await expect(binding.complete({ ref: shared, argument: { name: 'id', value: 'a' } })).rejects.toMatchObject({
    code: 'RESOURCE_AMBIGUOUS',
  })
  expect(
    await binding.complete(
      { ref: shared, argument: { name: 'id', value: 'al' } },
      { meta: { 'convoke/server': 'one' } },
    ),
  ).toMatchObject({ completion: { values: ['alice', 'albert'] } })
  await expect(binding.complete({ argument: {} })).rejects.toMatchObject({ code: 'ARGUMENTS_INVALID' })
})

test('changes of resources and prompts are told, and asked for again', async () => {
  const tools = [
    { name: 'touch', does: { kind: 'resource-updated', uri: 'scripted://one' } },
    { name: 'prompts', does: { kind: 'list-changed', what: 'prompts', count: 1, everyMs: 0 } },
    { name: 'resources', does: { kind: 'list-changed', what: 'resources', count: 1, everyMs: 0 } },
    { name: 'log', does: { kind: 'log', level: 'warning', count: 1 } },
  ] as const
  const { host, events } = await hostOf([scripted('s', { tools })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  for (const { name } of tools) await callTool(binding, `s/${name}`)
  const told = events.filter(({ kind }) => kind !== 'server.state-changed' && !kind.startsWith('set.'))
  expect(told).toEqual([
    { kind: 'resource.updated', server: 's', uri: 'scripted://one' },
    { kind: 'prompt-catalog.changed', server: 's' },
    { kind: 'resource-catalog.changed', server: 's' },
    { kind: 'server.log', server: 's', level: 'warning', logger: 'scripted', data: 'message 1' },
  ])
})

verifies('catalog.034', async () => {
  const { host } = await hostOf([
    scripted('npm:@scope/pkg', { tools: [{ name: 'a/b' }, { name: 'search_issues' }] }),
    scripted('npm:@scope', { tools: [{ name: 'pkg/a/b' }, { name: 'other' }] }),
    scripted('down', { exitAtStart: { code: 1 } }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const who = (text: string): string => {
    const found = binding.resolveTool(text)
    return found.kind === 'found' ? `${found.tool.server} ${found.tool.rawName}` : found.kind
  }
  expect(who('npm:@scope/pkg/a/b')).toBe('npm:@scope/pkg a/b')
  expect(who('npm:@scope/other')).toBe('npm:@scope other')
  for (const { name, server, rawName } of binding.tools) expect(who(name)).toBe(`${server} ${rawName}`)
  expect(binding.resolveTool('npm:@scope/pkg/search-isues')).toMatchObject({
    kind: 'unknown-tool',
    server: 'npm:@scope/pkg',
    near: ['npm:@scope/pkg/search_issues'],
  })
  expect(binding.resolveTool('npm:@scop/other')).toMatchObject({
    kind: 'unknown-server',
    near: ['npm:@scope', 'npm:@scope/pkg'],
  })
  expect(binding.resolveTool('search_issues')).toMatchObject({
    kind: 'unknown-tool',
    near: ['npm:@scope/pkg/search_issues'],
  })
  for (const text of ['down/x', 'down__x', 'down'])
    expect(binding.resolveTool(text)).toMatchObject({
      kind: 'server-not-ready',
      server: 'down',
      status: { state: 'failed' },
    })
  expect(binding.resolveTool('npm:@scope/pkg/')).toMatchObject({ kind: 'unknown-tool' })
})

test('a text that means two tools is ambiguous and names both', async () => {
  const { host } = await hostOf([
    scripted('a', { tools: [{ name: 'x' }] }),
    scripted('a__x/b', { tools: [{ name: 'y' }] }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(binding.resolveTool('a__x').kind).toBe('found')
  expect(binding.namespaced(toolOf(binding, 'a/x'))).toEqual({ namespace: 'mcp__a', tool: 'x' })
})
