// Stateless requests of the modern era over HTTP: envelope, headers, input, subscriptions.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { type Answer, modern, modernMeta, openSession, rpc, Stream, send, serve } from './server-fixture.ts'

type Json = Record<string, unknown>
const VERSION = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const headers = (method: string, more: Record<string, string> = {}): Record<string, string> => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...more,
})
const codeOf = ({ status, json }: Answer): unknown[] => [status, (json['error'] as Json | undefined)?.['code']]
const resultOf = ({ json }: Answer): Json => json['result'] as Json
const textOf = (message: Json | undefined): string =>
  (((message?.['result'] ?? {}) as Json)['content'] as { text: string }[])[0]?.text ?? ''

verifies('wire.212', async () => {
  await using served = await serve()
  const { port } = served
  const discover = (params: Json, version = '2026-07-28'): Promise<Answer> =>
    send(port, {
      headers: { ...headers('server/discover'), 'mcp-protocol-version': version },
      body: rpc('server/discover', params, 77),
    })
  expect(codeOf(await discover({}))).toEqual([400, -32602])
  expect(codeOf(await discover({ _meta: { [CAPABILITIES]: {} } }))).toEqual([400, -32602])
  expect(codeOf(await discover({ _meta: { [VERSION]: '2026-07-28' } }))).toEqual([400, -32602])
  expect(codeOf(await discover({ _meta: { ...modernMeta(), 'io.modelcontextprotocol/logLevel': 'loud' } }))).toEqual([
    400, -32602,
  ])
  const unknown = await discover({ _meta: { ...modernMeta(), [VERSION]: 'v9' } }, 'v9')
  expect(codeOf(unknown)).toEqual([400, -32022])
  expect(unknown.json).toMatchObject({ id: 77, error: { data: { supported: ['2026-07-28'], requested: 'v9' } } })
  expect(codeOf(await discover({ _meta: { ...modernMeta(), [VERSION]: 'v9' } }))).toEqual([400, -32020])
  expect(resultOf(await discover({ _meta: modernMeta() }))).toEqual({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true }, logging: {}, resources: { subscribe: true } },
    instructions: 'Be kind.',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'fixture', version: '1.0.0' } },
  })
})

verifies('wire.213', async () => {
  await using served = await serve()
  for (const method of [
    'initialize',
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'unknown/method',
    'constructor',
    '__proto__',
  ]) {
    const answer = await modern(served.port, method, {}, { id: `id-${method}` })
    expect([...codeOf(answer), answer.json['id']], method).toEqual([404, -32601, `id-${method}`])
  }
  expect(
    (await send(served.port, { headers: headers('x'), body: JSON.stringify({ jsonrpc: '2.0', method: 'x' }) })).status,
  ).toBe(202)
  expect(
    (await send(served.port, { headers: headers('x'), body: JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} }) }))
      .status,
  ).toBe(400)
})

verifies('security.080', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const body = rpc('tools/call', { name: 'log', arguments: {}, _meta: modernMeta() })
  const call = (more: Record<string, string | undefined>): Promise<Answer> => {
    const all: Record<string, string | undefined> = { ...headers('tools/call'), 'mcp-name': 'log', ...more }
    return send(port, {
      headers: Object.fromEntries(
        Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
      ),
      body,
    })
  }
  const wrong: Record<string, string | undefined>[] = [
    { 'mcp-name': 'fail' },
    { 'mcp-name': undefined },
    { 'mcp-name': 'log, log' },
    { 'mcp-name': 'LOG' },
    { 'mcp-name': `=?base64?${Buffer.from('fail').toString('base64')}?=` },
    { 'mcp-name': '=?base64?bG9n' },
    { 'mcp-name': '=?base64?bG9?=' },
    { 'mcp-name': '=?base64?bG9n=?=' },
    { 'mcp-name': '=?base64?b G9n?=' },
    { 'mcp-method': 'tools/list' },
    { 'mcp-method': 'TOOLS/CALL' },
    { 'mcp-method': undefined },
    { 'mcp-method': 'tools/call, tools/call' },
    { 'mcp-protocol-version': undefined },
    { 'mcp-protocol-version': '2025-11-25' },
    { 'mcp-protocol-version': '2026-07-28, 2026-07-28' },
  ]
  for (const more of wrong) expect(codeOf(await call(more)), JSON.stringify(more)).toEqual([400, -32020])
  expect(recorder.calls).toEqual([])
  for (const more of [{}, { 'mcp-name': '  log  ' }, { 'mcp-name': '=?base64?bG9n?=' }])
    expect((await call(more)).status, JSON.stringify(more)).toBe(200)
  const uri = await send(port, {
    headers: { ...headers('resources/read'), 'mcp-name': 'a' },
    body: rpc('resources/read', { uri: 'b', _meta: modernMeta() }),
  })
  expect(codeOf(uri)).toEqual([400, -32020])
})

