// Hosted servers: one catalog for the connections of an account, connectors, and what a kept catalog may still say.
import type { JsonObject, ServerDefinition } from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { nodePlatform } from '@convoke/wire'
import { expect, test } from 'vitest'
import {
  type CacheScope,
  CatalogCache,
  type CatalogCacheEntry,
  CatalogView,
  type CredentialFacts,
  toolView,
} from '../src/catalog/index.ts'
import { toolListing } from '../src/catalog/listing.ts'
import { LiveScopes } from '../src/catalog/live-scope.ts'
import { resolveTraits } from '../src/config/index.ts'
import { hostedCatalogOf, scopeOf, tool, wired } from './catalog-support.ts'
import { startRawHttp } from './raw-http.ts'
import { http } from './support.ts'

const ACCOUNT: CredentialFacts = { kind: 'account', id: 'a1' }
const hosted = (url: string, more: Partial<ServerDefinition> = {}, transport: object = {}): ServerDefinition =>
  http('apps', url, { hosted: true, auth: 'account', ...more }, transport)
const placeOf = (definition: ServerDefinition): CacheScope => scopeOf(definition, { credentials: ACCOUNT })
const entryOf = (cache: CatalogCache, definition: ServerDefinition): CatalogCacheEntry =>
  cache.entry(placeOf(definition))
/** Where a connection keeps its catalog, and with whom it shares it. */
const kept = (cache: CatalogCache, definition: ServerDefinition): { cache: CatalogCacheEntry; liveKey: string } => ({
  cache: entryOf(cache, definition),
  liveKey: placeOf(definition).liveKey,
})
const connector = (id: string, more: JsonObject = {}): JsonObject => ({ _meta: { connector_id: id, ...more } })
const names = (view: CatalogView, which: 'live' | 'cached' | 'discovered'): readonly string[] | undefined =>
  view[which]?.tools.map(({ rawName }) => rawName)

/** A server whose listing is what the test says next. */
async function listingServer(): Promise<{
  server: Awaited<ReturnType<typeof startRawHttp>>
  next: (reply: Promise<JsonObject[]> | JsonObject[]) => void
  /** How often it was asked. */
  listings: () => number
}> {
  const replies: (Promise<JsonObject[]> | JsonObject[])[] = []
  let count = 0
  const server = await startRawHttp({
    'tools/list': async () => {
      count += 1
      return { result: { tools: (await replies.shift()) ?? [] } }
    },
  })
  return { server, next: (reply) => void replies.push(reply), listings: () => count }
}

verifies('conn.081', async () => {
  const { server, next, listings } = await listingServer()
  await using _ = server
  const cache = new CatalogCache({ platform: nodePlatform })
  // Two connections that differ in a header: they share what is shown, and not what is run.
  const [a, b] = [
    hosted(server.url, {}, { headers: { 'x-client': 'a' } }),
    hosted(server.url, {}, { headers: { 'x-client': 'b' } }),
  ]
  await using one = wired(a, kept(cache, a))
  await using other = wired(b, kept(cache, b))
  expect(one.view.cache).toBe(other.view.cache)
  next([tool('first', connector('c'))])
  await one.ready()
  next([tool('first', connector('c'))])
  await other.ready()
  // A asks first and is answered last.
  let release: (tools: JsonObject[]) => void = () => {}
  next(
    new Promise((resolve) => {
      release = resolve
    }),
  )
  const slow = one.catalog.refresh()
  await expect.poll(listings).toBe(3)
  next([tool('of-b', connector('c'))])
  await other.catalog.refresh()
  release([tool('of-a', connector('c'))])
  await slow
  expect([names(one.view, 'discovered'), names(other.view, 'discovered')]).toEqual([['of-b'], ['of-b']])
  expect([names(one.view, 'live'), names(other.view, 'live')]).toEqual([['of-a'], ['of-b']])
})

