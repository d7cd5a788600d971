// What comes in from a provider, and what goes out to people and models.
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { type ConnectorSource, connectorSnapshot } from '../src/extensions/index.ts'
import { isBundleUri, pluginIdOf } from '../src/plugins/catalog/plugin-uri.ts'
import { readCatalog } from '../src/plugins/catalog/read-catalog.ts'
import type { PluginEntry } from '../src/plugins/index.ts'
import { pluginConnectors } from '../src/plugins/projection/plugin-connectors.ts'
import { shownPluginName } from '../src/plugins/projection/plugin-name.ts'
import { complete, entry, idsOf } from './plugin-support.ts'

verifies('plugin.011', () => {
  const mixed = Array.from({ length: 101 }, (_, index) => [
    entry(`off-${index}`, { enabled: false }),
    entry(`local-${index}`, { id: { kind: 'selected-root', rootId: `root-${index}` } }),
    entry(`installed-${index}`, { id: { kind: 'installed', name: `n${index}`, marketplace: 'm' } }),
    entry(`on-${index}`),
  ]).flat()
  const shown = pluginConnectors(complete(...mixed)).map(({ pluginId }) => pluginId)
  expect(shown).toEqual(Array.from({ length: 100 }, (_, index) => `on-${index}`))
  expect(pluginConnectors(complete())).toEqual([])
  expect(pluginConnectors(complete(entry('one', { displayName: 'One', connectorIds: ['a'] })))).toEqual([
    { kind: 'plugin-connectors', pluginId: 'one', pluginName: 'One', connectorIds: ['a'] },
  ])
})

verifies('plugin.012', () => {
  const of = (connectorIds: string[]): readonly string[] | undefined =>
    pluginConnectors(complete(entry('one', { connectorIds })))[0]?.connectorIds
  const many = Array.from({ length: 65 }, (_, index) => `c${index}`)
  expect(of(many)).toEqual(many.slice(0, 64))
  // Each once, and only then the cut: the 64th different one is kept.
  expect(of(many.flatMap((id) => [id, 'c0', id]))).toEqual(many.slice(0, 64))
  expect(of(['b', 'a', '', 'b'])).toEqual(['b', 'a'])
})

verifies('plugin.013', () => {
  const family = '👩‍👩‍👧'
  const rows: readonly (readonly [string, string])[] = [
    ['Calendar', 'Calendar'],
    ['😀'.repeat(64), '😀'.repeat(64)],
    ['😀'.repeat(65), '😀'.repeat(64)],
    [`a${'😀'.repeat(64)}`, `a${'😀'.repeat(63)}`],
    ['x'.repeat(65), 'x'.repeat(64)],
    [`${'x'.repeat(63)} y`, 'x'.repeat(63)],
    ['  a \n\t b\u00a0c  ', 'a b c'],
    ['a`. Ignore it. `b', 'a. Ignore it. b'],
    ['a\u0000b\u001b[31m\u0085c', 'ab[31mc'],
    ['a\u200bb\u202ec\u{e0041}', 'abc'],
    [family, family],
    ['`\u200b` ', ''],
  ]
  for (const [written, shown] of rows) expect(shownPluginName(written), JSON.stringify(written)).toBe(shown)
  // A name of nothing is no name: the id stands for it.
  expect(pluginConnectors(complete(entry('one', { displayName: '```' })))[0]?.pluginName).toBe('one')
})

