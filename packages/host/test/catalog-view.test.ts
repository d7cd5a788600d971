// What one member shows of a listing: filter, modes, origin, names and the reasons for all of it.
import { defineServer, type JsonObject, type ServerDefinition } from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { nodePlatform } from '@convoke/wire'
import { describe, expect, test } from 'vitest'
import { appMetaOf, connectorOf } from '../src/catalog/connectors.ts'
import { CatalogCache, CatalogView, type NamePolicy, type ToolView, toolLife, toolView } from '../src/catalog/index.ts'
import { HELD_BACK_MS_MAX, ReadLock } from '../src/catalog/read-lock.ts'
import { callableName, namespaceDescription, namespaceOf, shownTitle, withProvenance } from '../src/catalog/shaping.ts'
import { resolveTraits } from '../src/config/index.ts'
import { catalogOf, hostedCatalogOf, named, scopeOf, tool, wired } from './catalog-support.ts'
import { startRawHttp } from './raw-http.ts'
import { http } from './support.ts'

const POLICY: NamePolicy = { nameCharsMax: 48 }
const cache = new CatalogCache({ platform: nodePlatform })
let count = 0

/** A view of kept tools: nothing has to be started to see how they are shown. */
function viewOf(definition: ServerDefinition, tools: readonly JsonObject[], plugins?: readonly string[]): CatalogView {
  const traits = resolveTraits(definition)
  const place = scopeOf(
    definition,
    traits.isHosted ? { credentials: { kind: 'account', id: `${++count}` } } : { cwd: `/${++count}` },
  )
  const entry = cache.entry(place)
  entry.publish(
    entry.ticket(),
    traits.isHosted ? hostedCatalogOf(definition.name, tools) : catalogOf(definition.name, tools),
  )
  const { catalog } = wired(definition)
  const attribution =
    plugins === undefined
      ? undefined
      : { pluginsOfServer: () => plugins, pluginsOfConnector: () => [], allowsConnector: () => true }
  return new CatalogView({ catalog, definition, traits, cache: entry, attribution })
}
const shownOf = (views: readonly CatalogView[], policy = POLICY): ToolView =>
  toolView(
    views.flatMap(({ cached }) => cached ?? []),
    policy,
  )

