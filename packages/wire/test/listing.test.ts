import { scriptedStdio, verifies } from '@convoke/testkit'
import { type JsonObject, Session, WireError } from '@convoke/wire'
import { expect, test } from 'vitest'
import { connect, seenBy } from './lines.ts'

const page = (kind: string, items: readonly unknown[], rest: JsonObject = {}): string =>
  `{"jsonrpc":"2.0","id":$ID,"result":${JSON.stringify({ [kind]: items, ...rest })}}`
const tool = (name: string): JsonObject => ({ name, inputSchema: { type: 'object' } })
const failureOf = async (promise: Promise<unknown>): Promise<WireError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof WireError) return error
  throw new Error(`No WireError: ${error}`)
}

verifies('wire.050', async () => {
  await using paged = await Session.connect({ target: scriptedStdio({ tools: 25, pageItems: 7 }) })
  const { items, rejected } = await paged.list('tools')
  expect([items.length, new Set(items.map(({ name }) => name)).size, rejected]).toEqual([25, 25, []])
  expect((await paged.list('prompts')).items.map(({ name }) => name)).toEqual(['greet'])
  expect((await paged.list('resources')).items.map(({ uri }) => uri)).toEqual(['scripted://one', 'scripted://two'])
  expect((await paged.list('resourceTemplates')).items.map(({ name }) => name)).toEqual(['item'])

  // The empty cursor asks for a second page; null ends.
  await using session = await connect({
    'tools/list': [page('tools', [tool('a')], { nextCursor: '' })],
    'prompts/list': [page('prompts', [{ name: 'p' }], { nextCursor: null })],
  })
  expect(await failureOf(session.list('tools'))).toMatchObject({
    code: 'pagination',
    details: { limit: 'repeated-cursor' },
  })
  const asked = (await seenBy(session))
    .filter(({ method }) => method === 'tools/list')
    .map(({ params }) => params?.['cursor'])
  expect(asked).toEqual([undefined, ''])
  expect(await session.list('prompts')).toEqual({ items: [{ name: 'p' }], rejected: [] })
})

verifies('wire.051', async () => {
  await using endless = await Session.connect({ target: scriptedStdio({ listing: 'endless' }) })
  const pages = await failureOf(endless.list('tools'))
  expect([pages.code, pages.details.limit, pages.message]).toEqual([
    'pagination',
    'pages',
    '"tools/list" has more than 100 pages',
  ])
  expect((await failureOf(endless.list('tools', { itemsMax: 9 }))).details.limit).toBe('items')
  expect((await failureOf(endless.list('tools', { pagesMax: 3 }))).message).toBe('"tools/list" has more than 3 pages')
  await using repeating = await Session.connect({ target: scriptedStdio({ listing: 'same-cursor' }) })
  expect((await failureOf(repeating.list('tools'))).details.limit).toBe('repeated-cursor')
  await using session = await connect({
    'tools/list': [
      { before: '{"jsonrpc":"2.0","id":$ID,"result":{"tools":[],"nextCursor":"', pad: 65_537, after: '"}}' },
    ],
    'prompts/list': [],
    'resources/list': [
      { text: '{"jsonrpc":"2.0","id":$ID,"result":{"resources":[' },
      { repeat: '{"uri":"x:1","name":""},', times: 2_048 },
      '{"uri":"x:1","name":""}]}}',
    ],
    'resources/templates/list': [page('resourceTemplates', [], { nextCursor: 7 })],
  })
  expect((await failureOf(session.list('tools'))).details.limit).toBe('cursor-bytes')
  expect((await failureOf(session.list('resources'))).details.limit).toBe('items')
  expect((await failureOf(session.list('resourceTemplates'))).code).toBe('malformed')
  const late = await failureOf(session.list('prompts', { timeoutMs: 120 }))
  expect([late.code, late.details.limit, late.message]).toEqual([
    'timed-out',
    'listing',
    '"prompts/list" did not come to an end within 120 ms',
  ])
  // A limit of one request is told as that.
  expect((await failureOf(session.list('prompts', { idleTimeoutMs: 50 }))).details.limit).toBe('idle')
  expect((await failureOf(session.list('prompts', { totalTimeoutMs: 50 }))).details.limit).toBe('total')
  await using slow = await Session.connect({ target: scriptedStdio({ listing: 'endless', listDelayMs: 60 }) })
  expect((await failureOf(slow.list('tools', { timeoutMs: 250 }))).details.limit).toBe('listing')
})

