// Catalogs that outlive their connections: who may replace one, how old it may be, and what the disk does to it.
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { nodePlatform } from '@convoke/wire'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CatalogCacheEntry } from '../src/catalog/cache-entry.ts'
import type { CacheScope } from '../src/catalog/cache-scope.ts'
import {
  ageOf,
  type CachedCatalog,
  DROPPED_AFTER_MS,
  identityDifference,
  optsOutOfCache,
  STALE_AFTER_MS,
} from '../src/catalog/cached-catalog.ts'
import { readCatalog } from '../src/catalog/catalog-file.ts'
import { CATALOG_STORE_LIMITS, CatalogCache, CatalogView, ServerCatalog } from '../src/catalog/index.ts'
import { FileStore, type KeyValueStore, MemoryStore } from '../src/store/index.ts'
import { catalogOf, IDENTITY, named, scopeOf, tool, wired } from './catalog-support.ts'
import { http } from './support.ts'

let root = ''
let count = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'convoke-catalogs-'))
})
afterAll(async () => {
  await rm(root, { recursive: true, force: true })
})
const filesIn = (directory: string, limits = CATALOG_STORE_LIMITS): FileStore =>
  new FileStore({ platform: nodePlatform, directory, limits, durability: 'cache' })
const newFolder = (): string => join(root, `${++count}`)
const cacheOver = (store?: KeyValueStore, dateMs: () => number = Date.now): CatalogCache =>
  new CatalogCache({ platform: { ...nodePlatform, dateMs }, store })
const inMemory = (dateMs: () => number = Date.now): MemoryStore =>
  new MemoryStore({ limits: CATALOG_STORE_LIMITS, dateMs })

function entryAt(dateMs: () => number = Date.now): CatalogCacheEntry {
  return new CatalogCacheEntry({ scope: scopeOf(named('s')), dateMs, onReplaced: () => {} })
}
function viewOf(entry: CatalogCacheEntry): CatalogView {
  const definition = named(entry.scope.server)
  const options = { listTimeoutMs: 1, platform: nodePlatform, emit: () => {}, watch: 'none' } as const
  const catalog = new ServerCatalog({ server: definition.name, ...options })
  return new CatalogView({ catalog, definition, traits: { isHosted: false }, cache: entry })
}
const namesIn = (entry: CatalogCacheEntry): readonly string[] | undefined =>
  entry.snapshot?.listing.tools.map(({ rawName }) => rawName)