describe('what stands on every tool', () => {
  verifies('conn.054', async () => {
    await using server = await startScriptedHttp({ tools: 2 })
    const definition = http('s', server.url, { parallelToolCalls: true })
    await using live = wired(definition)
    await live.ready()
    const { tools } = toolView(
      [live.view.live].flatMap((one) => one ?? []),
      POLICY,
    )
    const { origin } = new URL(server.url)
    expect(tools.map((one) => [one.parallelToolCalls, one.origin, one.state])).toEqual([
      [true, origin, 'live'],
      [true, origin, 'live'],
    ])
    // A view of another day over the same listing says what its own definition says.
    const { catalog } = live
    const later = new CatalogView({
      catalog,
      definition: http('s', server.url),
      traits: { isHosted: false },
      previous: live.view,
    })
    expect(
      toolView(
        [later.live].flatMap((one) => one ?? []),
        POLICY,
      ).tools[0]?.parallelToolCalls,
    ).toBe(false)
    expect(shownOf([viewOf(named('p'), [tool('a')])]).tools[0]?.origin).toBe('stdio')
    expect(shownOf([viewOf(http('b', 'data:x'), [tool('a')])]).tools[0]).not.toHaveProperty('origin')
  })

  verifies('conn.055', () => {
    const definition = named('s', {
      approvalMode: 'writes',
      environment: 'box',
      tools: { overrides: { own: { approvalMode: 'prompt' }, other: { idempotent: true } } },
    })
    const { tools } = shownOf([viewOf(definition, [tool('own'), tool('other'), tool('constructor')])])
    expect(tools.map((one) => [one.rawName, one.approvalMode, one.environment])).toEqual([
      ['constructor', 'writes', 'box'],
      ['other', 'writes', 'box'],
      ['own', 'prompt', 'box'],
    ])
  })

  verifies('conn.070', () => {
    const tools = [tool('a'), tool('b'), tool('c')]
    const shown = shownOf([
      viewOf(named('one', { tools: { allow: ['a', 'b'], deny: ['b'] } }), tools),
      viewOf(named('two', { tools: { allow: [] } }), tools),
      viewOf(named('three'), tools),
    ])
    expect(shown.tools.map(({ name }) => name)).toEqual(['one__a', 'three__a', 'three__b', 'three__c'])
    expect(
      shown.notes.filter(({ kind }) => kind === 'filtered').map(({ server, item }) => `${server}/${item}`),
    ).toEqual(['one/b', 'one/c', 'two/a', 'two/b', 'two/c'])
  })

  verifies('conn.071', () => {
    const rows: [unknown, boolean][] = [
      [undefined, true],
      [[], false],
      [['app'], false],
      [['model'], true],
      [['app', 'model'], true],
      ['app', true],
      [{ model: false }, true],
    ]
    const tools = rows.map(([visibility], index) => tool(`t${index}`, { _meta: { ui: { visibility } } }))
    const view = viewOf(named('s'), tools)
    expect(shownOf([view]).tools.map(({ visibleToModel }) => visibleToModel)).toEqual(
      rows.map(([, visible]) => visible),
    )
    expect(view.hasVisibleCachedTools).toBe(true)
    expect(viewOf(named('s'), [tools[1] ?? {}]).hasVisibleCachedTools).toBe(false)
    expect(viewOf(named('s', { tools: { deny: ['a'] } }), [tool('a')]).hasVisibleCachedTools).toBe(false)
  })

  test('what a view has made stays while nothing that it reads has changed, also over a new definition', () => {
    const make = (more: Partial<ServerDefinition>, previous?: CatalogView): CatalogView => {
      const { catalog } = wired(named('s', more))
      const entry = cache.entry(scopeOf(named('s'), { cwd: '/same' }))
      if (entry.snapshot === undefined) entry.publish(entry.ticket(), catalogOf('s', [tool('a'), tool('b')]))
      return new CatalogView({
        catalog,
        definition: named('s', more),
        traits: { isHosted: false },
        cache: entry,
        previous,
      })
    }
    const first = make({})
    const made = first.cached
    expect(make({}, first).cached).toBe(made)
    expect(make({ startupTimeoutMs: 5 }, first).cached).toBe(made)
    const policies: Partial<ServerDefinition>[] = [
      { tools: { deny: ['a'] } },
      { approvalMode: 'prompt' },
      { parallelToolCalls: true },
      { environment: 'box' },
      { omitToolsFrom: ['model'] },
      { plugin: { id: 'p', displayName: 'P', isSelected: false } },
    ]
    for (const policy of policies) expect(make(policy, first).cached).not.toBe(made)
    expect(first.cached?.tools).toHaveLength(2)
  })
})

