// Hosted plugins from the resources of a server: two spellings, limits, and what is wrong with a listing.
import type { JsonObject } from '@convoke/host'
import { startAppsServer, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import type { ResourcePage } from '../src/extensions/index.ts'
import { LISTING_MS_MAX, PAGES_MAX } from '../src/plugins/hosted/hosted-provider.ts'
import { readPluginResource } from '../src/plugins/hosted/plugin-resource.ts'
import { hostedPluginProvider, type PluginCatalog } from '../src/plugins/index.ts'
import { complete, entry, idsOf, settled, TestResources, VirtualClock } from './plugin-support.ts'
import { hostOf, http } from './support.ts'
import { TestAccount } from './turn-support.ts'

const never = new AbortController().signal
const query = { threadId: 'thread', turnId: 'turn', appsServer: 'apps' }

/** A resource as our own family writes it. */
const resource = (id: string, meta: object = {}, more: object = {}): JsonObject => ({
  uri: `plugin://${id}`,
  name: id,
  mimeType: 'application/vnd.convoke.plugin+json',
  _meta: { 'convoke/plugin': { id, displayName: `${id} demo`, version: '1.0.0', enabled: true, ...meta } },
  ...more,
})
const plain = (id: string): ReturnType<typeof entry> => entry(id, { connectorIds: [] })
const page = (resources: readonly JsonObject[], more: Partial<ResourcePage> = {}): ResourcePage => ({
  resources,
  malformedCount: 0,
  ...more,
})

/** Lists through pages that a test makes. */
function listing(pages: TestResources['page'], signal: AbortSignal = never) {
  const [resources, clock] = [new TestResources(), new VirtualClock()]
  const cursors: (string | undefined)[] = []
  resources.page = (cursor, own) => {
    cursors.push(cursor)
    return pages(cursor, own)
  }
  return { listed: hostedPluginProvider({ clock }).list({ ...query, resources }, { signal }), clock, cursors }
}

const listed = (pages: TestResources['page']): Promise<PluginCatalog> => listing(pages).listed

verifies('plugin.025', async () => {
  const provider = hostedPluginProvider({ clock: new VirtualClock() })
  const nobody = new TestResources()
  nobody.hasApps = false
  for (const resources of [undefined, nobody])
    expect(await provider.list({ ...query, resources }, { signal: never })).toEqual(complete())
  const full = {
    connectorIds: ['calendar', 'mail'],
    mcpServers: { text: 'as it is', object: { url: 'https://x.example/' } },
    bundleUri: 'https://b.example/one.tgz',
  }
  const wanted = entry('one', {
    connectorIds: ['calendar', 'mail'],
    mcpServers: { text: 'as it is', object: '{"url":"https://x.example/"}' },
    locations: [{ kind: 'hosted', resourceUri: 'plugin://one', bundleUri: 'https://b.example/one.tgz' }],
  })
  const other = {
    plugin_id: 'one',
    display_name: 'one demo',
    version: '1.0.0',
    enabled: true,
    connector_ids: full.connectorIds,
    mcp_servers: full.mcpServers,
    bundle_uri: full.bundleUri,
  }
  for (const one of [resource('one', full), resource('one', {}, { _meta: other })])
    expect(await listed(async () => page([one]))).toEqual(complete(wanted))
  // What is not required may be missing, and other resources are nobody's plugins.
  expect(
    await listed(async () =>
      page([
        { uri: 'doc:a', _meta: { 'convoke/plugin': { id: 'a' } } },
        resource('two', { enabled: false, connectorIds: undefined }),
        { ...resource('three'), mimeType: 'application/json' },
        resource('four', {}, { uri: 'plugin://four/manifest' }),
      ]),
    ),
  ).toEqual(
    complete(
      { ...plain('two'), enabled: false },
      { ...plain('four'), locations: [{ kind: 'hosted', resourceUri: 'plugin://four/manifest' }] },
    ),
  )
  // Our own object speaks alone, whatever stands beside it.
  const mixed = resource('one', { displayName: undefined }, {})
  const both = { ...(mixed['_meta'] as object), ...other }
  expect(readPluginResource({ ...mixed, _meta: both })).toEqual({ kind: 'malformed' })
})

verifies('plugin.026', async () => {
  const endless: TestResources['page'] = async (cursor = '0') =>
    page([resource(`p${cursor}`)], { nextCursor: `${Number(cursor) + 1}` })
  const { listed: cut, cursors, clock } = listing(endless)
  expect(await cut).toEqual({
    entries: Array.from({ length: PAGES_MAX }, (_, index) => plain(`p${index}`)),
    warnings: ['there are more than 10 pages'],
    isPartial: true,
  })
  expect(cursors).toEqual([undefined, '1', '2', '3', '4', '5', '6', '7', '8', '9'])
  expect(clock.timers).toBe(0)
  const many = (count: number): JsonObject[] => Array.from({ length: count }, (_, index) => resource(`p${index}`))
  const outcome = async (pages: TestResources['page']): Promise<unknown> => {
    const { entries, warnings, isPartial } = await listed(pages)
    return [entries.length, warnings, isPartial]
  }
  const others = Array.from({ length: 200 }, (_, index) => ({ uri: `doc:${index}` }))
  expect(await outcome(async () => page([...others, ...many(100)]))).toEqual([100, [], false])
  expect(await outcome(async () => page(many(101)))).toEqual([100, ['there are more than 100'], true])
  // It is known only from the next page, and then nothing further is asked.
  const twoPages = listing(async (cursor) =>
    cursor === undefined ? page(many(100), { nextCursor: 'b' }) : page([resource('last')], { nextCursor: 'c' }),
  )
  expect([(await twoPages.listed).isPartial, twoPages.cursors]).toEqual([true, [undefined, 'b']])
  const exactly = await outcome(async (cursor) =>
    cursor === undefined ? page(many(100), { nextCursor: '' }) : page([]),
  )
  expect(exactly).toEqual([100, [], false])
  // A cursor that came before, an empty one included.
  for (const again of ['', 'x'])
    expect(await outcome(async () => page([resource('one')], { nextCursor: again }))).toEqual([
      2,
      ['the listing goes in a circle'],
      true,
    ])
  const failsAt =
    (wanted: string | undefined): TestResources['page'] =>
    async (cursor) => {
      if (cursor === wanted) throw new Error('secret')
      return page([resource('one')], { nextCursor: 'next' })
    }
  expect(await outcome(failsAt('next'))).toEqual([1, ['a page could not be read'], true])
  const failed = listing(failsAt(undefined))
  await expect(failed.listed).rejects.toThrow('secret')
  expect([failed.cursors, LISTING_MS_MAX]).toEqual([[undefined], 9_500])
  // Malformed ones are counted once, wherever they were found.
  const bad = [resource('a', { id: 'b' }), resource('c', { enabled: 'yes' }), resource('d', {}, { _meta: 1 })]
  expect(await outcome(async () => page([...bad, resource('one')], { malformedCount: 2 }))).toEqual([
    1,
    ['left out as malformed: 5'],
    true,
  ])
})

verifies('plugin.028', async () => {
  const bundles = ['http://b.example/', 'file:///x', 1, 'plugin://other/x', ' ', '']
  const { entries, warnings, isPartial } = await listed(async () =>
    page([
      ...bundles.map((bundleUri, index) => resource(`p${index}`, { bundleUri })),
      resource('null', { bundleUri: null }),
    ]),
  )
  expect(entries).toEqual([...bundles.map((_, index) => plain(`p${index}`)), plain('null')])
  expect([warnings, isPartial]).toEqual([['addresses of bundles that were ignored: 6'], false])
})

test('a listing ends in time with what it has, and at once with whoever asked', async () => {
  const hanging: TestResources['page'] = (cursor) =>
    cursor === undefined ? Promise.resolve(page([resource('one')], { nextCursor: 'b' })) : new Promise(() => {})
  const late = listing(hanging)
  await settled()
  late.clock.advance(LISTING_MS_MAX)
  expect(await late.listed).toMatchObject({ isPartial: true, warnings: ['a page could not be read'], entries: [{}] })
  expect(late.clock.timers).toBe(0)
  const first = listing(() => new Promise(() => {}))
  first.clock.advance(LISTING_MS_MAX)
  await expect(first.listed).rejects.toMatchObject({ code: 'CANCELLED' })
  // Nothing half-read is handed to somebody who has gone.
  const gone = new AbortController()
  const abandoned = listing(hanging, gone.signal)
  await settled()
  gone.abort()
  await expect(abandoned.listed).rejects.toMatchObject({ code: 'CANCELLED' })
  const before = listing(hanging, AbortSignal.abort())
  await expect(before.listed).rejects.toMatchObject({ code: 'CANCELLED' })
  expect([abandoned.clock.timers, before.clock.timers]).toEqual([0, 0])
  // The server is told, too.
  const seen: (AbortSignal | undefined)[] = []
  const told = listing((_, signal) => {
    seen.push(signal)
    return new Promise(() => {})
  })
  told.clock.advance(LISTING_MS_MAX - 1)
  expect(seen[0]?.aborted).toBe(false)
  told.clock.advance(1)
  expect(seen[0]?.aborted).toBe(true)
  await expect(told.listed).rejects.toMatchObject({ code: 'CANCELLED' })
})

test('a connection that is replaced meanwhile is no failure, and its pages are not mixed with others', async () => {
  const [resources, clock] = [new TestResources(), new VirtualClock()]
  const list = (): Promise<PluginCatalog> =>
    hostedPluginProvider({ clock }).list({ ...query, resources }, { signal: never })
  let asked = 0
  const replacedIn = (wanted: number, failure?: Error): void => {
    asked = 0
    resources.page = async (cursor) => {
      asked += 1
      if (asked <= wanted) resources.reconnect()
      if (asked <= wanted && failure !== undefined) throw failure
      return cursor === undefined ? page([resource(`a${asked}`)], { nextCursor: 'b' }) : page([resource(`b${asked}`)])
    }
  }
  replacedIn(1)
  expect([idsOf(await list()), asked]).toEqual([['a3', 'b4'], 4])
  replacedIn(2, new Error('lost'))
  expect([idsOf(await list()), asked]).toEqual([['a3', 'b4'], 4])
  replacedIn(9, new Error('lost'))
  await expect(list()).rejects.toThrow('lost')
  expect([asked, clock.timers]).toEqual([3, 0])
  replacedIn(9)
  expect(await list()).toMatchObject({
    entries: [plain('a5'), plain('b6')],
    isPartial: true,
    warnings: ['the connection was replaced while it was read'],
  })
  replacedIn(0)
  expect([idsOf(await list()), asked]).toEqual([['a1', 'b2'], 2])
})

test('through a real server: pages, failures, and another account', async () => {
  const plugins = Array.from({ length: 5 }, (_, index) => ({
    id: `p${index}`,
    displayName: `p${index} demo`,
    connectorIds: ['calendar'],
  }))
  await using server = await startAppsServer({ accounts: { a: { plugins }, b: {} }, pageSize: 2 })
  const account = new TestAccount([server.origin])
  const { host } = await hostOf([http('apps', server.url, { hosted: true, auth: 'account' })], { account, start: [] })
  await using _ = host
  const provider = hostedPluginProvider()
  const list = (): Promise<PluginCatalog> => provider.list({ ...query, resources: host.resources }, { signal: never })
  expect(await list()).toEqual(complete(...plugins.map(({ id }) => entry(id))))
  expect((await server.stats()).listings.map(({ cursor }) => cursor)).toEqual([null, '2', '3'])
  await server.set({ repeatCursor: true })
  expect(await list()).toMatchObject({ isPartial: true, warnings: ['the listing goes in a circle'] })
  await server.set({ repeatCursor: undefined, failFromPage: 3 })
  const cut = await list()
  expect([idsOf(cut), cut.isPartial, cut.warnings]).toEqual([
    ['p0', 'p1', 'p2', 'p3'],
    true,
    ['a page could not be read'],
  ])
  await server.set({ failFromPage: 1 })
  await expect(list()).rejects.toMatchObject({ code: 'SERVER_ERROR' })
  await server.set({ failFromPage: undefined, pluginListing: 'absent' })
  await expect(list()).rejects.toMatchObject({ code: 'SERVER_ERROR' })
  await server.set({ pluginListing: undefined })
  account.signIn('b')
  expect(await list()).toEqual(complete())
})