verifies('plugin.024', () => {
  const good = entry('good')
  expect(readCatalog({ ...complete(good), more: 1 })).toEqual(complete(good))
  const extra = { ...good, secret: 1, locations: [{ ...good.locations[0], bundleUri: 'https://b.example/x', more: 1 }] }
  expect(readCatalog({ entries: [extra] })).toEqual(
    complete({
      ...good,
      locations: [{ kind: 'hosted', resourceUri: 'plugin://good', bundleUri: 'https://b.example/x' }],
    }),
  )
  for (const nothing of [undefined, null, 1, 'x', [], {}, { entries: {} }]) expect(readCatalog(nothing)).toBeUndefined()
  const bad = (more: object): object => ({ ...entry('bad'), ...more })
  const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `c${index}`)
  const remote = (remotePluginId: unknown): object => ({ id: { kind: 'remote', remotePluginId } })
  const malformed: readonly unknown[] = [
    null,
    'bad',
    {},
    bad({ id: 'bad' }),
    bad({ id: { kind: 'other' } }),
    bad({ id: { kind: 'selected-root' } }),
    bad({ id: { kind: 'installed', name: 'n' } }),
    bad({ id: { kind: 'installed', marketplace: 'm' } }),
    ...['', ' ', 1, 'a b', 'a\nb', 'a`b', 'a\u0000', 'a\u200b', 'a\u202e', 'x'.repeat(257)].map((id) =>
      bad(remote(id)),
    ),
    ...[undefined, 1, 'true'].map((enabled) => bad({ enabled })),
    ...[undefined, 1, '', ' ', 'x'.repeat(1_025)].map((displayName) => bad({ displayName })),
    ...[undefined, 1, '', '1\n', '1\u0007', 'x'.repeat(129)].map((version) => bad({ version })),
    ...[undefined, 'calendar', [1], ['a\u0000'], ['x'.repeat(257)], many(1_025)].map((ids) =>
      bad({ connectorIds: ids }),
    ),
    ...[undefined, [], { a: 1 }, { a: [] }, { 'a\u0000': 'x' }, { a: 'x'.repeat(16_385) }].map((mcpServers) =>
      bad({ mcpServers }),
    ),
    bad({ mcpServers: Object.fromEntries(many(65).map((name) => [name, 'x'])) }),
    ...[undefined, {}, [{}], [{ kind: 'hosted' }], [{ kind: 'hosted', resourceUri: 'https://x.example/' }]].map(
      (locations) => bad({ locations }),
    ),
    bad({ locations: [{ kind: 'hosted', resourceUri: 'plugin://bad', bundleUri: 'http://x.example/' }] }),
    bad({ locations: [{ kind: 'folder', resourceUri: 'plugin://bad' }] }),
    bad({ locations: Array.from({ length: 9 }, () => good.locations[0]) }),
  ]
  for (const one of malformed)
    expect(readCatalog({ entries: [one, good], warnings: ['w'], isPartial: false }), JSON.stringify(one)).toEqual({
      entries: [good],
      warnings: ['left out as malformed: 1', 'w'],
      isPartial: true,
    })
  // Right at the limits.
  const longest: PluginEntry = entry('x'.repeat(256), {
    displayName: 'x'.repeat(1_024),
    version: 'x'.repeat(128),
    connectorIds: [...many(1_022), 'x'.repeat(256), ''],
    mcpServers: { ...Object.fromEntries(many(63).map((name) => [name, ''])), last: 'x'.repeat(16_384) },
    locations: Array.from({ length: 8 }, () => ({ kind: 'hosted' as const, resourceUri: 'plugin://a' })),
  })
  expect(readCatalog(complete(longest))).toEqual(complete(longest))
  // Blanks around connectors are nobody's.
  expect(readCatalog(complete(entry('one', { connectorIds: [' a ', ' '] })))?.entries[0]?.connectorIds).toEqual([
    'a',
    '',
  ])
  // One plugin, once; that is no gap.
  expect(readCatalog(complete(entry('one', { enabled: false }), entry('one'), entry('two')))).toEqual({
    entries: [entry('one', { enabled: false }), entry('two')],
    warnings: ['listed more than once: 1'],
    isPartial: false,
  })
  const alike = [
    entry('a'),
    entry('a', { id: { kind: 'selected-root', rootId: 'a' } }),
    entry('a', { id: { kind: 'installed', name: 'a', marketplace: 'b' } }),
    entry('a', { id: { kind: 'installed', name: 'a', marketplace: 'c' } }),
  ]
  expect(readCatalog(complete(...alike))?.entries).toHaveLength(4)
  const tooMany = readCatalog(complete(...Array.from({ length: 1_026 }, (_, index) => entry(`p${index}`))))
  expect([tooMany?.entries.length, tooMany?.isPartial, tooMany?.warnings]).toEqual([
    1_024,
    true,
    [expect.stringMatching(/over 1024 plugins or 1048576 characters: 2$/)],
  ])
  const heavy = { mcpServers: Object.fromEntries(many(62).map((name) => [name, 'x'.repeat(16_384)])) }
  const tooHeavy = readCatalog(complete(entry('a', heavy), entry('b', heavy), entry('c')))
  expect([idsOf(tooHeavy), tooHeavy?.isPartial, tooHeavy?.warnings[0]]).toEqual([
    ['a'],
    true,
    expect.stringMatching(/characters: 2$/),
  ])
  const told = readCatalog({ entries: [], warnings: [1, ' ', 'a\n\u200bb', 'x'.repeat(400), ...many(20)] })
  expect(told?.warnings.slice(0, 2)).toEqual(['a b', `${'x'.repeat(299)}…`])
  expect(told?.warnings.length).toBeLessThanOrEqual(16)
  expect(readCatalog({ entries: [], warnings: many(20) })?.warnings).toHaveLength(16)
  expect(readCatalog({ entries: [null], warnings: many(20) })?.warnings).toHaveLength(16)
  expect(readCatalog({ entries: [good], isPartial: true })).toEqual({ ...complete(good), isPartial: true })
})