describe('names', () => {
  const namespaces = (policy: Partial<NamePolicy>, ...servers: string[]): string[] => {
    const shown = shownOf(
      servers.map((server) => viewOf(named(server), [tool('echo')])),
      { ...POLICY, ...policy },
    )
    return shown.tools.map((one) => Object.values(shown.namespaced(one) ?? {}).join(' '))
  }

  verifies('conn.053', () => {
    expect(namespaces({}, 'rmcp')).toEqual(['mcp__rmcp echo'])
    expect(namespaces({ toolNamePrefix: 'none' }, 'rmcp')).toEqual(['rmcp echo'])
  })

  verifies('conn.068', () => {
    expect(namespaces({ unprefixedServers: ['plain', 'a.b'] }, 'plain', 'plain2', 'a.b', 'a_c')).toEqual([
      'a_b echo',
      'mcp__a_c echo',
      'plain echo',
      'mcp__plain2 echo',
    ])
    // By the server's own key, also where a connector makes another namespace.
    const apps = http('apps', 'https://a.example/mcp', { hosted: true, auth: 'account' })
    const listed = tool('calendar_list', { _meta: { connector_id: 'c', connector_name: 'Calendar' } })
    const shown = shownOf([viewOf(apps, [listed])], { ...POLICY, unprefixedServers: ['apps__calendar'] })
    const [first] = shown.tools
    expect(first === undefined ? undefined : shown.namespaced(first)).toEqual({
      namespace: 'mcp__apps__calendar',
      tool: '_list',
    })
    const bare = shownOf([viewOf(apps, [listed])], { ...POLICY, unprefixedServers: ['apps'] })
    expect(bare.tools.map((one) => bare.namespaced(one)?.namespace)).toEqual(['apps__calendar'])
  })

  verifies('conn.069', () => {
    expect(namespaces({ toolNamePrefix: 'none' }, 'one', 'two', 'mcp__three')).toEqual([
      'mcp__three echo',
      'one echo',
      'two echo',
    ])
  })

  verifies('conn.062', () => {
    const view = viewOf(named('s'), [tool('twice', { description: 'first' }), tool('twice', { description: 'second' })])
    expect(shownOf([view]).tools.map(({ description }) => description)).toEqual(['first'])
    expect(view.notes).toEqual([
      { server: 's', item: 'twice', kind: 'rejected', reason: 'a second tool of the same name; the first one is kept' },
    ])
  })

  test('the namespaced limit can be raised to what no client refuses', () => {
    const long = 'x'.repeat(100)
    expect(namespaces({ namespacedCharsMax: 128 }, long)).toEqual([`mcp__${long} echo`])
    expect(namespaces({}, long)[0]?.replace(' ', '__')).toHaveLength(64)
  })

  test('connectors of hosted servers are namespaces of their own, behind all other servers', () => {
    const apps = http('apps', 'https://a.example/mcp', { hosted: true, auth: 'account' })
    const meta = (connector_id: string, connector_name?: string): JsonObject => ({
      _meta: { connector_id, connector_name },
    })
    const shown = shownOf([
      viewOf(apps, [
        tool('Google Calendar_list', meta('c1', 'Google Calendar')),
        tool('google_calendar_make', meta('c1', 'Google Calendar')),
        tool('plain', meta('c2')),
        tool('linear', meta('linear', 'Linear')),
      ]),
      viewOf(named('zebra'), [tool('run')]),
    ])
    expect(shown.tools.map(({ name }) => name)).toEqual([
      'zebra__run',
      'apps__google_calendar__list',
      'apps__google_calendar__make',
      'apps__linear__linear',
      'apps__plain',
    ])
    expect(shown.tools.map((one) => shown.namespaced(one)?.tool)).toEqual(['run', '_list', '_make', 'linear', 'plain'])
    expect(shown.tools.map((one) => shown.namespaceDescription(one))).toEqual([
      'Tools in the mcp__zebra namespace.',
      'Tools for working with Google Calendar.',
      'Tools for working with Google Calendar.',
      'Tools for working with Linear.',
      'Tools in the mcp__apps namespace.',
    ])
  })
})

