// What a server asks back, in both eras; notifications and subscriptions.
import { scriptedStdio, verifies } from '@convoke/testkit'
import { type CallContext, type JsonObject, type ServerRequestHandler, Session, WireError } from '@convoke/wire'
import { expect, test } from 'vitest'
import { connect, linesServer, type Rules, result, seenBy, textOf, until } from './lines.ts'

const failureOf = async (promise: Promise<unknown>): Promise<WireError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof WireError) return error
  throw new Error(`No WireError: ${error}`)
}
const ask = (id: string, method: string, params = '{"message":"name?"}'): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
const ASKING: Rules = {
  'tools/call ask-late': [ask('"q2"', 'elicitation/create')],
  'tools/call ask': [ask('"q1"', 'elicitation/create')],
  answer: ['{"jsonrpc":"2.0","id":$ID(ask),"result":{"content":[{"type":"text","text":$ANSWER}]}}'],
}
const accept =
  (name: string): ServerRequestHandler =>
  () =>
    Promise.resolve({ action: 'accept', content: { name } })

verifies('wire.040', async () => {
  const calls: (CallContext | undefined)[] = []
  await using session = await connect(ASKING, {
    handlers: {
      'elicitation/create': (params, { call, method }) => {
        calls.push(call)
        return Promise.resolve({ session: params, method })
      },
    },
  })
  expect(session.hasAskedBack).toBe(false)
  expect(JSON.parse(textOf(await session.callTool('ask')))).toEqual({
    session: { message: 'name?' },
    method: 'elicitation/create',
  })
  expect(session.hasAskedBack).toBe(true)
  expect(calls).toMatchObject([{ method: 'tools/call', params: { name: 'ask' } }])
  const own = await session.callTool('ask', {}, { handlers: { 'elicitation/create': accept('own') } })
  expect(JSON.parse(textOf(own))).toEqual({ action: 'accept', content: { name: 'own' } })
  await using silent = await connect(ASKING)
  expect(JSON.parse(textOf(await silent.callTool('ask')))).toEqual({ code: -32601, message: 'Method not found' })
  // A handler that breaks is our failure, not the server's business; one that refuses says how.
  const thrown = async (error: Error): Promise<unknown> =>
    JSON.parse(
      textOf(await silent.callTool('ask', {}, { handlers: { 'elicitation/create': () => Promise.reject(error) } })),
    )
  expect(await thrown(new Error('my secret'))).toEqual({ code: -32603, message: 'Internal error' })
  const refusal = new WireError('remote', 'no', { rpc: { code: -32042, message: 'not now' } })
  expect(await thrown(refusal)).toEqual({ code: -32042, message: 'not now' })
})

test('with two calls in flight a question on a pipe belongs to neither', async () => {
  const calls: unknown[] = []
  await using session = await connect(
    { ...ASKING, 'tools/call hang': [] },
    {
      handlers: {
        'elicitation/create': (_params, { call }) => {
          calls.push(call)
          return Promise.resolve({})
        },
      },
    },
  )
  const hanging = session.callTool('hang', {}, { handlers: { 'elicitation/create': accept('wrong') } }).catch(() => {})
  await session.callTool('ask', {}, { handlers: { 'elicitation/create': accept('wrong') } })
  expect(calls).toEqual([undefined])
  await session.close()
  await hanging
})