describe('an entry', () => {
  verifies('conn.074', async () => {
    let nowMs = 1_000_000
    const cache = cacheOver(undefined, () => nowMs)
    const definition = named('s')
    const entry = cache.entry(scopeOf(definition))
    // An empty list is stored, and is no tool list.
    expect(entry.publish(entry.ticket(), catalogOf('s', [], nowMs))).toBe(true)
    expect(namesIn(entry)).toEqual([])
    expect(viewOf(entry).hasVisibleCachedTools).toBe(false)
    // Annotations are not shown from it; the title that stood in them stays.
    const hints = { readOnlyHint: true, destructiveHint: true, title: 'A title' }
    const [older, newer] = [entry.ticket(), entry.ticket()]
    const listed = [tool('a', { annotations: hints }), tool('b')]
    expect(entry.publish(newer, catalogOf('s', listed, nowMs))).toBe(true)
    const shown = viewOf(entry).cached?.tools
    expect(shown?.map(({ title, definition: { annotations } }) => [title, annotations])).toEqual([
      ['A title', undefined],
      [undefined, undefined],
    ])
    expect(viewOf(entry).hasVisibleCachedTools).toBe(true)
    // An older ticket loses, however late it comes; so does the same one again.
    expect(entry.publish(older, catalogOf('s', [tool('old')], nowMs))).toBe(false)
    expect(entry.publish(newer, catalogOf('s', [tool('again')], nowMs))).toBe(false)
    expect(namesIn(entry)).toEqual(['a', 'b'])
    // Another environment under the same name is another place; the same one is the same.
    const replaced = scopeOf(definition, { environment: { kind: 'resolved', name: 'local', handle: {} } })
    expect(cache.entry(replaced)).not.toBe(entry)
    expect(cache.entry(scopeOf(definition))).toBe(entry)
    // Stale after a day, gone after a week.
    expect(entry.staleBecause).toBeUndefined()
    nowMs += STALE_AFTER_MS + 1
    expect(entry.staleBecause).toMatch(/24 hours/)
    expect(namesIn(entry)).toEqual(['a', 'b'])
    nowMs += DROPPED_AFTER_MS - STALE_AFTER_MS
    expect([entry.snapshot, entry.staleBecause, viewOf(entry).cached]).toEqual([undefined, undefined, undefined])
  })

  test.each<[string, number, ReturnType<typeof ageOf>]>([
    ['from the future', -5_000, 'fresh'],
    ['of now', 0, 'fresh'],
    ['a day old', STALE_AFTER_MS, 'fresh'],
    ['older than a day', STALE_AFTER_MS + 1, 'stale'],
    ['a week old', DROPPED_AFTER_MS, 'stale'],
    ['older than a week', DROPPED_AFTER_MS + 1, 'dropped'],
  ])('a catalog %s', (_, ageMs, age) => {
    expect(ageOf({ listedAtMs: 1_000 }, 1_000 + ageMs)).toBe(age)
  })

  test('tells of every change once, and nobody who has stopped listening', () => {
    const entry = entryAt()
    let told = 0
    const stop = entry.onChange(() => {
      told += 1
    })
    const revisions = [entry.revision]
    entry.publish(entry.ticket(), catalogOf('s', [tool('a')]))
    revisions.push(entry.revision)
    entry.compare(IDENTITY)
    entry.compare({ ...IDENTITY, protocolVersion: '2026-07-28' })
    entry.compare({ ...IDENTITY, protocolVersion: '2026-07-28' })
    revisions.push(entry.revision)
    entry.disable()
    entry.disable()
    revisions.push(entry.revision)
    expect([told, revisions]).toEqual([3, [0, 1, 2, 3]])
    stop()
    stop()
    entry.restore(catalogOf('s', []))
    expect(told).toBe(3)
  })

  test('is disabled for good: what it had is gone and nothing more is taken', () => {
    const entry = entryAt()
    entry.publish(entry.ticket(), catalogOf('s', [tool('a')]))
    const taken = entry.snapshot
    entry.disable()
    expect(entry.publish(entry.ticket(), catalogOf('s', [tool('b')]))).toBe(false)
    entry.restore(catalogOf('s', [tool('c')]))
    expect([entry.snapshot, entry.isDisabled, viewOf(entry).isCacheDisabled]).toEqual([undefined, true, true])
    expect(taken?.listing.tools).toHaveLength(1) // who holds it still does
    // Also before anything was ever listed: the disk brings nothing back.
    const early = entryAt()
    early.disable()
    early.restore(catalogOf('s', [tool('c')]))
    expect(early.snapshot).toBeUndefined()
  })

  test('what an earlier process kept replaces nothing that was listed since', () => {
    const entry = entryAt()
    entry.restore(catalogOf('s', [tool('old')]))
    entry.restore(catalogOf('s', [tool('older')]))
    expect(namesIn(entry)).toEqual(['old'])
    entry.publish(entry.ticket(), catalogOf('s', [tool('new')]))
    entry.restore(catalogOf('s', [tool('old')]))
    expect(namesIn(entry)).toEqual(['new'])
    const other = entryAt()
    other.publish(other.ticket(), catalogOf('s', []))
    other.restore(catalogOf('s', [tool('old')]))
    expect(namesIn(other)).toEqual([])
  })

  test('a server that is not the one that was kept makes the catalog stale until it has listed', () => {
    const entry = entryAt()
    entry.compare({ ...IDENTITY, instructions: 'nothing is kept yet' })
    expect(entry.staleBecause).toBeUndefined()
    entry.publish(entry.ticket(), catalogOf('s', [tool('a')]))
    entry.compare({ ...IDENTITY, serverInfo: { name: 'kept', version: '2' } })
    expect(entry.staleBecause).toBe('it introduces itself differently now')
    expect(namesIn(entry)).toEqual(['a'])
    entry.publish(entry.ticket(), catalogOf('s', [tool('b')]))
    expect(entry.staleBecause).toBeUndefined()
  })

  test.each<[string, object, string | undefined]>([
    ['nothing', {}, undefined],
    ['the protocol', { protocolVersion: '2' }, 'it spoke protocol 2025-11-25 then and speaks 2 now'],
    ['its introduction', { serverInfo: {} }, 'it introduces itself differently now'],
    ['its capabilities', { capabilities: {} }, 'it declares other capabilities now'],
    ['its instructions', { instructions: 'x' }, 'it gives other instructions now'],
  ])('says what differs: %s', (_, change, because) => {
    expect(identityDifference(IDENTITY, { ...IDENTITY, ...change })).toBe(because)
  })

  test.each<[object, boolean]>([
    [{}, false],
    [{ experimental: 'x' }, false],
    [{ experimental: {} }, false],
    [{ experimental: { 'convoke/tool-catalog-cache': { cacheable: false } } }, true],
    [{ experimental: { 'codex/tool-catalog-cache': { cacheable: false } } }, true],
    [{ experimental: { 'codex/tool-catalog-cache': { cacheable: true } } }, false],
    [{ experimental: { 'codex/tool-catalog-cache': { cacheable: null } } }, false],
    [{ experimental: { 'other/tool-catalog-cache': { cacheable: false } } }, false],
  ])('a server with %j wants nothing to be kept: %s', (capabilities, isOut) => {
    expect(optsOutOfCache({ ...capabilities })).toBe(isOut)
  })

  verifies('conn.089', () => {
    let nowMs = 0
    const entry = entryAt(() => nowMs)
    // One grace for all sets: the second one waits for what is left of it.
    expect(entry.graceDeadlineMs(1_000, 100)).toBe(1_100)
    expect(entry.graceDeadlineMs(1_000, 900)).toBe(1_100)
    expect(entry.graceDeadlineMs(1_000, 5_000)).toBe(1_100)
    // Zero is another length, and so is the first one after it.
    expect(entry.graceDeadlineMs(0, 5_000)).toBe(5_000)
    expect(entry.graceDeadlineMs(1_000, 6_000)).toBe(7_000)
    expect(entry.graceDeadlineMs(250, 6_100)).toBe(6_350)
    expect(entry.graceDeadlineMs(250, 6_200)).toBe(6_350)
    // A catalog has no need of a grace; once it is too old, a new grace begins.
    entry.publish(entry.ticket(), catalogOf('s', [tool('a')], nowMs))
    expect(entry.graceDeadlineMs(250, 6_250)).toBeUndefined()
    nowMs = DROPPED_AFTER_MS + 1
    expect(entry.graceDeadlineMs(250, 9_000)).toBe(9_250)
    // Without a cache each set has its own.
    entry.disable()
    expect(entry.graceDeadlineMs(250, 9_100)).toBeUndefined()
  })
})