verifies('wire.217', async () => {
  await using served = await serve()
  const call = (args: Json, more: Record<string, string>): Promise<Answer> =>
    modern(served.port, 'tools/call', { name: 'echo', arguments: args }, { headers: more })
  const base64 = (text: string): string => `=?base64?${Buffer.from(text).toString('base64')}?=`
  const good: [Json, Record<string, string>][] = [
    [{}, {}],
    [{ region: null }, {}],
    [{ region: 'us' }, { 'mcp-param-region': 'us' }],
    [{ region: 'us' }, { 'mcp-param-region': base64('us') }],
    [{ region: 'Hello, 世界' }, { 'mcp-param-region': base64('Hello, 世界') }],
    [{ region: '=?base64?x' }, { 'mcp-param-region': '=?base64?x' }],
    [{ count: 42 }, { 'mcp-param-count': '42.0' }],
    [{ other: 1 }, { 'mcp-param-stranger': 'x' }],
  ]
  for (const [args, more] of good) expect((await call(args, more)).status, JSON.stringify([args, more])).toBe(200)
  const bad: [Json, Record<string, string>][] = [
    [{ region: 'us' }, {}],
    [{ region: 'us' }, { 'mcp-param-region': 'eu' }],
    [{ region: 'us' }, { 'mcp-param-region': 'US' }],
    [{}, { 'mcp-param-region': 'us' }],
    [{ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG8?=' }],
    [{ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVs!!!bG8=?=' }],
    [{ count: 42 }, { 'mcp-param-count': '' }],
    [{ count: 42 }, { 'mcp-param-count': '43' }],
  ]
  for (const [args, more] of bad)
    expect(codeOf(await call(args, more)), JSON.stringify([args, more])).toEqual([400, -32020])
})

verifies('wire.214', async () => {
  await using served = await serve()
  const { port } = served
  expect(resultOf(await modern(port, 'tools/list'))).toMatchObject({
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
  })
  expect(Object.keys(resultOf(await modern(port, 'tools/call', { name: 'log', arguments: {} })))).toEqual([
    'resultType',
    'content',
  ])
  const rawResult = async (body: string): Promise<string> =>
    (await modern(port, 'tools/call', { name: 'raw', arguments: { body } })).text
  expect(await rawResult('{"content":[]}')).toBe(
    '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}',
  )
  expect(await rawResult('{ \t}')).toBe('{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete" \t}}')
  expect(await rawResult('{}')).toBe('{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}')
})

verifies('wire.215', async () => {
  await using served = await serve()
  const { port } = served
  const levels = async (meta: Json): Promise<unknown[]> =>
    (await modern(port, 'tools/call', { name: 'log', arguments: {} }, { meta })).events
      .slice(0, -1)
      .map((event) => (event['params'] as Json)['level'])
  expect(await levels({})).toEqual([])
  expect(await levels({ 'io.modelcontextprotocol/logLevel': 'debug' })).toEqual(['debug', 'warning', 'error'])
  expect(await levels({ 'io.modelcontextprotocol/logLevel': 'error' })).toEqual(['error'])
  const session = await openSession(port)
  const heard = async (): Promise<unknown[]> =>
    (await session.call('log')).events.slice(0, -1).map((event) => (event['params'] as Json)['level'])
  expect(await heard()).toEqual(['debug', 'warning', 'error'])
  expect(codeOf(await session.post(rpc('logging/setLevel', { level: 'loud' })))).toEqual([200, -32602])
  expect((await session.post(rpc('logging/setLevel', { level: 'warning' }))).json['result']).toEqual({})
  expect(await heard()).toEqual(['warning', 'error'])
})

verifies('wire.209', async () => {
  await using served = await serve()
  const { port, recorder, endpoint } = served
  const call = (name: string, args: Json, extra: Json = {}, id = 1): Promise<Answer> =>
    modern(port, 'tools/call', { name, arguments: args, ...extra }, { id })
  const accept = (n: number): Json => ({ action: 'accept', content: { n } })
  let answer = await call('ask', { rounds: 2 })
  for (const round of [1, 2]) {
    const { resultType, inputRequests, requestState, ...rest } = resultOf(answer)
    expect([resultType, rest]).toEqual(['input_required', {}])
    expect(inputRequests).toEqual({
      [`question-${round}`]: {
        method: 'elicitation/create',
        params: { message: `round ${round}`, requestedSchema: { type: 'object', properties: {} } },
      },
    })
    expect(endpoint.counts).toMatchObject({ calls: 0, parkedCalls: 1 })
    answer = await call(
      'ask',
      { rounds: 2 },
      { requestState, inputResponses: { [`question-${round}`]: accept(round), stranger: { action: 'decline' } } },
      round + 1,
    )
  }
  expect(answer.json['id']).toBe(3)
  expect(JSON.parse(textOf(answer.json))).toEqual([accept(1), accept(2)])
  expect(recorder.calls.length).toBe(1)

  const both = resultOf(await call('askBoth', {}))
  expect(Object.values(both['inputRequests'] as Json).map((request) => (request as Json)['method'])).toEqual([
    'elicitation/create',
    'roots/list',
  ])
  const half = resultOf(
    await call(
      'askBoth',
      {},
      { requestState: both['requestState'], inputResponses: { 'question-2': { roots: [] } } },
      2,
    ),
  )
  expect(Object.keys(half['inputRequests'] as Json)).toEqual(['question-1'])
  const none = resultOf(await call('askBoth', {}, { requestState: half['requestState'] }, 3))
  expect(Object.keys(none['inputRequests'] as Json)).toEqual(['question-1'])
  // An answer that is none is refused, and the state is still good.
  for (const bad of [12, null, {}, { action: 'perhaps' }])
    expect(
      codeOf(
        await call('askBoth', {}, { requestState: none['requestState'], inputResponses: { 'question-1': bad } }, 4),
      ),
    ).toEqual([200, -32602])
  const whole = await call(
    'askBoth',
    {},
    { requestState: none['requestState'], inputResponses: { 'question-1': accept(7) } },
    5,
  )
  expect(JSON.parse(textOf(whole.json))).toEqual([accept(7), { roots: [] }])
  // The call ended while its client was away: the answer waits for it.
  const away = resultOf(await call('askAndTakeBack', {}))
  const ended = await call(
    'askAndTakeBack',
    {},
    { requestState: away['requestState'], inputResponses: { 'question-1': { roots: [] } } },
    6,
  )
  expect([ended.json['id'], textOf(ended.json)]).toEqual([6, 'The question was taken back'])
})

verifies('wire.210', async () => {
  await using served = await serve({ limits: { askTimeoutMs: 80, parkedCallsMax: 2, inputRoundsMax: 3 } })
  const { port, endpoint } = served
  const ask = (args: Json = {}, extra: Json = {}): Promise<Answer> =>
    modern(port, 'tools/call', { name: 'ask', arguments: args, ...extra })
  const first = await ask()
  const second = await ask()
  expect(codeOf(await ask())).toEqual([200, -32601])
  await expect.poll(() => endpoint.counts.parkedCalls).toBe(0)
  for (const { json } of [first, second])
    expect(
      codeOf(
        await ask(
          {},
          {
            requestState: (json['result'] as Json)['requestState'],
            inputResponses: { 'question-1': { action: 'decline' } },
          },
        ),
      ),
    ).toEqual([200, -32602])
  let answer = await ask({ rounds: 9 })
  for (let round = 1; resultOf(answer) !== undefined; round++)
    answer = await ask(
      { rounds: 9 },
      {
        requestState: resultOf(answer)['requestState'],
        inputResponses: { [`question-${round}`]: { action: 'cancel' } },
      },
    )
  expect(answer.json['error']).toMatchObject({
    code: -32601,
    message: 'The client cannot be asked "elicitation/create": it was asked 3 times for one call',
  })
})

verifies('security.075', async () => {
  const [ada, bob] = ['ada-'.padEnd(40, 'abcdefghij'), 'bob-'.padEnd(40, 'klmnopqrst')]
  await using served = await serve({
    tokens: [
      { name: 'ada', token: ada },
      { name: 'bob', token: bob },
    ],
  })
  await using other = await serve({ tokens: [{ name: 'ada', token: ada }] })
  const { port, recorder } = served
  const response = { 'question-1': { action: 'accept', content: {} } }
  const ask = (extra: Json, { token = ada, args = {}, at = port, name = 'ask' } = {}): Promise<Answer> =>
    modern(at, 'tools/call', { name, arguments: args, ...extra }, { headers: { authorization: `Bearer ${token}` } })
  const state = resultOf(await ask({}))['requestState'] as string
  const refused = async (requestState: unknown, where = {}): Promise<void> => {
    const answer = await ask({ requestState, inputResponses: response }, where)
    expect(answer.json['error'], String(requestState).slice(0, 20)).toEqual({
      code: -32602,
      message: 'Unknown or expired requestState',
    })
  }
  const flip = (at: number): string => state.slice(0, at) + (state[at] === 'A' ? 'B' : 'A') + state.slice(at + 1)
  for (let at = 2; at < state.length; at++) await refused(flip(at))
  for (const changed of [
    `${state}A`,
    `${state}=`,
    `${state} `,
    `${state}-TAMPERED`,
    state.slice(0, -1),
    state.slice(0, 10),
    'p.',
    `p.${'A'.repeat(70_000)}`,
  ])
    await refused(changed)
  await refused(state, { token: bob })
  await refused(state, { args: { rounds: 2 } })
  await refused(state, { name: 'askBoth' })
  await refused(state, { at: other.port })
  const calls = recorder.calls.length
  expect((await ask({ requestState: state, inputResponses: response })).status).toBe(200)
  await refused(state) // used
  expect(recorder.calls.length).toBe(calls)
  expect(served.endpoint.counts.parkedCalls).toBe(0)
})

verifies('wire.206', async () => {
  await using served = await serve()
  const { port, recorder, endpoint } = served
  const session = await openSession(port)
  const params = (key: string, chatty = false): Json => ({ name: 'hold', arguments: { key, chatty } })
  const legacy = new Stream(port, { headers: session.headers, body: rpc('tools/call', params('legacy')) })
  const silent = new Stream(port, {
    headers: headers('tools/call', { 'mcp-name': 'hold' }),
    body: rpc('tools/call', { ...params('silent'), _meta: modernMeta() }),
  })
  const streaming = new Stream(port, {
    headers: headers('tools/call', { 'mcp-name': 'hold' }),
    body: rpc('tools/call', { ...params('streaming', true), _meta: { ...modernMeta(), progressToken: 1 } }),
  })
  await recorder.until(() => recorder.held.size === 3)
  await streaming.until(({ events }) => events.length === 1)
  for (const stream of [legacy, silent, streaming]) stream.drop()
  await recorder.until(() => recorder.cancelled.length === 3)
  expect([...recorder.cancelled].sort()).toEqual(
    ['legacy', 'silent', 'streaming'].map((key) => `${key}: The client hung up`),
  )
  expect(endpoint.counts.calls).toBe(0)
})

verifies('wire.216', async () => {
  await using served = await serve()
  const { port, recorder, endpoint } = served
  const listen = (notifications: unknown, id: string | number): Stream =>
    new Stream(port, {
      headers: headers('subscriptions/listen'),
      body: rpc('subscriptions/listen', { notifications, _meta: modernMeta() }, id),
    })
  const all = listen({ toolsListChanged: true, resourceSubscriptions: ['a:b', 'a:b'], strange: true }, 'sub')
  const few = listen({ promptsListChanged: true, toolsListChanged: false }, 2)
  await recorder.until(() => recorder.listeners.length === 2)
  await all.until(({ events }) => events.length === 1)
  await few.until(({ events }) => events.length === 1)
  expect(all.events[0]).toEqual({
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: {
      notifications: { toolsListChanged: true, resourceSubscriptions: ['a:b'] },
      _meta: { [SUBSCRIPTION]: 'sub' },
    },
  })
  expect(few.events[0]?.['params']).toEqual({
    notifications: { promptsListChanged: true },
    _meta: { [SUBSCRIPTION]: 2 },
  })
  const told = (): boolean[] =>
    recorder.listeners.flatMap((listener) => [
      listener.notify('notifications/tools/list_changed'),
      listener.notify('notifications/prompts/list_changed'),
      listener.notify('notifications/resources/list_changed'),
      listener.notify('notifications/resources/updated', { uri: 'a:b' }),
      listener.notify('notifications/resources/updated', { uri: 'c:d' }),
      listener.notify('notifications/message', { level: 'error', data: '' }),
    ])
  const which = told().filter(Boolean).length
  expect(which).toBe(3)
  await all.until(({ events }) => events.length === 3)
  await few.until(({ events }) => events.length === 2)
  expect(all.events[2]).toEqual({
    jsonrpc: '2.0',
    method: 'notifications/resources/updated',
    params: { uri: 'a:b', _meta: { [SUBSCRIPTION]: 'sub' } },
  })
  let closed = 0
  for (const listener of recorder.listeners) listener.whenClosed(() => closed++)
  few.drop()
  await expect.poll(() => endpoint.counts.listeners).toBe(1)
  expect(closed).toBe(1)
  await endpoint.close()
  await all.until(({ isClosed }) => isClosed)
  expect(closed).toBe(2)
  expect(all.events.at(-1)).toEqual({
    jsonrpc: '2.0',
    id: 'sub',
    result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: 'sub' } },
  })
})

test('a listener needs a filter and a stream', async () => {
  await using served = await serve()
  for (const notifications of [
    undefined,
    null,
    [],
    'all',
    { resourceSubscriptions: 'a:b' },
    { resourceSubscriptions: [1] },
    { resourceSubscriptions: Array.from({ length: 1_025 }, (_, n) => `a:${n}`) },
  ])
    expect(codeOf(await modern(served.port, 'subscriptions/listen', { notifications }))).toEqual([200, -32602])
  expect(
    codeOf(
      await modern(
        served.port,
        'subscriptions/listen',
        { notifications: {} },
        { headers: { accept: 'application/json' } },
      ),
    ),
  ).toEqual([200, -32602])
  expect(served.endpoint.counts.listeners).toBe(0)
})