verifies('wire.033', async () => {
  await using session = await connect(ASKING)
  const slowly: ServerRequestHandler = async () => {
    await new Promise((resolve) => setTimeout(resolve, 500))
    return { slow: true }
  }
  const options = { idleTimeoutMs: 150, handlers: { 'elicitation/create': slowly } }
  expect(JSON.parse(textOf(await session.callTool('ask', {}, options)))).toEqual({ slow: true })
  // So does the total limit: 500 ms of waiting are longer than it. What is left of it then goes on.
  const total = { totalTimeoutMs: 300, handlers: { 'elicitation/create': slowly } }
  expect(JSON.parse(textOf(await session.callTool('ask', {}, total)))).toEqual({ slow: true })
  const late = await failureOf(session.callTool('ask-late', {}, total))
  expect(late.details.limit).toBe('total')
  // Whoever is being asked is told when the caller gives up.
  let aborted: unknown
  const abort = new AbortController()
  const forever: ServerRequestHandler = (_params, { signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        aborted = signal.reason
        reject(new Error('gone'))
      })
      abort.abort('enough')
    })
  const error = await failureOf(
    session.callTool('ask', {}, { signal: abort.signal, handlers: { 'elicitation/create': forever } }),
  )
  expect(error).toMatchObject({ code: 'cancelled' })
  expect(aborted).toMatchObject({ code: 'cancelled' })
  // The server gets its answer all the same.
  await until(async () => (await seenBy(session)).some((message) => 'error' in message))
})

verifies('wire.041', async () => {
  let signalled = false
  await using session = await connect(
    {
      'tools/call take-back': [
        ask('1', 'ping', '{}'),
        ask('2', 'tools/list', '{}'),
        ask('3', 'elicitation/create'),
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        '{"jsonrpc":"2.0","id":null,"method":"ping"}',
        '{"jsonrpc":"2.0","id":{},"method":"ping"}',
        ask('"4"', 'ping', '[]'),
        result('done'),
      ],
    },
    {
      handlers: {
        'elicitation/create': (_params, { signal }) =>
          new Promise((resolve) =>
            signal.addEventListener('abort', () => {
              signalled = true
              resolve({ late: true })
            }),
          ),
      },
    },
  )
  await session.callTool('take-back')
  const answers = (await seenBy(session)).filter(({ method }) => method === undefined)
  answers.sort((a, b) => String(a.id).localeCompare(String(b.id)))
  expect(answers).toEqual([
    { jsonrpc: '2.0', id: 1, result: {} },
    { jsonrpc: '2.0', id: 2, error: { code: -32601, message: 'Method not found' } },
    { jsonrpc: '2.0', id: '4', result: {} },
  ])
  expect([signalled, session.noiseCount]).toEqual([true, 2])
})

verifies(
  'wire.042',
  async () => {
    const release: (() => void)[] = []
    await using session = await connect(
      {
        'tools/call many': [
          ...Array.from({ length: 70 }, (_, index) => ask(String(index % 3), 'roots/list', '{}')),
          result('done'),
        ],
      },
      { handlers: { 'roots/list': () => new Promise((resolve) => release.push(() => resolve({ roots: [] }))) } },
    )
    await session.callTool('many')
    expect(release.length).toBe(64)
    await until(async () => (await seenBy(session)).filter((message) => 'error' in message).length === 6)
    for (const one of release) one()
    // Pings without end, none of the answers read.
    await using flooded = await connect({
      'tools/call flood': [{ stopReading: true }, { line: ask(`"${'x'.repeat(60_000)}"`, 'ping', '{}'), times: 2_000 }],
    })
    const flood = failureOf(flooded.callTool('flood'))
    expect(await flood).toMatchObject({
      code: 'closed',
      message: 'The server sends requests and does not read the answers',
    })
    expect(await flooded.closed).toMatchObject({ cause: 'connection-lost' })
  },
  60_000,
)

const modern = (options: object = {}): Promise<Session> =>
  Session.connect({ target: scriptedStdio({ era: 'modern' }), ...options })

