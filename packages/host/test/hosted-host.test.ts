// A hosted server through a whole host: its account, its kept catalog, its reconnects.
import {
  type AccountSource,
  createCatalogCache,
  type Host,
  type HostEvent,
  type ServerDefinition,
  type ServerStatus,
} from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { type RawHttp, startRawHttp } from './raw-http.ts'
import {
  eventOf,
  hostOf,
  http,
  inFolder,
  rawNames,
  remember,
  scripted,
  stateOf,
  statesOf,
  statusOf,
  textIn,
  toolOf,
} from './support.ts'

const GREETING = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'raw', version: '1' },
}
const TOOLS = [{ name: 'list', inputSchema: { type: 'object' }, _meta: { connector_id: 'calendar' } }]
const failure = (): never => {
  throw new Error('not prepared')
}

/** Signed in as one account for the whole test. */
function signedIn(origin: string): AccountSource {
  const account = { id: 'ada@example', grant: 'g1' }
  return {
    origins: [origin],
    current: () => account,
    token: () => 'account-token',
    refresh: async () => false,
    onChange: () => () => {},
  }
}

const hosted = (url: string, more: Partial<ServerDefinition> = {}): ServerDefinition =>
  http('apps', url, { hosted: true, auth: 'account', ...more })

/** A hosted server that can be told to refuse every handshake. */
async function hostedServer(): Promise<{
  web: RawHttp
  mood: { refuses: boolean }
  options: { account: AccountSource }
}> {
  const mood = { refuses: false }
  const web = await startRawHttp({
    initialize: () => (mood.refuses ? { status: 418 } : { result: GREETING }),
    'server/discover': () =>
      mood.refuses ? { status: 418 } : { error: { code: -32601, message: 'Method not found' } },
    'tools/list': () => ({ result: { tools: TOOLS } }),
    'tools/call': () => ({ result: { content: [{ type: 'text', text: 'done' }] } }),
  })
  return { web, mood, options: { account: signedIn(new URL(web.url).origin) } }
}

/** A host whose hosted server is known from before and refuses now, with its first failure. */
async function refusedHost(
  { web, mood, options }: Awaited<ReturnType<typeof hostedServer>>,
  cacheDirectory: string,
): Promise<{ host: Host; events: HostEvent[]; failed: ServerStatus }> {
  await remember(cacheDirectory, [hosted(web.url)], options)
  mood.refuses = true
  const made = await hostOf([hosted(web.url, { startup: 'eager' })], { cacheDirectory, ...options })
  return { ...made, failed: await stateOf(made.host, 'apps', 'failed') }
}

const dueAt = ({ nextRetryAtMs = 0 }: ServerStatus): Promise<void> =>
  expect.poll(() => Date.now(), { timeout: 5_000 }).toBeGreaterThan(nextRetryAtMs)

verifies(['conn.094', 'conn.109'], async () => {
  await inFolder(async (cacheDirectory) => {
    const server = await hostedServer()
    await using _ = server.web
    const { host, events, failed } = await refusedHost(server, cacheDirectory)
    await using __ = host
    // Nothing is tried before its time; what is known stays in sight for whoever looks around, and a binding has none of it.
    const early = await host.listTools()
    expect(early.items.map(({ rawName, state }) => [rawName, state])).toEqual([['list', 'cached']])
    await using without = await host.bind()
    expect(rawNames(without)).toEqual([])
    server.mood.refuses = false
    await dueAt(failed)
    const attempts = (): number => statesOf(events, 'apps').filter((state) => state === 'starting').length
    const before = attempts()
    const [one, two] = await Promise.all([host.listTools(), host.listTools()])
    expect(one.failures.concat(two.failures)).toEqual([])
    expect(attempts()).toBe(before + 1)
    await using binding = await host.bind()
    expect(toolOf(binding, 'apps/list').state).toBe('live')
    const prepared = binding.prepare(toolOf(binding, 'apps/list'))
    expect(textIn((await prepared?.call({})) ?? failure())).toBe('done')
    await prepared?.[Symbol.asyncDispose]()
    expect(attempts()).toBe(before + 1)
  })
})

verifies('conn.110', async () => {
  await inFolder(async (cacheDirectory) => {
    const server = await hostedServer()
    await using _ = server.web
    const { host, failed: first } = await refusedHost(server, cacheDirectory)
    await using __ = host
    const pause = ({ nextRetryAtMs = 0, sinceAtMs }: ServerStatus): number => nextRetryAtMs - sinceAtMs
    expect(pause(first)).toBe(1_000)
    // Looking around before its time starts nothing and shows what is known.
    expect((await host.listTools()).items).toHaveLength(1)
    expect(statusOf(host, 'apps')).toEqual(first)
    const fails = eventOf(host, 'server.state-changed', ({ status }) => status.state === 'failed')
    await dueAt(first)
    expect((await host.listTools()).items).toHaveLength(1)
    const second = (await fails).status
    expect(pause(second)).toBe(2_000)
    server.mood.refuses = false
    expect((await host.listTools()).items.map(({ state }) => state)).toEqual(['cached'])
    await dueAt(second)
    const third = await host.listTools()
    expect(third.items.map(({ rawName, state }) => [rawName, state])).toEqual([['list', 'live']])
    expect(statusOf(host, 'apps').state).toBe('ready')
  })
})