describe('the reasons', () => {
  test('every tool that is missing or has another name says why', () => {
    const long = 'x'.repeat(60)
    const shown = shownOf([
      viewOf(named('a.b', { omitToolsFrom: ['gateway'] }), [tool('t')]),
      viewOf(named('a/b'), [tool('t')]),
      viewOf(named('s', { tools: { deny: ['no'] } }), [
        tool('no'),
        tool('q.r'),
        tool('q/r'),
        tool('ok'),
        tool(long),
        tool('e e'),
      ]),
      viewOf(named('h'), [tool('app', { _meta: { ui: { visibility: ['app'] } } })]),
    ])
    const notes = shown.notes.map(
      ({ server, item, kind, reason }) => `${server}/${item.slice(0, 5)} ${kind}: ${reason}`,
    )
    const collides = 'another server has a name that looks the same; both got a digest'
    const contested = 'another tool wants the same name; all of them got a digest'
    expect(notes.map((note) => note.replace(/: [a-z0-9_]+__\w*: /, ': '))).toEqual([
      'a.b/* omitted: its tools are not shown to: gateway (omitToolsFrom)',
      `a.b/t renamed: ${collides}`,
      `a/b/t renamed: ${collides}`,
      'h/app hidden: its server does not want models to see it (_meta.ui.visibility)',
      's/no filtered: the configuration does not allow it (tools.allow, tools.deny)',
      `s/q.r renamed: ${contested}`,
      `s/q/r renamed: ${contested}`,
      's/xxxxx renamed: the name was too long; it was cut and got a digest',
      's/e e renamed: characters that no model accepts in a name were replaced',
    ])
    expect(shown.notes).toBe(shown.notes)
  })

  test('the life of a tool tells everything about it', () => {
    const definition = named('s', {
      tools: { deny: ['denied'] },
      omitToolsFrom: ['command'],
      plugin: { id: 'p', displayName: 'Pack', isSelected: false },
      source: { layer: 'user', file: '/home/convoke.json', line: 3 },
    })
    const view = viewOf(definition, [
      tool('a b'),
      tool('denied'),
      tool('app', { _meta: { ui: { visibility: [] } } }),
      { name: 'huge', inputSchema: { type: 'object', description: 'x'.repeat(1024 * 1024) } },
    ])
    const other = viewOf(named('t', { tools: { allow: ['app'] } }), [tool('app'), tool('more')])
    const facts = { views: [view, other], shown: shownOf([view, other]), names: POLICY }
    const [life] = toolLife('s__a_b', facts)
    expect(life).toEqual({
      server: 's',
      rawName: 'a b',
      declaredBy: { source: definition.source, plugin: 'Pack' },
      shownAs: { flat: 's__a_b', namespaced: { namespace: 'mcp__s', tool: 'a_b' } },
      missingBecause: undefined,
      filter: { verdict: 'allowed', because: 'tools.deny does not name it' },
      visibility: 'visible',
      omittedFrom: ['command'],
      renamedBecause: 'characters that no model accepts in a name were replaced',
      connector: undefined,
      from: 'cached',
      sinceAtMs: view.cachedAtMs,
      cache: { kind: 'kept', atMs: view.cachedAtMs, staleBecause: undefined },
    })
    const brief = (text: string): unknown[] =>
      toolLife(text, facts).map(({ server, rawName, missingBecause, filter, visibility, from }) => [
        `${server}/${rawName}`,
        missingBecause,
        filter.because,
        visibility,
        from,
      ])
    expect(brief('s/denied')).toEqual([
      [
        's/denied',
        'the configuration does not allow it (tools.allow, tools.deny)',
        'tools.deny names it',
        'visible',
        'nowhere',
      ],
    ])
    expect(brief('s__denied')).toEqual(brief('s/denied'))
    expect(brief('app')).toEqual([
      ['s/app', undefined, 'tools.deny does not name it', 'hidden', 'cached'],
      ['t/app', undefined, 'tools.allow names it', 'visible', 'cached'],
    ])
    expect(brief('t/more')).toEqual([
      [
        't/more',
        'the configuration does not allow it (tools.allow, tools.deny)',
        'tools.allow does not name it',
        'visible',
        'nowhere',
      ],
    ])
    expect(brief('huge')).toEqual([
      [
        's/huge',
        'its definition has more than 1048576 characters of text',
        'tools.deny does not name it',
        'unknown',
        'nowhere',
      ],
    ])
    expect(brief('s/never')).toEqual([
      ['s/never', 'its server does not list it', 'tools.deny does not name it', 'unknown', 'nowhere'],
    ])
    expect([brief('never'), brief('s/')]).toEqual([[], []])
    // A tool that is known and not shown, because its server is not there.
    const absent = toolLife('s/app', { ...facts, shown: shownOf([other]) })
    expect(absent.map(({ missingBecause, from, shownAs }) => [missingBecause, from, shownAs])).toEqual([
      ['its server is not ready', 'nowhere', undefined],
    ])
  })

  test('a life without a cache says why there is none', async () => {
    const definition = named('s')
    const { catalog } = wired(definition)
    const traits = { isHosted: false }
    const entry = cache.entry(scopeOf(definition, { cwd: '/life' }))
    const lives = (init: object): unknown[] => {
      const view = new CatalogView({ catalog, definition, traits, ...init })
      return toolLife('s/t', { views: [view], shown: shownOf([]), names: POLICY }).map((life) => [
        life.cache,
        life.missingBecause,
        life.filter,
      ])
    }
    const unlisted = 'its server has not listed its tools yet, and no earlier listing is kept'
    const free = { verdict: 'allowed', because: 'there is no filter' }
    expect(lives({})).toEqual([[{ kind: 'none', because: 'this host keeps no catalogs' }, unlisted, free]])
    expect(lives({ uncachedBecause: 'a helper' })).toEqual([[{ kind: 'none', because: 'a helper' }, unlisted, free]])
    expect(lives({ cache: entry })).toEqual([[{ kind: 'empty' }, unlisted, free]])
    entry.disable()
    expect(lives({ cache: entry })).toEqual([
      [{ kind: 'none', because: 'its server asks that its catalog is not kept' }, unlisted, free],
    ])
    // Live tools say when they were listed.
    await using server = await startScriptedHttp({ tools: [{ name: 't' }] })
    await using live = wired(http('w', server.url))
    await live.ready()
    const shown = toolView(
      [live.view.live].flatMap((one) => one ?? []),
      POLICY,
    )
    const [life] = toolLife('w/t', { views: [live.view], shown, names: POLICY })
    expect(life).toMatchObject({ from: 'live', sinceAtMs: live.catalog.listedAtMs, cache: { kind: 'none' } })
    expect(life?.sinceAtMs).toBeGreaterThan(0)
  })

  test('a text that fits very many tools gives the first twenty', () => {
    const views = Array.from({ length: 25 }, (_, index) => viewOf(named(`s${index}`), [tool('same')]))
    expect(toolLife('same', { views, shown: shownOf(views), names: POLICY })).toHaveLength(20)
  })
})