test('connections that have everything in common run the newest listing of any of them', async () => {
  const { server, next } = await listingServer()
  await using _ = server
  const cache = new CatalogCache({ platform: nodePlatform })
  const definition = hosted(server.url)
  await using one = wired(definition, kept(cache, definition))
  await using other = wired(definition, kept(cache, definition))
  for (const { ready } of [one, other]) {
    next([tool('first', connector('c'))])
    await ready()
  }
  expect([one.catalog.revision, other.catalog.revision]).toEqual([0, 0])
  next([tool('second', connector('c'))])
  await one.catalog.refresh()
  await expect.poll(() => names(other.view, 'live')).toEqual(['second'])
  expect([one.catalog.revision, other.catalog.revision]).toEqual([1, 1])
  expect(other.events.filter(({ kind }) => kind === 'tool-catalog.changed')).toHaveLength(1)
  // Equal tools are no change for anybody.
  next([tool('second', connector('c'))])
  const listing = one.catalog.listing
  await other.catalog.refresh()
  expect([one.catalog.revision, other.catalog.revision, one.catalog.listing]).toEqual([1, 1, listing])
  // A call that runs on the older listing holds the newer one of the peer back.
  const leave = await other.catalog.read()
  next([tool('third', connector('c'))])
  await one.catalog.refresh()
  expect([names(one.view, 'live'), names(other.view, 'live')]).toEqual([['third'], ['second']])
  leave()
  await expect.poll(() => names(other.view, 'live')).toEqual(['third'])
  // Who has closed runs nothing any more, and whoever comes later begins with an own listing.
  await one[Symbol.asyncDispose]()
  next([tool('fourth', connector('c'))])
  await other.catalog.refresh()
  expect([names(one.view, 'live'), names(other.view, 'live')]).toEqual([['third'], ['fourth']])
})

test('an older listing of one connection gives way to a newer one of its peer', async () => {
  const { server, next, listings } = await listingServer()
  await using _ = server
  const cache = new CatalogCache({ platform: nodePlatform })
  const definition = hosted(server.url)
  await using one = wired(definition, kept(cache, definition))
  await using other = wired(definition, kept(cache, definition))
  for (const { ready } of [one, other]) {
    next([tool('first', connector('c'))])
    await ready()
  }
  let release: (tools: JsonObject[]) => void = () => {}
  next(
    new Promise((resolve) => {
      release = resolve
    }),
  )
  const slow = one.catalog.refresh()
  await expect.poll(listings).toBe(3)
  next([tool('newer', connector('c'))])
  await other.catalog.refresh()
  release([tool('older', connector('c'))])
  expect((await slow).tools.map(({ rawName }) => rawName)).toEqual(['newer'])
  expect([names(one.view, 'live'), names(other.view, 'live'), names(one.view, 'discovered')]).toEqual([
    ['newer'],
    ['newer'],
    ['newer'],
  ])
})

test('a listing of a peer that is gone binds nobody: who lists later runs its own', async () => {
  const { server, next, listings } = await listingServer()
  await using _ = server
  const cache = new CatalogCache({ platform: nodePlatform })
  const definition = hosted(server.url)
  const one = wired(definition, kept(cache, definition))
  await using late = wired(definition, kept(cache, definition))
  next([tool('first', connector('c'))])
  await one.ready()
  let release: (tools: JsonObject[]) => void = () => {}
  next(
    new Promise((resolve) => {
      release = resolve
    }),
  )
  const starting = late.ready()
  await expect.poll(listings).toBe(2)
  next([tool('newer', connector('c'))])
  await one.catalog.refresh()
  await one[Symbol.asyncDispose]()
  release([tool('own', connector('c'))])
  await starting
  expect([names(late.view, 'live'), names(late.view, 'discovered')]).toEqual([['own'], ['newer']])
})

