// What both sides say of themselves, and the limits of the first listing.
import { scriptedStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { Session, WireError } from '@convoke/wire'
import { expect, test } from 'vitest'
import { HostError } from '../src/base/index.ts'
import { type JsonObject, nodePlatform } from '../src/index.ts'
import { clientCapabilities } from '../src/protocol/client-capabilities.ts'
import { listAll } from '../src/protocol/listing.ts'
import { isTransient } from '../src/protocol/retries.ts'
import { type RawReply, startRawHttp } from './raw-http.ts'
import { hostOf, http, scripted, seenBy, stateOf, statusOf, stdio } from './support.ts'

verifies('conn.010', async () => {
  const odd = await startRawHttp({
    initialize: () => ({
      result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: '', version: 7, title: 'Kept' } },
    }),
    'tools/list': () => ({ result: { tools: [] } }),
  })
  await using _odd = odd
  const { host } = await hostOf([scripted('silent one', { omitServerInfo: true }), http('odd', odd.url)])
  await using _ = host
  await host.whenSettled()
  expect(host.statuses.map(({ state, serverInfo }) => [state, serverInfo])).toEqual([
    ['ready', { name: 'silent one', version: '' }],
    ['ready', { name: 'odd', version: '', title: 'Kept' }],
  ])
})

verifies('conn.011', async () => {
  const serverInfo = {
    name: 'told',
    version: '1.2',
    title: 'Told',
    websiteUrl: 'https://a.test',
    icons: [{ src: 'https://a.test/i.png', sizes: ['48x48'] }],
    description: 'of itself',
    'x-own': { deep: [1] },
  }
  await using raw = await startRawHttp({
    initialize: () => ({ result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo } }),
    'tools/list': () => ({ result: { tools: [] } }),
  })
  const { host } = await hostOf([http('configured', raw.url)])
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'configured')).toMatchObject({ name: 'configured', serverInfo })
})

/** What a server saw of a client with these capabilities. */
async function capabilitiesSeen(capabilities: JsonObject): Promise<unknown> {
  await using session = await Session.connect({ target: scriptedStdio({}), capabilities })
  const { content } = await session.callTool('seen')
  return (JSON.parse(String(content[0]?.['text'])) as { lastInitialize: { capabilities: unknown } }).lastInitialize
    .capabilities
}

verifies('conn.012', async () => {
  const ui = { mimeTypes: ['text/html'], 'x-unknown': { keep: [1, null] } }
  const rows: readonly [JsonObject | undefined, JsonObject][] = [
    [undefined, {}],
    [{}, {}],
    [{ 'io.example/flag': true }, {}],
    [
      { 'io.modelcontextprotocol/ui': ui, 'io.example/flag': true },
      { extensions: { 'io.modelcontextprotocol/ui': ui } },
    ],
    [{ 'com.example/empty': {} }, { extensions: { 'com.example/empty': {} } }],
  ]
  for (const [extensions, declared] of rows) {
    const capabilities = clientCapabilities({ extensions })
    expect(capabilities).toEqual(declared)
    expect(await capabilitiesSeen(capabilities)).toEqual(declared)
  }
  const { host } = await hostOf([scripted('s')], { clientExtensions: { 'io.modelcontextprotocol/ui': ui } })
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect((await seenBy(binding, 's')).lastInitialize?.capabilities).toMatchObject({
    extensions: { 'io.modelcontextprotocol/ui': ui },
  })
})

verifies('conn.013', async () => {
  expect(clientCapabilities({})).toEqual({})
  expect(clientCapabilities({ sampling: true, roots: true })).toEqual({ sampling: {}, roots: {} })
  expect(clientCapabilities({ sampling: false, roots: false })).toEqual({})
  for (const [elicitation, declared] of [
    ['form', {}],
    ['form-and-url', { form: {}, url: {} }],
  ] as const)
    expect(await capabilitiesSeen(clientCapabilities({ elicitation }))).toEqual({ elicitation: declared })
})

verifies('conn.056', async () => {
  await using server = await startScriptedHttp({ listing: 'same-cursor' })
  const { host } = await hostOf([http('web', server.url)])
  await using _ = host
  const { reason } = await stateOf(host, 'web', 'failed')
  expect(reason).toMatchObject({ code: 'LISTING_FAILED', message: expect.stringContaining('same cursor twice') })
  expect(server.requests.filter(({ rpc }) => rpc === 'tools/list')).toHaveLength(2)
})

/** Lists what a server with these pages offers. */
async function listing(
  pages: (page: number) => RawReply,
  request: Parameters<typeof listAll>[2] = {},
): Promise<unknown> {
  let page = 0
  await using raw = await startRawHttp({
    'tools/list': () => {
      page += 1
      return pages(page)
    },
  })
  await using session = await Session.connect({ target: { kind: 'http', url: raw.url } })
  const source = { server: 's', session, platform: nodePlatform, transport: 'http' as const, secrets: [] }
  return await listAll(source, 'tools', request).then(
    ({ items }) => items.length,
    ({ code, message }: HostError) => [code, message],
  )
}