describe('connectors and plugins', () => {
  test.each<[string, unknown, unknown]>([
    ['no meta', undefined, undefined],
    ['no connector', {}, undefined],
    ['a blank id', { connector_id: '  ' }, undefined],
    ['a name alone', { connector_name: 'N' }, undefined],
    ['an id that is no text', { connector_id: 1 }, undefined],
    ['an id', { connector_id: ' c ' }, { id: 'c' }],
    [
      'name and description',
      { connector_id: 'c', connector_name: ' N ', connector_description: 'D' },
      { id: 'c', name: 'N', description: 'D' },
    ],
    [
      'the second choices',
      { connector_id: 'c', connector_name: '', connector_display_name: 'N', connectorDescription: 'D' },
      { id: 'c', name: 'N', description: 'D' },
    ],
    [
      'our own key',
      { 'convoke/connector': { id: 'o', name: 'O', description: 'P' }, connector_id: 'c' },
      { id: 'o', name: 'O', description: 'P' },
    ],
    ['our own key without an id', { 'convoke/connector': { name: 'O' }, connector_id: 'c' }, undefined],
    ['a long id', { connector_id: 'i'.repeat(300) }, { id: `${'i'.repeat(255)}…` }],
  ])('a tool with %s', (_, meta, connector) => {
    expect(connectorOf(meta)).toEqual(connector)
  })

  test.each<[unknown, unknown]>([
    [undefined, undefined],
    [{ _codex_apps: 1 }, undefined],
    [{ _codex_apps: { a: 1 } }, { key: '_codex_apps', value: { a: 1 }, callIdName: 'call_id' }],
    [
      { 'convoke/app': { b: 1 }, _codex_apps: { a: 1 } },
      { key: 'convoke/app', value: { b: 1 }, callIdName: 'callId' },
    ],
  ])('%j gives back %j with a call', (meta, app) => {
    expect(appMetaOf(meta)).toEqual(app)
  })

  test.each<[string, string | undefined, string, string]>([
    ['list', undefined, 'c', 'list'],
    ['calendar_list', 'Calendar', 'c', '_list'],
    ['CALENDAR_list', 'calendar', 'c', '_list'],
    ['Google Calendar_list', 'Google Calendar', 'c', '_list'],
    ['calendar', 'Calendar', 'x9', 'calendar'],
    ['c1_list', undefined, 'c1', '_list'],
    ['c1_list', 'Other', 'c1', '_list'],
    ['a.list', 'Other', 'c1', 'a.list'],
  ])('%s of %s (%s) is called %s', (rawName, name, id, callable) => {
    expect(callableName(rawName, name === undefined ? { id } : { id, name })).toBe(callable)
  })

  test('an ordinary tool is called what it is called, in the namespace of its server', () => {
    expect([callableName('a.b', undefined), namespaceOf('s', undefined), namespaceOf('s', { id: 'c' })]).toEqual([
      'a.b',
      's',
      's',
    ])
    expect(namespaceOf('s', { id: 'c', name: 'Google Calendar' })).toBe('s__google_calendar')
  })

  test.each<[string, string | undefined, string]>([
    ['List', undefined, 'List'],
    ['Calendar: List', 'calendar', 'List'],
    ['Calendar List', 'Calendar', 'List'],
    ['Calendar', 'Calendar', 'Calendar'],
    ['Calendar - ', 'Calendar', 'Calendar - '],
    ['Other', 'Calendar', 'Other'],
  ])('the title %j behind %s is %j', (title, name, shown) => {
    expect(shownTitle(title, name === undefined ? undefined : { id: 'c', name })).toBe(shown)
  })

  test.each<[string | undefined, readonly string[], string | undefined]>([
    [undefined, [], undefined],
    [' as it is ', [], ' as it is '],
    [undefined, ['A'], 'This tool is part of plugin `A`.'],
    ['  ', ['A'], 'This tool is part of plugin `A`.'],
    ['Does a', ['A'], 'Does a. This tool is part of plugin `A`.'],
    ['Does a.', ['A', 'B'], 'Does a. This tool is part of plugins `A`, `B`.'],
    ['Really! ', ['A'], 'Really! This tool is part of plugin `A`.'],
    ['Why?', ['`x`'], "Why? This tool is part of plugin `'x'`."],
  ])('the description %j with the plugins %j', (description, plugins, text) => {
    expect(withProvenance(description, plugins)).toBe(text)
  })

  test('the tools of a plugin say so wherever they are shown, and their definition stays what the server sent', () => {
    const [first] = shownOf([viewOf(named('s'), [tool('a', { description: 'Does a' })], ['Pack'])]).tools
    expect(first).toMatchObject({ description: 'Does a. This tool is part of plugin `Pack`.', plugins: ['Pack'] })
    expect(first?.definition['description']).toBe('Does a')
    const own = viewOf(named('s', { plugin: { id: 'p', displayName: 'Pack', isSelected: false } }), [tool('a')])
    expect(shownOf([own]).tools[0]?.description).toBe('This tool is part of plugin `Pack`.')
  })

  test.each<[object | undefined, string, string]>([
    [undefined, ' Be nice. ', 'Be nice.'],
    [undefined, '  ', 'Tools in the n namespace.'],
    [{ id: 'c' }, 'Be nice.', 'Tools in the n namespace.'],
    [{ id: 'c', name: 'N' }, 'Be nice.', 'Tools for working with N.'],
    [{ id: 'c', name: 'N', description: 'D' }, 'Be nice.', 'D'],
  ])('a namespace with the connector %j and the instructions %j', (connector, instructions, text) => {
    const known = connector === undefined ? undefined : { id: 'c', ...connector }
    expect(namespaceDescription('n', { connector: known, instructions })).toBe(text)
  })
})