describe('many entries', () => {
  verifies('conn.079', () => {
    const cache = new CatalogCache({ platform: nodePlatform, entriesMax: 2 })
    const publish = (name: string): CatalogCacheEntry => {
      const entry = cache.entry(scopeOf(named(name)))
      entry.publish(entry.ticket(), catalogOf(name, [tool(name)]))
      return entry
    }
    const [first, second] = [publish('a'), publish('b')]
    expect(cache.entry(scopeOf(named('a')))).toBe(first) // used again
    publish('c')
    expect(cache.entry(scopeOf(named('a')))).toBe(first)
    expect(cache.entry(scopeOf(named('b')))).not.toBe(second)
    expect(namesIn(second)).toEqual(['b']) // who holds it still does
  })

  test('more servers than the limit all have one', async () => {
    const cache = new CatalogCache({ platform: nodePlatform, entriesMax: 2 })
    const scopes = Array.from({ length: 5 }, (_, index) => scopeOf(named(`s${index}`)))
    await cache.load(scopes)
    const entries = scopes.map((scope) => cache.entry(scope))
    expect(scopes.map((scope) => cache.entry(scope))).toEqual(entries)
    expect(new Set(entries).size).toBe(5)
    expect(scopes.every((scope, index) => cache.entry(scope) === entries[index])).toBe(true)
  })

  test('the default is 256 entries', () => {
    const cache = new CatalogCache({ platform: nodePlatform })
    const first = cache.entry(scopeOf(named('s0')))
    for (let index = 1; index < 256; index++) cache.entry(scopeOf(named(`s${index}`)))
    expect(cache.entry(scopeOf(named('s0')))).toBe(first)
    const second = cache.entry(scopeOf(named('s1')))
    for (let index = 256; index < 512; index++) cache.entry(scopeOf(named(`s${index}`)))
    expect(cache.entry(scopeOf(named('s1')))).not.toBe(second)
  })
})