verifies('conn.082', async () => {
  await using server = await startScriptedHttp({
    tools: [
      { name: 'own', ...connector('c') },
      { name: 'denied', ...connector('c') },
    ],
  })
  const cache = new CatalogCache({ platform: nodePlatform })
  const definition = hosted(server.url, { tools: { deny: ['denied', 'denied-too'] } })
  const cached = entryOf(cache, definition)
  await using live = wired(definition, kept(cache, definition))
  await live.ready()
  cached.publish(
    cached.ticket(),
    hostedCatalogOf('apps', [tool('of-a-peer', connector('c')), tool('denied-too', connector('c'))]),
  )
  expect(names(live.view, 'discovered')).toEqual(['of-a-peer'])
  expect(names(live.view, 'live')).toEqual(['own'])
  expect(['own', 'denied', 'denied-too'].filter((name) => live.view.allows(name))).toEqual(['own'])
  // What is prepared is looked up in what the binding shows: the connection's own tools.
  const shown = toolView(
    [live.view.live].flatMap((snapshot) => snapshot ?? []),
    { nameCharsMax: 48 },
  )
  expect(shown.tools.map(({ rawName, state }) => [rawName, state])).toEqual([['own', 'live']])
  expect(shown.raw('apps', 'of-a-peer')).toBeUndefined()
})

test('a hosted server that wants no cache is alone', async () => {
  const { server, next } = await listingServer()
  await using _ = server
  const cache = new CatalogCache({ platform: nodePlatform })
  const definition = hosted(server.url)
  const cached = entryOf(cache, definition)
  await using one = wired(definition, kept(cache, definition))
  next([tool('own', connector('c'))])
  await one.ready()
  cached.disable()
  next([tool('own-2', connector('c'))])
  await one.catalog.refresh()
  expect([names(one.view, 'live'), names(one.view, 'discovered'), cached.snapshot]).toEqual([
    ['own-2'],
    ['own-2'],
    undefined,
  ])
})

verifies('conn.051', async () => {
  const cache = new CatalogCache({ platform: nodePlatform })
  const definition = hosted('http://127.0.0.1:9/mcp')
  const cached = entryOf(cache, definition)
  await using pending = wired(definition, kept(cache, definition))
  expect(pending.view.discovered).toBeUndefined()
  cached.publish(cached.ticket(), hostedCatalogOf('apps', []))
  expect(names(pending.view, 'discovered')).toEqual([])
  cached.publish(cached.ticket(), hostedCatalogOf('apps', [tool('a', connector('c'))]))
  expect(names(pending.view, 'discovered')).toEqual(['a'])
  expect(pending.connection.state.kind).toBe('dormant') // looking has started nothing
})

verifies(['conn.052', 'conn.058'], async () => {
  const cache = new CatalogCache({ platform: nodePlatform })
  const definition = hosted('http://127.0.0.1:9/mcp', { startupTimeoutMs: 5_000 })
  const cached = entryOf(cache, definition)
  cached.publish(cached.ticket(), hostedCatalogOf('apps', [tool('a', connector('c'))]))
  await using failed = wired(definition, kept(cache, definition))
  expect(failed.view.serverInfo).toEqual({ name: 'kept', version: '1' }) // nothing was asked yet
  await expect(failed.ready()).rejects.toThrow()
  expect(failed.connection.state.kind).toBe('failed')
  expect([names(failed.view, 'discovered'), failed.view.serverInfo]).toEqual([['a'], { name: 'kept', version: '1' }])
})

verifies('conn.093', async () => {
  const annotations = { readOnlyHint: true, destructiveHint: false, openWorldHint: true }
  const listed = { ...connector('c'), annotations }
  await using server = await startScriptedHttp({
    tools: [
      { name: 'a', ...listed },
      { name: 'plain', ...connector('c') },
    ],
  })
  const cache = new CatalogCache({ platform: nodePlatform })
  const definition = hosted(server.url)
  const cached = entryOf(cache, definition)
  cached.publish(cached.ticket(), hostedCatalogOf('apps', [tool('a', listed), tool('plain', connector('c'))]))
  await using live = wired(definition, kept(cache, definition))
  const shown = (which: 'cached' | 'live'): unknown[] => {
    const snapshot = live.view[which]
    const { tools } = toolView(snapshot === undefined ? [] : [snapshot], { nameCharsMax: 48 })
    return tools.map((one) => [one.rawName, one.state, one.annotations])
  }
  expect(shown('cached')).toEqual([
    ['a', 'cached', { destructiveHint: false, openWorldHint: true }],
    ['plain', 'cached', undefined],
  ])
  expect(live.view.live).toBeUndefined() // nothing that a call could be prepared on
  await live.ready()
  expect(shown('live')).toEqual([
    ['a', 'live', annotations],
    ['plain', 'live', undefined],
  ])
})