test('a new sign-in connects the hosted server anew, and another account does not see what the first one listed', async () => {
  await inFolder(async (cacheDirectory) => {
    const server = await hostedServer()
    await using _ = server.web
    let account = { id: 'ada@example', grant: 'g1' }
    let tell: (change: 'replaced') => void = () => {}
    const source: AccountSource = {
      ...server.options.account,
      current: () => account,
      onChange: (listener) => {
        tell = listener
        return () => {}
      },
    }
    const { host, events } = await hostOf([hosted(server.web.url), scripted('other')], {
      cacheDirectory,
      account: source,
    })
    await using __ = host
    await host.whenSettled()
    account = { id: 'bob@example', grant: 'g2' }
    tell('replaced')
    await expect
      .poll(() => events.filter(({ kind }) => kind === 'set.published').at(-1))
      .toMatchObject({
        generation: 2,
        servers: [
          { server: 'apps', action: 'start', because: 'config-changed' },
          { server: 'other', action: 'reuse' },
        ],
      })
    await host.whenSettled()
    expect(host.statuses.map(({ state }) => state)).toEqual(['ready', 'ready'])
  })
})

verifies('conn.092', async () => {
  await inFolder(async (cacheDirectory) => {
    const catalogs = createCatalogCache({ cacheDirectory })
    // It is known from a day when it did not mind.
    let minds = false
    const refusal = { experimental: { 'convoke/tool-catalog-cache': { cacheable: false } } }
    await using web = await startRawHttp({
      initialize: () => ({ result: { ...GREETING, capabilities: { tools: {}, ...(minds ? refusal : {}) } } }),
      'tools/list': () => ({ result: { tools: [{ name: 'one', inputSchema: { type: 'object' } }] } }),
    })
    const definition = http('s', web.url)
    {
      const { host } = await hostOf([definition], { catalogs })
      await using _ = host
      await host.whenSettled()
    }
    minds = true
    const slow = scripted('slow', { initializeDelayMs: 1_500 }, { required: true })
    const { host } = await hostOf([definition, slow], { catalogs })
    await using _ = host
    expect(statusOf(host, 's').state).toBe('dormant')
    const binding = host.bind()
    // Somebody else wakes it meanwhile, and it says that nothing may be kept; then it is gone.
    const { host: peer } = await hostOf([{ ...definition, startup: 'eager' }], { catalogs })
    await using __ = peer
    await stateOf(peer, 's', 'ready')
    await using bound = await binding
    expect(rawNames(bound).filter((name) => name.startsWith('s/'))).toEqual([])
    expect(rawNames(bound)).toContain('slow/echo')
  })
})

test('a listing that is being tried again ends with its session, and leaves no timer', async () => {
  let listings = 0
  await using web = await startRawHttp({
    initialize: () => ({ result: { ...GREETING, capabilities: { tools: {}, resources: {} } } }),
    'tools/list': () => ({ result: { tools: [] } }),
    'resources/list': () => {
      listings += 1
      return { status: 503 }
    },
  })
  const { host } = await hostOf([http('s', web.url)])
  await host.whenSettled()
  const binding = await host.bind()
  const listing = binding.resources()
  await expect.poll(() => listings).toBe(2) // the next try is a second away
  const beganAtMs = performance.now()
  await host.close()
  expect((await listing).failures).toMatchObject([
    { server: 's', code: expect.stringMatching(/^(HTTP_STATUS|CONNECTION_LOST)$/) },
  ])
  expect(performance.now() - beganAtMs).toBeLessThan(900)
  expect(listings).toBe(2)
  await binding[Symbol.asyncDispose]()
})

test('what is sent a second time was sent, whatever becomes of the second time', async () => {
  let calls = 0
  await using web = await startRawHttp({
    initialize: () => (calls > 0 ? { status: 418 } : { result: GREETING, headers: { 'mcp-session-id': 'one' } }),
    'tools/list': () => ({ result: { tools: [{ name: 'once', inputSchema: { type: 'object' } }] } }),
    'tools/call': () => {
      calls += 1
      return calls === 1 ? { drop: true } : { status: 404 }
    },
  })
  const definition = http('s', web.url, { tools: { overrides: { once: { idempotent: true } } } })
  const { host } = await hostOf([definition])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const outcome = await binding.call(toolOf(binding, 's/once'), {})
  expect(calls).toBe(2)
  expect(outcome.kind).toBe('unknown')
})

test('questions of a call end with its answer', async () => {
  const ask = (id: string): object => ({
    jsonrpc: '2.0',
    id,
    method: 'elicitation/create',
    params: { message: 'm', requestedSchema: { type: 'object', properties: { a: { type: 'string' } } } },
  })
  await using web = await startRawHttp({
    'tools/list': () => ({ result: { tools: [{ name: 'asks', inputSchema: { type: 'object' } }] } }),
    'tools/call': () => ({ before: [ask('one'), ask('two')], result: { content: [] } }),
  })
  // Nobody is there to answer: what is asked is parked.
  const { host } = await hostOf([http('s', web.url)], { handlers: { elicit: async () => undefined } })
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect((await binding.call(toolOf(binding, 's/asks'), {})).kind).toBe('ok')
  await expect.poll(() => host.questions()).toEqual([])
})

test('a host that is being closed gives no more views', async () => {
  const { host } = await hostOf([scripted('s')])
  const closing = host.close()
  await expect(host.bind()).rejects.toMatchObject({ code: 'HOST_CLOSED' })
  await closing
})