verifies(
  'conn.057',
  async () => {
    const tools = (count: number, from = 0): object[] =>
      Array.from({ length: count }, (_, index) => ({ name: `t${from + index}`, inputSchema: { type: 'object' } }))
    const paged = (last: number) => (page: number) => ({
      result: { tools: tools(1, page), ...(page < last ? { nextCursor: `c${page}` } : {}) },
    })
    const flat = (count: number) => () => ({ result: { tools: tools(count) } })
    const cursor = (bytes: number) => (page: number) => ({
      result: { tools: [], ...(page === 1 ? { nextCursor: 'c'.repeat(bytes) } : {}) },
    })
    expect(await listing(paged(100))).toBe(100)
    expect(await listing(paged(101))).toEqual(['LISTING_FAILED', 'Server "s": "tools/list" has more than 100 pages'])
    expect(await listing(flat(2_048))).toBe(2_048)
    expect(await listing(flat(2_049))).toEqual([
      'LISTING_FAILED',
      'Server "s": "tools/list" lists more than 2048 items',
    ])
    expect(await listing(cursor(65_536))).toBe(0)
    expect(await listing(cursor(65_537))).toEqual([
      'LISTING_FAILED',
      'Server "s": A cursor of "tools/list" has more than 65536 bytes',
    ])
    // A hosted server may list more.
    expect(await listing(flat(8_192), { itemsMax: 8_192 })).toBe(8_192)
    expect(await listing(flat(8_193), { itemsMax: 8_192 })).toEqual([
      'LISTING_FAILED',
      'Server "s": "tools/list" lists more than 8192 items',
    ])
    await using slow = await startScriptedHttp({ listDelayMs: 150, pageItems: 1, tools: 20 })
    await using session = await Session.connect({ target: { kind: 'http', url: slow.url } })
    const source = { server: 's', session, platform: nodePlatform, transport: 'http' as const, secrets: [] }
    await expect(listAll(source, 'tools', { timeoutMs: 400 })).rejects.toMatchObject({
      code: 'LISTING_TIMEOUT',
      message: 'Server "s": "tools/list" did not come to an end within 400 ms',
    })
  },
  60_000,
)

test('the limit of a listing is that of the server’s traits', async () => {
  const tools = Array.from({ length: 2_049 }, (_, index) => ({ name: `t${index}`, inputSchema: { type: 'object' } }))
  await using raw = await startRawHttp({ 'tools/list': () => ({ result: { tools } }) })
  const { host } = await hostOf([http('plain', raw.url), http('hosted', raw.url, { hosted: true })])
  await using _ = host
  await host.whenSettled()
  expect(host.statuses.map(({ state, reason }) => [state, reason?.code])).toEqual([
    ['failed', 'LISTING_FAILED'],
    ['ready', undefined],
  ])
})

test('what a server can is known although nothing could be listed, and unknown while it is asked anew', async () => {
  const { ServerConnection } = await import('../src/connection/index.ts')
  const { LaunchMemory } = await import('../src/protocol/index.ts')
  const states: string[] = []
  let seen: unknown
  await using connection = new ServerConnection({
    definition: stdio('s', scriptedStdio({ listing: 'error', capabilities: { tools: { own: 1 } } })),
    settings: {
      platform: nodePlatform,
      clientInfo: { name: 'test', version: '1' },
      capabilities: {},
      handlers: {},
      http: 'node',
      writeBurst: 'tick',
      leaseDirectory: undefined,
      closeGraceMs: undefined,
      memory: new LaunchMemory(nodePlatform, undefined),
    },
    sink: {
      toolCount: undefined,
      problem: undefined,
      begin: () => {
        seen = connection.capabilities
        states.push('begin')
      },
      load: async (session) => {
        states.push('load')
        await session.list('tools')
      },
      watch: () => {},
      notified: () => {},
      lost: () => {},
    },
    emit: () => {},
    initial: { kind: 'dormant', sinceAtMs: 0, reason: { code: 'SERVER_NOT_READY', message: '' }, failuresBefore: 4 },
  })
  expect([connection.capabilities, connection.failureCount]).toEqual([undefined, 4])
  const outcome = await connection.whenReady()
  expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'SERVER_ERROR' } })
  expect([connection.capabilities, connection.failureCount]).toEqual([{ tools: { own: 1 } }, 5])
  expect([states, seen]).toEqual([['begin', 'load'], undefined])
  // Nobody is kept waiting by a server that waits for its next try.
  expect(await connection.whenReady()).toMatchObject({ kind: 'failed', error: { code: 'SERVER_ERROR' } })
  expect(states).toEqual(['begin', 'load'])
})

test('what is tried again over HTTP, and what is not', () => {
  const rows: readonly [HostError, boolean][] = [
    [new HostError('SERVER_UNREACHABLE', 'x'), true],
    [new HostError('CONNECTION_LOST', 'x'), true],
    [new HostError('CONNECTION_LOST', 'x', { cause: new WireError('session-lost', 'gone') }), false],
    ...[408, 429, 500, 502, 503, 504].map((status): [HostError, boolean] => [
      new HostError('HTTP_STATUS', 'x', { details: { status } }),
      true,
    ]),
    [new HostError('HTTP_STATUS', 'x', { details: { status: 404 } }), false],
    [
      new HostError('SERVER_ERROR', 'x', { details: { rpc: { code: -32603, message: 'http/request failed: reset' } } }),
      true,
    ],
    [new HostError('SERVER_ERROR', 'x', { details: { rpc: { code: -32603, message: 'it failed' } } }), false],
    [
      new HostError('SERVER_ERROR', 'x', { details: { rpc: { code: -32000, message: 'http/request failed: x' } } }),
      false,
    ],
    [new HostError('AUTH_REQUIRED', 'x', { details: { status: 401 } }), false],
    [new HostError('PROTOCOL_ERROR', 'x', { details: { status: 200 } }), false],
  ]
  for (const [error, is] of rows) expect(isTransient(error), `${error.code} ${JSON.stringify(error.details)}`).toBe(is)
})