verifies('wire.043', async () => {
  const DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":$SEEN}]}}'
  const rules: Rules = {
    'server/discover': [
      '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}',
    ],
    'tools/call rounds': [
      '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"opaque \\"=1","inputRequests":{"__proto__":{"method":"elicitation/create","params":{"a":1}},"r":{"method":"roots/list"}}}}',
    ],
    'tools/call state': ['{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":{"n":1}}}'],
    'tools/call nothing': ['{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required"}}'],
    'tools/call strange': ['{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"task"}}'],
    'tools/call list': ['{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":[1]}}'],
    'tools/call seen': [DONE],
  }
  await using session = await Session.connect({
    target: linesServer(rules),
    handlers: { 'roots/list': () => Promise.resolve({ roots: [] }) },
  })
  const own: ServerRequestHandler = (params, { call }) =>
    Promise.resolve({ action: 'accept', content: { ...params, of: call?.method } })
  const error = await failureOf(
    session.callTool(
      'rounds',
      { x: 1 },
      { handlers: { 'elicitation/create': own }, capabilities: { elicitation: {} } },
    ),
  )
  expect(error.code).toBe('too-many-rounds')
  const asked = (await seenBy(session)).filter(({ key }) => key === 'tools/call rounds')
  expect(asked).toHaveLength(10)
  expect(new Set(asked.map(({ id }) => id)).size).toBe(10)
  const { _meta: meta, ...params } = asked[9]?.params ?? {}
  expect((meta as JsonObject)['io.modelcontextprotocol/clientCapabilities']).toEqual({ elicitation: {} })
  expect(JSON.stringify(params)).toBe(
    '{"name":"rounds","arguments":{"x":1},"inputResponses":{"__proto__":{"action":"accept","content":{"a":1,"of":"tools/call"}},"r":{"roots":[]}},"requestState":"opaque \\"=1"}',
  )
  expect((await failureOf(session.callTool('state'))).code).toBe('too-many-rounds')
  const states = (await seenBy(session)).filter(({ key }) => key === 'tools/call state')
  expect(states[9]?.params).toMatchObject({ requestState: { n: 1 } })
  expect(states[9]?.params).not.toHaveProperty('inputResponses')
  for (const name of ['nothing', 'strange', 'list'])
    expect(await failureOf(session.callTool(name)), name).toMatchObject({ code: 'malformed' })
  const unanswered = await failureOf(session.callTool('rounds'))
  expect(unanswered).toMatchObject({ code: 'input-failed', cause: { details: { rpc: { code: -32601 } } } })
})

test('one round with a real question', async () => {
  await using session = await modern({ handlers: { 'elicitation/create': accept('Ada') } })
  const { tools } = { tools: (await session.list('tools')).items }
  expect(tools.map(({ name }) => name)).toContain('elicit')
  expect(JSON.parse(textOf(await session.callTool('elicit')))).toEqual({ action: 'accept', content: { name: 'Ada' } })
})

verifies('wire.044', async () => {
  await using session = await modern()
  const asked: AbortSignal[] = []
  const forever: ServerRequestHandler = (_params, { signal }) => {
    asked.push(signal)
    return new Promise(() => {})
  }
  const handlers = { 'elicitation/create': forever }
  // While somebody is being asked nothing runs out; with the answer the clocks go on.
  const slowly: ServerRequestHandler = async () => {
    await new Promise((resolve) => setTimeout(resolve, 500))
    return { action: 'decline' }
  }
  const limits = { totalTimeoutMs: 300, idleTimeoutMs: 250 }
  expect(
    textOf(await session.callTool('elicit', {}, { ...limits, handlers: { 'elicitation/create': slowly } })),
  ).toContain('decline')
  await using working = await Session.connect({
    target: linesServer({
      'server/discover': [
        '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}',
      ],
      'tools/call work': [
        { waitMs: 120 },
        '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"on"}}',
      ],
    }),
  })
  const late = await failureOf(working.callTool('work', {}, { totalTimeoutMs: 300, idleTimeoutMs: 0 }))
  expect(late).toMatchObject({ code: 'timed-out', details: { limit: 'total' } })
  const controller = new AbortController()
  const aborted = failureOf(session.callTool('elicit', {}, { signal: controller.signal, handlers }))
  await until(() => asked.length === 1)
  controller.abort('enough')
  expect(await aborted).toMatchObject({ code: 'cancelled', cause: 'enough' })
  expect(asked[0]?.aborted).toBe(true)
  // By the cheap way, given once for the whole.
  let started = 0
  let cancel: ((reason: string) => void) | undefined
  const onStarted = (how: (reason: string) => void): void => {
    started++
    cancel = how
  }
  const cancelled = failureOf(session.callTool('elicit', {}, { onStarted, handlers }))
  await until(() => asked.length === 2)
  cancel?.('enough')
  expect((await cancelled).code).toBe('cancelled')
  let answers = 0
  const once: ServerRequestHandler = () => Promise.resolve({ count: ++answers })
  await session.callTool('elicit', {}, { onStarted, handlers: { 'elicitation/create': once } })
  expect([started, answers]).toEqual([2, 1])
  cancel?.('long over')
})