describe('readers and a writer', () => {
  test('a writer waits for those who read before it, and for nobody who came later', async () => {
    const lock = new ReadLock(nodePlatform)
    await lock.whenLeft()
    const [first, second] = [lock.read(), lock.read()]
    let isOver = false
    const writing = lock.whenLeft().then(() => {
      isOver = true
    })
    const later = lock.read()
    first()
    first()
    await Promise.resolve()
    expect([isOver, lock.readerCount]).toEqual([false, 2])
    second()
    await writing
    expect(lock.readerCount).toBe(1)
    later()
    expect(lock.readerCount).toBe(0)
  })

  test('a call that never ends does not hold a new listing back for ever', async () => {
    let ring: (() => void) | undefined
    const waits: number[] = []
    const platform = {
      ...nodePlatform,
      setTimer: (callback: () => void, ms: number) => {
        waits.push(ms)
        ring = callback
        return {}
      },
      clearTimer: () => {},
    }
    const lock = new ReadLock(platform)
    lock.read()
    const writing = lock.whenLeft()
    ring?.()
    await writing
    expect(waits).toEqual([HELD_BACK_MS_MAX])
  })

  test('a call that runs sees the listing it was prepared from until it is over; equal content is no new revision', async () => {
    const replies = [['a'], ['a'], ['b']]
    await using server = await startRawHttp({
      'tools/list': () => ({ result: { tools: (replies.shift() ?? []).map((name) => tool(name)) } }),
    })
    await using live = wired(http('s', server.url))
    await expect(live.catalog.refresh()).rejects.toMatchObject({ code: 'SERVER_NOT_READY' })
    await live.ready()
    const { listing } = live.catalog
    const leave = await live.catalog.read()
    await live.catalog.refresh() // equal: nothing to wait for
    expect([live.catalog.revision, live.catalog.listing]).toEqual([0, listing])
    const refreshed = live.catalog.refresh()
    await expect.poll(() => replies.length).toBe(0)
    expect([live.catalog.revision, live.catalog.listing]).toEqual([0, listing])
    leave()
    expect((await refreshed).tools.map(({ rawName }) => rawName)).toEqual(['b'])
    expect(live.catalog.revision).toBe(1)
    expect(live.events.filter(({ kind }) => kind === 'tool-catalog.changed')).toHaveLength(1)
  })

  test('the first listing of a renewed session waits for no call: they wait for it', async () => {
    const replies = [['a'], ['b']]
    await using server = await startRawHttp({
      'tools/list': () => ({ result: { tools: (replies.shift() ?? []).map((name) => tool(name)) } }),
    })
    await using live = wired(http('s', server.url))
    const session = await live.ready()
    const leave = await live.catalog.read()
    const beganAtMs = performance.now()
    await live.catalog.load(session, {})
    expect(performance.now() - beganAtMs).toBeLessThan(HELD_BACK_MS_MAX / 2)
    expect([live.catalog.revision, live.view.live?.tools.map(({ rawName }) => rawName)]).toEqual([1, ['b']])
    leave()
  })

  test('a connection that takes the place of another changes nothing when it lists the same', async () => {
    await using server = await startScriptedHttp({ tools: 3 })
    const definition = http('s', server.url)
    await using first = wired(definition)
    await first.ready()
    await using second = wired(definition, { previous: first.catalog })
    expect(second.catalog.listing).toBeUndefined()
    await second.ready()
    expect([second.catalog.listing, second.catalog.revision]).toEqual([first.catalog.listing, 0])
    expect(second.catalog).not.toBe(first.catalog)
    expect(second.events.some(({ kind }) => kind === 'tool-catalog.changed')).toBe(false)
    const view = new CatalogView({
      catalog: second.catalog,
      definition: defineServer(definition),
      traits: { isHosted: false },
      previous: first.view,
    })
    expect(first.view.live).toBe(first.view.live)
    expect(view.live?.tools).toBe(first.view.live?.tools)
  })
})