describe('on disk', () => {
  const scope: CacheScope = scopeOf(named('s'))
  const publish = (cache: CatalogCache, catalog: CachedCatalog, place = scope): void => {
    const entry = cache.entry(place)
    entry.publish(entry.ticket(), catalog)
  }
  async function reloaded(store: KeyValueStore, place = scope, dateMs?: () => number): Promise<CatalogCacheEntry> {
    const cache = cacheOver(store, dateMs)
    await cache.load([place])
    return cache.entry(place)
  }

  test('a catalog comes back in the next process with everything but its annotations', async () => {
    const store = filesIn(newFolder())
    const cache = cacheOver(store)
    const listed = [
      tool('a', { description: 'Does a.', annotations: { readOnlyHint: true, title: 'T' } }),
      tool('hidden', { _meta: { ui: { visibility: [] } } }),
      tool('a'),
      tool('dirty', { description: 'a\u200bb' }),
    ]
    publish(cache, { ...catalogOf('s', listed), identity: { ...IDENTITY, instructions: 'Be nice.' } })
    const before = cache.entry(scope).snapshot
    await cache.flush()
    const after = (await reloaded(store)).snapshot
    expect(after?.listing.tools).toEqual([
      {
        rawName: 'a',
        title: 'T',
        description: 'Does a.',
        visibleToModel: true,
        definition: { ...tool('a'), description: 'Does a.', title: 'T' },
      },
      { rawName: 'hidden', title: undefined, description: undefined, visibleToModel: false, definition: listed[1] },
      {
        rawName: 'dirty',
        title: undefined,
        description: 'ab',
        visibleToModel: true,
        definition: { ...tool('dirty'), description: 'ab' },
      },
    ])
    expect(after?.listing.notes).toEqual(before?.listing.notes)
    expect(after?.listing.notes).toHaveLength(2)
    expect(after?.identity).toEqual({ ...IDENTITY, instructions: 'Be nice.' })
    expect(after?.listedAtMs).toBe(before?.listedAtMs)
  })

  test('it is looked for once, and what cannot be read is not there', async () => {
    const failing = Object.assign(inMemory(), { get: () => Promise.reject(new Error('no disk')) })
    const cache = cacheOver(failing)
    await cache.load([scope])
    expect(cache.entry(scope).snapshot).toBeUndefined()
    expect(cache.problems).toEqual([{ server: 's', because: 'no disk' }])
    await cache.load([scope])
    expect(cache.problems).toHaveLength(1)
  })

  test('what was listed before the disk answered stays', async () => {
    const store = inMemory()
    const first = cacheOver(store)
    publish(first, catalogOf('s', [tool('kept')]))
    await first.flush()
    const cache = cacheOver(store)
    const loading = cache.load([scope])
    publish(cache, catalogOf('s', [tool('listed')]))
    await loading
    expect(namesIn(cache.entry(scope))).toEqual(['listed'])
  })

  verifies('conn.083', async () => {
    const directory = newFolder()
    const store = filesIn(directory)
    const cache = cacheOver(store)
    publish(cache, catalogOf('s', [tool('a')]))
    await cache.flush()
    const path = join(directory, `${scope.key}.json`)
    const good = await readFile(path, 'utf8')
    const read = async (content: string): Promise<string | undefined> => {
      await writeFile(path, content, { mode: 0o600 })
      const next = cacheOver(store)
      await next.load([scope])
      return next.entry(scope).snapshot === undefined ? next.problems[0]?.because : 'read'
    }
    expect(await read(good)).toBe('read')
    expect(await read(good.replace('"version":1', '"version":0'))).toBe('another version of Convoke wrote it')
    expect(await read('{"version":1')).toBe('it is no JSON')
    expect(await read('[]')).toBe('it is no object')
    expect(await read(good.replace('"server":"s"', '"server":"t"'))).toBe('it is of another server')
    expect(await read(`${good}${' '.repeat(32 * 1024 * 1024)}`)).toBe('it has more than 33554432 bytes')
    // Written whole or not at all, beside it first; nothing else is left.
    await writeFile(path, good, { mode: 0o600 })
    const { ino } = await stat(path)
    // Of two listings that are on their way at once the one that began later is on disk, although the other one came last.
    const entry = cache.entry(scope)
    const [older, newer] = [entry.ticket(), entry.ticket()]
    entry.publish(newer, catalogOf('s', [tool('newer')]))
    const writing = cache.flush()
    entry.publish(older, catalogOf('s', [tool('older')]))
    await Promise.all([writing, cache.flush()])
    expect(namesIn(await reloaded(store))).toEqual(['newer'])
    expect((await stat(path)).ino).not.toBe(ino)
    expect(await readdir(directory)).toEqual([`${scope.key}.json`])
  })

  test.each<[string, object]>([
    ['no time', { listedAtMs: 'x' }],
    ['no identity', { identity: undefined }],
    ['an identity without a protocol', { identity: { ...IDENTITY, protocolVersion: 1 } }],
    ['an identity without an introduction', { identity: { ...IDENTITY, serverInfo: 1 } }],
    ['an identity without capabilities', { identity: { ...IDENTITY, capabilities: [] } }],
    ['instructions that are no text', { identity: { ...IDENTITY, instructions: 1 } }],
    ['no tools', { tools: {} }],
    ['a tool that is none', { tools: [1] }],
    ['a tool without a name', { tools: [{ inputSchema: {} }] }],
    ['a tool without a schema', { tools: [{ name: 'a' }] }],
    ['too many tools', { tools: Array.from({ length: 8_193 }, () => tool('a')) }],
    ['no notes', { notes: undefined }],
    ['a note that is none', { notes: [1] }],
    ['a note without an item', { notes: [{ kind: 'cut', reason: 'r' }] }],
    ['a note without a reason', { notes: [{ kind: 'cut', item: 'i' }] }],
    ['a note of another kind', { notes: [{ kind: 'renamed', item: 'i', reason: 'r' }] }],
    ['too many notes', { notes: Array.from({ length: 501 }, () => ({ kind: 'cut', item: 'i', reason: 'r' })) }],
  ])('a file with %s is not used', (_, change) => {
    const good = { version: 1, server: 's', listedAtMs: 1, identity: IDENTITY, notes: [], tools: [tool('a')] }
    expect(readCatalog(scope, JSON.stringify(good)).kind).toBe('read')
    expect(readCatalog(scope, JSON.stringify({ ...good, ...change }))).toEqual({
      kind: 'ignored',
      because: 'its shape is wrong',
    })
  })

  test('a catalog older than a week is not taken up', async () => {
    const store = inMemory()
    const cache = cacheOver(store, () => 1_000)
    publish(cache, catalogOf('s', [tool('a')], 1_000))
    await cache.flush()
    const nothing = await reloaded(store, scope, () => 1_000 + DROPPED_AFTER_MS + 1)
    expect(nothing.snapshot).toBeUndefined()
    const stale = await reloaded(store, scope, () => 1_000 + DROPPED_AFTER_MS)
    expect([namesIn(stale), stale.staleBecause]).toEqual([['a'], expect.stringMatching(/24 hours/)])
  })

  test('an unchanged catalog is written once an hour at most, a changed one always', async () => {
    let nowMs = 10_000_000
    const writes: string[] = []
    const memory = inMemory(() => nowMs)
    const store: KeyValueStore = {
      get: (key) => memory.get(key),
      set: (key, value) => {
        writes.push(key)
        return memory.set(key, value)
      },
      remove: (key) => memory.remove(key),
      keys: (prefix) => memory.keys(prefix),
      compareAndSwap: (key, expected, value) => memory.compareAndSwap(key, expected, value),
      lock: (key, options) => memory.lock(key, options),
    }
    const cache = cacheOver(store, () => nowMs)
    const publishAndFlush = async (name: string): Promise<number> => {
      publish(cache, catalogOf('s', [tool(name)], nowMs))
      await cache.flush()
      return writes.length
    }
    expect(await publishAndFlush('a')).toBe(1)
    nowMs += 3_600_000
    expect(await publishAndFlush('a')).toBe(1)
    expect(await publishAndFlush('b')).toBe(2)
    nowMs += 3_600_001
    expect(await publishAndFlush('b')).toBe(3)
    // So does the next process, which has read it.
    const next = cacheOver(store, () => nowMs)
    await next.load([scope])
    publish(next, catalogOf('s', [tool('b')], nowMs))
    await next.flush()
    expect(writes).toHaveLength(3)
  })

  test('nobody waits for the disk, and what is published is on it a moment later', async () => {
    const directory = newFolder()
    const cache = cacheOver(filesIn(directory))
    publish(cache, catalogOf('s', [tool('a')]))
    expect(await readdir(root)).not.toContain(`${count}`)
    await expect.poll(() => readdir(directory).catch(() => []), { timeout: 5_000 }).toEqual([`${scope.key}.json`])
    await cache.flush()
  })

  test('a full disk cache lets the catalog go that was written longest ago', async () => {
    const directory = newFolder()
    const places = ['a', 'b', 'c'].map((name) => scopeOf(named(name)))
    for (const [index, place] of places.entries()) {
      // Each of another process, which sees what the ones before it have left.
      const cache = cacheOver(filesIn(directory, { ...CATALOG_STORE_LIMITS, keysMax: 2 }))
      publish(cache, catalogOf(place.server, [tool('t')]), place)
      await cache.flush()
      if (index < 2) await utimes(join(directory, `${place.key}.json`), index + 1, index + 1)
    }
    const left = new Set(await readdir(directory))
    expect(places.map(({ key }) => left.has(`${key}.json`))).toEqual([false, true, true])
    expect(CATALOG_STORE_LIMITS).toEqual({
      keysMax: 1_024,
      totalBytesMax: 64 * 1024 * 1024,
      valueBytesMax: 32 * 1024 * 1024,
      whenFull: 'drop-oldest',
    })
  })
})