verifies('conn.072', async () => {
  const meta = {
    connector_id: 'c',
    connector_name: 'Calendar',
    connector_display_name: 'Calendar',
    connector_description: 'Dates.',
    connectorDescription: 'Dates.',
    other: 1,
    'convoke/connector': { id: 'own' },
    'convoke/app': { linkId: 'l' },
    'convoke/secret': 1,
  }
  await using server = await startScriptedHttp({ tools: [{ name: 'list', _meta: meta }, { name: 'bare' }] })
  await using ordinary = wired(http('s', server.url))
  await using apps = wired(hosted(server.url))
  for (const { ready } of [ordinary, apps]) await ready()
  const metaOf = (view: CatalogView): unknown => view.live?.tools[0]?.definition['_meta']
  expect(metaOf(ordinary.view)).toEqual({ other: 1 })
  const { 'convoke/secret': _, ...kept } = meta
  expect(metaOf(apps.view)).toEqual(kept)
  expect(ordinary.view.live?.tools.map(({ connector: one }) => one)).toEqual([undefined, undefined])
  // A hosted tool without a connector is not shown, and says why.
  expect(apps.view.live?.tools.map(({ connector: one }) => one)).toEqual([{ id: 'own' }])
  expect(apps.view.notes.map(({ item, kind }) => [item, kind])).toEqual([['bare', 'filtered']])
})

test('a plugin decides which connectors are shown, and stands behind the description of their tools', () => {
  const definition = hosted('http://127.0.0.1:9/mcp')
  const cache = new CatalogCache({ platform: nodePlatform })
  const cached = entryOf(cache, definition)
  const listed = [
    tool('a', { ...connector('used'), description: 'Does a' }),
    tool('b', connector('unused')),
    tool('c', connector('free')),
  ]
  cached.publish(cached.ticket(), {
    ...hostedCatalogOf('apps', []),
    listing: toolListing('apps', { items: listed, rejected: [] }, 'hosted'),
  })
  const { catalog } = wired(definition)
  const view = new CatalogView({
    catalog,
    definition,
    traits: resolveTraits(definition),
    cache: cached,
    attribution: {
      pluginsOfServer: () => ['Never for connectors'],
      pluginsOfConnector: (id) => (id === 'used' ? ['Dates', 'Mail'] : []),
      allowsConnector: (id) => id !== 'unused',
    },
  })
  expect(view.cached?.tools.map(({ rawName, description, plugins }) => [rawName, description, plugins])).toEqual([
    ['a', 'Does a. This tool is part of plugins `Dates`, `Mail`.', ['Dates', 'Mail']],
    ['c', undefined, undefined],
  ])
  expect(view.notes).toEqual([
    { server: 'apps', item: 'b', kind: 'filtered', reason: 'no plugin in use has its connector' },
  ])
})

test('a scope of peers ends with its last member, and whoever has left hears and says nothing', () => {
  const scopes = new LiveScopes()
  const heard: string[] = []
  const listing = (name: string): ReturnType<typeof toolListing> => toolListing(name, { items: [], rejected: [] })
  const one = scopes.join('k', ({ server }) => heard.push(`one ${server}`))
  const other = scopes.join('k', ({ server }) => heard.push(`other ${server}`))
  const apart = scopes.join('else', ({ server }) => heard.push(`apart ${server}`))
  const [first, second, late] = [listing('first'), listing('second'), listing('late')]
  expect(one.publish(2, second)).toBe(second)
  expect(other.publish(1, first)).toBe(second)
  expect(apart.publish(1, first)).toBe(first)
  expect(heard).toEqual(['other second'])
  other.leave()
  other.leave()
  expect(other.publish(9, late)).toBe(late)
  one.publish(3, late)
  expect(heard).toEqual(['other second'])
  expect(scopes.size).toBe(2)
  one.leave()
  apart.leave()
  expect(scopes.size).toBe(0)
  // The same key begins anew.
  expect(scopes.join('k', () => {}).publish(1, first)).toBe(first)
})