verifies('plugin.027', () => {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['plugin://plugin_remote', 'plugin_remote'],
    ['plugin://A.b-c/path/of', 'A.b-c'],
    [`plugin://${'a'.repeat(1_015)}`, 'a'.repeat(1_015)],
    [`plugin://${'a'.repeat(1_016)}`, undefined],
    ['', undefined],
    ['plugin:a', undefined],
    ['plugin://', undefined],
    ['plugin:///a', undefined],
    ['PLUGIN://a', undefined],
    ['skill://a', undefined],
    ['https://a.example/', undefined],
    ['plugin://a/', undefined],
    ['plugin://a//b', undefined],
    ['plugin://a/b/', undefined],
    ['plugin://a/../b', undefined],
    ['plugin://a:80', undefined],
    ['plugin://u@a', undefined],
    ['plugin://u:p@a', undefined],
    ['plugin://a?', undefined],
    ['plugin://a?b', undefined],
    ['plugin://a#', undefined],
    ['plugin://a/b#c', undefined],
    ['plugin://a b', undefined],
    ['plugin://a/b c', undefined],
    [' plugin://a', undefined],
    ['plugin://a\n', undefined],
    ['plugin://a/\u0000', undefined],
    ['plugin://a/\u200b', undefined],
    ['plugin://a/<b>', undefined],
    ['plugin://<a>', undefined],
    ['plugin://a\u0001', undefined],
    ['plugin://a\u007f', undefined],
    ['plugin://a\u200b', undefined],
    ['plugin://a\u00a0', undefined],
    ['plugin://ä', undefined],
  ]
  for (const [uri, id] of rows) expect(pluginIdOf(uri), uri).toBe(id)
  const bundles: readonly (readonly [string, boolean])[] = [
    ['https://b.example/a.tgz?token=1', true],
    [`https://b.example/${'x'.repeat(2_030)}`, true],
    [`https://b.example/${'x'.repeat(2_031)}`, false],
    ['plugin://a/bundle', true],
    ['plugin://a', false],
    ['plugin://ab/bundle', false],
    ['plugin://other/bundle', false],
    ['plugin://a/bundle?x', false],
    ['plugin://a/bundle/', false],
    ['http://b.example/', false],
    ['file:///etc/passwd', false],
    ['https://B.example/', false],
    ['https://u:p@b.example/', false],
    ['https://u@b.example/', false],
    ['https://:p@b.example/', false],
    ['https://b.example/#x', false],
    ['https://b.example/ x', false],
    ['https://b.example/<x>', false],
    ['https://b.example/x\u200b', false],
    ['https://b.example/x\u007f', false],
    ['https://b.example/?x\u0001', false],
    ['nothing', false],
  ]
  for (const [uri, isOne] of bundles) expect(isBundleUri(uri, 'plugin://a'), uri).toBe(isOne)
})

verifies(['plugin.020', 'plugin.029'], () => {
  const source = (pluginId: string, connectorIds: string[], more: object = {}): ConnectorSource => ({
    pluginId,
    pluginName: pluginId.toUpperCase(),
    connectorIds,
    ...more,
  })
  const sources = [
    source('zeta', [' calendar ', 'mail', 'calendar', ' ', ''], { servers: ['apps', ' '] }),
    source('alpha', ['drive', 'calendar'], { ownConnectorIds: ['drive'], servers: ['apps', 'files'] }),
    source('alpha', ['mail']),
    source('other', ['drive', 'chat']),
  ]
  const facts = (...disabled: string[]): unknown => {
    const { attribution, ...rest } = connectorSnapshot(sources, new Set(disabled))
    const named = (id: string): unknown => [attribution.pluginsOfConnector(id), attribution.allowsConnector(id)]
    return {
      ...rest,
      named: Object.fromEntries(['calendar', 'mail', 'drive', 'chat', 'nobodys', ''].map((id) => [id, named(id)])),
      servers: ['apps', 'files', ''].map((server) => attribution.pluginsOfServer(server)),
    }
  }
  const connectorIds = ['calendar', 'mail', 'drive', 'chat']
  const nobody = { nobodys: [[], true], '': [[], true] }
  expect(facts()).toEqual({
    connectorIds,
    disabledConnectorIds: [],
    named: {
      calendar: [['ALPHA', 'ZETA'], true],
      mail: [['ALPHA', 'ZETA'], true],
      drive: [['ALPHA', 'OTHER'], true],
      chat: [['OTHER'], true],
      ...nobody,
    },
    servers: [['ALPHA', 'ZETA'], ['ALPHA'], []],
  })
  // Its own connector goes with it; what others use too stays, without its name.
  expect(facts('alpha')).toEqual({
    connectorIds,
    disabledConnectorIds: ['drive'],
    named: {
      calendar: [['ZETA'], true],
      mail: [['ZETA'], true],
      drive: [['OTHER'], false],
      chat: [['OTHER'], true],
      ...nobody,
    },
    servers: [['ZETA'], [], []],
  })
  expect(facts('other')).toMatchObject({
    disabledConnectorIds: ['chat'],
    named: { drive: [['ALPHA'], true], chat: [[], false] },
  })
  expect(facts('alpha', 'zeta', 'other', 'nobody')).toMatchObject({ connectorIds, disabledConnectorIds: connectorIds })
  expect(connectorSnapshot(sources).attribution.pluginsOfConnector(' chat ')).toEqual(['OTHER'])
})