verifies('wire.045', async () => {
  const log = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
  const heard: unknown[] = []
  const own: string[] = []
  await using session = await connect(
    { 'tools/call talk': [log, log, result('done')], 'tools/call hang': [], 'notifications/poke': [log] },
    { onNotification: (method, params, call) => heard.push([method, params, call?.params['name']]) },
  )
  await session.callTool('talk', {}, { onNotification: (method) => own.push(method) })
  const message = ['notifications/message', { level: 'info', data: 'x' }]
  expect(heard).toEqual([
    [...message, 'talk'],
    [...message, 'talk'],
  ])
  expect(own).toEqual(['notifications/message', 'notifications/message'])
  const hanging = session.callTool('hang').catch(() => {})
  await session.callTool('talk', {}, { onNotification: (method) => own.push(method) })
  expect(heard.slice(2)).toEqual([
    [...message, undefined],
    [...message, undefined],
  ])
  expect(own).toHaveLength(2)
  const throwing = (): never => {
    throw new Error('mine')
  }
  await session.callTool('talk', {}, { onNotification: throwing })
  await session.close()
  await hanging
})

verifies('wire.046', async () => {
  for (const era of ['legacy', 'modern'] as const) {
    await using session = await Session.connect({ target: scriptedStdio({ era }) })
    const all: string[] = []
    const touched: unknown[] = []
    await using everything = await session.subscribe(
      { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
      { onNotification: (method) => all.push(method) },
    )
    const one = await session.subscribe(
      { resourceSubscriptions: ['scripted://one'] },
      { onNotification: (_method, { uri }) => touched.push(uri) },
    )
    expect(everything.honored, era).toMatchObject({ toolsListChanged: true, promptsListChanged: true })
    expect(one.honored.resourceSubscriptions, era).toEqual(['scripted://one'])
    await session.callTool('change')
    await session.callTool('touch')
    await session.callTool('touch', { uri: 'scripted://two' })
    await until(() => all.length > 0 && touched.length > 0)
    expect([era, new Set(all), touched]).toEqual([
      era,
      new Set(['notifications/tools/list_changed']),
      ['scripted://one'],
    ])
    await one.close()
    await one.close()
    expect(await one.closed).toBe('local')
    await session.callTool('touch')
    expect([era, touched]).toEqual([era, ['scripted://one']])
    await session.close()
    expect([era, await everything.closed]).toEqual([era, 'remote'])
  }
})

test('a subscription that is refused or never agreed to fails by its own limit', async () => {
  await using refused = await Session.connect({
    target: linesServer({
      'subscriptions/listen': ['{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}'],
    }),
    era: 'modern',
  }).catch(() => {
    throw new Error('not connected')
  })
  expect(await failureOf(refused.subscribe({ toolsListChanged: true }))).toMatchObject({ code: 'remote' })
  expect(
    await failureOf(refused.subscribe({ resourceSubscriptions: Array.from({ length: 1_025 }, String) })),
  ).toMatchObject({ code: 'too-large' })
  await using silent = await Session.connect({ target: linesServer({}), era: 'modern' })
  expect(await failureOf(silent.subscribe({ toolsListChanged: true }, { timeoutMs: 100 }))).toMatchObject({
    code: 'timed-out',
  })
  const controller = new AbortController()
  const aborted = failureOf(silent.subscribe({ toolsListChanged: true }, { signal: controller.signal }))
  controller.abort()
  expect((await aborted).code).toBe('cancelled')
})