describe('on a real server', () => {
  verifies('conn.080', async () => {
    const capabilities = { tools: {}, experimental: { 'convoke/tool-catalog-cache': { cacheable: false } } }
    await using server = await startScriptedHttp({ tools: 3, capabilities })
    const definition = http('s', server.url)
    const place = scopeOf(definition)
    const store = filesIn(newFolder())
    const earlier = cacheOver(store)
    const kept = earlier.entry(place)
    kept.publish(kept.ticket(), catalogOf('s', [tool('kept')]))
    await earlier.flush()
    const cache = cacheOver(store)
    await cache.load([place])
    const entry = cache.entry(place)
    expect(namesIn(entry)).toEqual(['kept'])
    await using live = wired(definition, { cache: entry })
    await live.ready()
    expect([entry.isDisabled, entry.snapshot, live.view.cached]).toEqual([true, undefined, undefined])
    expect(live.view.live?.tools).toHaveLength(3)
    await live.catalog.refresh()
    expect(entry.snapshot).toBeUndefined()
    await cache.flush()
    expect(await store.keys()).toEqual([])
  })

  test('what it lists is in the cache under what it said of itself, and comes back as it was', async () => {
    await using server = await startScriptedHttp({ tools: 3, instructions: 'Be nice.', name: 'one' })
    const definition = http('s', server.url)
    const place = scopeOf(definition)
    const store = filesIn(newFolder())
    const cache = cacheOver(store)
    await using live = wired(definition, { cache: cache.entry(place) })
    await live.ready()
    await cache.flush()
    const next = cacheOver(store)
    await next.load([place])
    const view = viewOf(next.entry(place))
    expect(view.serverInfo).toMatchObject({ name: 'one' })
    expect(view.cached?.tools.map(({ rawName }) => rawName)).toEqual(
      live.view.live?.tools.map(({ rawName }) => rawName),
    )
    expect(view.cached?.facts).toMatchObject({ state: 'cached', instructions: 'Be nice.' })
    expect(next.entry(place).snapshot?.identity).toEqual(live.catalog.identity)
  })
})