verifies('wire.052', async () => {
  const tools = [
    tool('good'),
    { name: 'bare', inputSchema: {} },
    { name: 'no-schema' },
    { name: 'true-schema', inputSchema: true },
    { name: 'list-schema', inputSchema: [] },
    { name: 'string-schema', inputSchema: { type: 'string' } },
    { name: '', inputSchema: {} },
    { inputSchema: {} },
    { name: 7, inputSchema: {} },
    { ...tool('number-text'), description: 7 },
    { ...tool('null-title'), title: null },
    null,
    'text',
    [],
    { ...tool('stranger'), future: { a: 1 }, annotations: { readOnlyHint: true } },
    { ...tool('__proto__'), _meta: { x: 1 } },
  ]
  await using session = await connect({
    'tools/list': [page('tools', tools)],
    'prompts/list': [page('prompts', [{ name: 'ok', arguments: [] }, { name: 'bad', arguments: {} }, {}])],
    'resources/list': [page('resources', [{ uri: 'x:1', name: 'ok' }, { uri: '', name: 'bad' }, { name: 'none' }])],
    'resources/templates/list': [
      page('resourceTemplates', [
        { uriTemplate: 'x:{a}', name: 'ok' },
        { uriTemplate: 1, name: 'bad' },
      ]),
    ],
  })
  const { items, rejected } = await session.list('tools')
  expect(items.map(({ name }) => name)).toEqual(['good', 'bare', 'stranger', '__proto__'])
  expect(items[2]).toEqual({ ...tool('stranger'), future: { a: 1 }, annotations: { readOnlyHint: true } })
  expect(rejected).toEqual([
    { name: 'no-schema', reason: 'no inputSchema' },
    { name: 'true-schema', reason: 'no inputSchema' },
    { name: 'list-schema', reason: 'no inputSchema' },
    { name: 'string-schema', reason: 'inputSchema is not an object schema' },
    { name: '?', reason: 'no name' },
    { name: '?', reason: 'no name' },
    { name: '?', reason: 'no name' },
    { name: 'number-text', reason: 'description is not text' },
    { name: 'null-title', reason: 'title is not text' },
    { name: '?', reason: 'not an object' },
    { name: '?', reason: 'not an object' },
    { name: '?', reason: 'not an object' },
  ])
  expect((await session.list('prompts')).rejected).toEqual([
    { name: 'bad', reason: 'arguments are not a list' },
    { name: '?', reason: 'no name' },
  ])
  expect((await session.list('resources')).rejected).toEqual([
    { name: 'bad', reason: 'no uri' },
    { name: 'none', reason: 'no uri' },
  ])
  expect((await session.list('resourceTemplates')).rejected).toEqual([{ name: 'bad', reason: 'no uriTemplate' }])
})

verifies('wire.053', async () => {
  const first = { resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' }
  const discover =
    '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}'
  await using session = await connect(
    {
      'server/discover': [discover],
      'tools/list': [page('tools', [tool('a')], { ...first, nextCursor: null })],
      'prompts/list': [page('prompts', [], { ...first, ttlMs: -5 })],
      'resources/list': [page('resources', [], { ...first, cacheScope: 'secret' })],
      'resources/templates/list': [page('resourceTemplates', [], { resultType: 'complete' })],
    },
    { era: 'auto' },
  )
  expect(await session.list('tools')).toMatchObject({ ttlMs: 60_000, cacheScope: 'public' })
  expect(await session.list('prompts')).toMatchObject({ ttlMs: 0, cacheScope: 'public' })
  expect(await session.list('resources')).toMatchObject({ ttlMs: 60_000, cacheScope: 'private' })
  expect(await session.list('resourceTemplates')).toMatchObject({ ttlMs: 0, cacheScope: 'private' })
  await using paged = await Session.connect({
    target: scriptedStdio({ era: 'modern', ttlMs: 500, tools: 9, pageItems: 4 }),
  })
  const listing = await paged.list('tools')
  expect([listing.items.length, listing.ttlMs, listing.cacheScope]).toEqual([9, 500, 'private'])
})

test('a listing can be cancelled between pages', async () => {
  await using slow = await Session.connect({ target: scriptedStdio({ listing: 'endless', listDelayMs: 40 }) })
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 100)
  expect((await failureOf(slow.list('tools', { signal: controller.signal }))).code).toBe('cancelled')
})
