// One server passed through: what both sides would see without us.
import { scriptedStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { modern, openSession, rpc, Stream } from '../../wire/test/server-fixture.ts'
import { connect, ERAS, open, seenBy, textOf } from './fixture.ts'

type Json = Record<string, unknown>

verifies('gateway.016', async () => {
  const tools = [
    { name: 'any name ü', vendor: 1, _meta: { 'convoke/x': 'theirs' }, description: 'raw \u200b' },
    { name: 'refuse', does: { kind: 'rpc-error', code: -31999, message: 'raw\u0007 text', data: { deep: [1] } } },
    { name: 'seen', does: { kind: 'seen' } },
    {
      name: 'elicit',
      does: {
        kind: 'ask',
        method: 'elicitation/create',
        params: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } },
      },
    },
    { name: 'log', does: { kind: 'log', level: 'info', count: 1 } },
  ] as const
  for (const [serverEra, kind] of [
    ['legacy', 'pipe'],
    ['modern', 'pipe'],
    ['legacy', 'http'],
    ['modern', 'http'],
  ] as const) {
    await using http = await startScriptedHttp({
      era: serverEra,
      answers: 'sse',
      tools,
      name: 'inside',
      instructions: 'As it is.\n- really',
    })
    const entry =
      kind === 'pipe'
        ? scriptedStdio({ era: serverEra, tools, name: 'inside', instructions: 'As it is.\n- really' })
        : { url: http.url }
    await using opened = await open({ servers: { one: entry }, options: { transparent: 'one' }, host: { start: [] } })
    for (const era of ERAS) {
      const what = `${serverEra} ${kind}, ${era} client`
      const asked: Json[] = []
      const handlers = {
        'elicitation/create': async (params: Json) => {
          asked.push(params)
          return { action: 'accept', content: { by: era } }
        },
      }
      await using client = await connect(opened.url, era, { handlers, name: `client-${era}` })
      expect(client.serverInfo['name'], what).toBe('inside')
      expect(client.instructions, what).toBe('As it is.\n- really')
      const { tools: listed } = await client.request('tools/list')
      expect((listed as Json[])[0], what).toEqual({
        ...tools[0],
        inputSchema: { type: 'object', properties: { text: expect.anything() } },
      })
      expect(textOf(await client.callTool('any name ü', { text: 'x' })), what).toBe('x')
      await expect(client.callTool('refuse'), what).rejects.toMatchObject({
        details: { rpc: { code: -31999, message: 'raw\u0007 text', data: { deep: [1] } } },
      })
      await expect(client.callTool('nobody'), what).rejects.toMatchObject({
        details: { rpc: { code: -32602, message: 'Unknown tool: nobody' } },
      })
      await expect(client.request('vendor/unknown'), what).rejects.toMatchObject({ details: { rpc: { code: -32601 } } })
      expect(JSON.parse(textOf(await client.callTool('elicit'))), what).toEqual({
        action: 'accept',
        content: { by: era },
      })
      expect(asked, what).toEqual([{ message: 'Who?', requestedSchema: { type: 'object', properties: {} } }])
      if (era === 'legacy' && serverEra === 'legacy')
        expect((await seenBy(client, '')).lastInitialize, what).toMatchObject({
          capabilities: { elicitation: { form: {}, url: {} } },
          clientInfo: { name: 'client-legacy' },
        })
      const read = await client.request('resources/read', { uri: 'scripted://one' })
      expect(read['contents'], what).toEqual([
        { uri: 'scripted://one', mimeType: 'text/plain', text: 'Content of scripted://one' },
      ])
      expect(
        ((await client.request('prompts/get', { name: 'greet', arguments: { who: 'Ada' } }))['messages'] as Json[])
          .length,
        what,
      ).toBe(1)
    }
  }
})

test('sessions of one server do not share it, in either era of the server', async () => {
  for (const serverEra of ERAS) {
    await using opened = await open({
      servers: { one: scriptedStdio({ era: serverEra }) },
      options: { transparent: 'one' },
      host: { start: [] },
    })
    await using first = await connect(opened.url, 'legacy')
    await using second = await connect(opened.url, 'legacy')
    const pids = [await seenBy(first, ''), await seenBy(second, '')].map(({ pid }) => pid)
    expect(new Set(pids).size, serverEra).toBe(2)
    await first.callTool('change', { count: 1 })
    await first.until(() => first.heard.some(({ method }) => method === 'notifications/tools/list_changed'))
    expect(second.heard.filter(({ method }) => method.endsWith('list_changed'))).toEqual([])
  }
})

test('levels, subscriptions and changes work across the eras', async () => {
  for (const serverEra of ERAS) {
    await using http = await startScriptedHttp({ era: serverEra, answers: 'sse' })
    await using opened = await open({
      servers: { one: { url: http.url } },
      options: { transparent: 'one' },
      host: { start: [] },
    })
    await using old = await connect(opened.url, 'legacy')
    await old.request('logging/setLevel', { level: 'info' })
    await old.request('resources/subscribe', { uri: 'scripted://one' })
    const logs = (): unknown[] =>
      old.heard.filter(({ method }) => method === 'notifications/message').map(({ params }) => params)
    await old.callTool('log', { count: 1 })
    expect(logs(), serverEra).toEqual([{ level: 'info', logger: 'scripted', data: 'message 1' }])
    await old.callTool('touch', { uri: 'scripted://one' })
    await old.until(() => old.heard.some(({ method }) => method === 'notifications/resources/updated'))
    await old.request('resources/unsubscribe', { uri: 'scripted://one' })
    await using listener = await connect(opened.url, 'modern')
    await using listening = await listener.subscribe({
      toolsListChanged: true,
      resourceSubscriptions: ['scripted://two'],
    })
    expect(listening.honored, serverEra).toEqual({ toolsListChanged: true, resourceSubscriptions: ['scripted://two'] })
    await listener.callTool('change', { count: 1 })
    await listener.callTool('touch', { uri: 'scripted://two' })
    await listener.until(() => listener.heard.filter(({ method }) => /list_changed|updated/.test(method)).length >= 2)
  }
})

test('a server that cannot be started fails the handshake by name, and each later one tries again', async () => {
  await using opened = await open({ servers: { one: { command: '/nowhere/server' } }, options: { transparent: 'one' } })
  await expect(connect(opened.url, 'legacy')).rejects.toMatchObject({
    details: { rpc: { code: -32603, message: expect.stringContaining('one') } },
  })
  const discovered = await modern(opened.port, 'server/discover')
  expect([discovered.status, discovered.json['error']]).toMatchObject([200, { code: -32603 }])
  expect(opened.gateway.counts.sessions).toBe(0)
})

test('modern calls must mirror what the schema of the server asks for', async () => {
  const inputSchema = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }
  const servers = { one: scriptedStdio({ tools: [{ name: 'marked', inputSchema }] }) }
  await using through = await open({ servers, options: { transparent: 'one' }, host: { start: [] } })
  await using shared = await open({ servers })
  await modern(through.port, 'tools/list')
  for (const [port, name] of [
    [through.port, 'marked'],
    [shared.port, 'one__marked'],
  ] as const) {
    const call = (headers: Record<string, string>): Promise<{ status: number; json: Json }> =>
      modern(port, 'tools/call', { name, arguments: { region: 'us', text: 'x' } }, { headers })
    const bare = await call({})
    expect([bare.status, bare.json['error']], name).toMatchObject([400, { code: -32020 }])
    expect((await call({ 'mcp-param-region': 'eu' })).status, name).toBe(400)
    expect((await call({ 'mcp-param-region': 'us' })).status, name).toBe(200)
    // Our own client reads the list and does so by itself.
    await using client = await connect(`http://127.0.0.1:${port}/mcp`, 'modern')
    await client.list('tools')
    expect(textOf(await client.callTool(name, { region: 'us', text: 'mirrored' })), name).toBe('mirrored')
  }
})

test('a modern call that comes before its tool is known is held to the schema once that is there', async () => {
  const inputSchema = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }
  const slow = scriptedStdio({ startDelayMs: 500, tools: [{ name: 'marked', inputSchema }] })
  await using shared = await open({ servers: { one: slow } })
  const params = { name: 'one__marked', arguments: { region: 'us', text: 'x' } }
  const [bare, marked] = await Promise.all([
    modern(shared.port, 'tools/call', params),
    modern(shared.port, 'tools/call', params, { headers: { 'mcp-param-region': 'us' } }),
  ])
  expect([bare.status, bare.json['error']]).toMatchObject([400, { code: -32020 }])
  expect(marked.status).toBe(200)
})

test('a state of this gateway is good for this request of this client alone', async () => {
  await using http = await startScriptedHttp({ era: 'modern' })
  await using opened = await open({
    servers: { one: { url: http.url } },
    options: { transparent: 'one' },
    host: { start: [] },
  })
  const call = (extra: Json, name = 'elicit'): Promise<Json> =>
    modern(opened.port, 'tools/call', { name, arguments: {}, ...extra }).then(({ json }) => json)
  const asked = (await call({}))['result'] as Json
  const state = String(asked['requestState'])
  expect(state).toMatch(/^r\./)
  expect(state).not.toContain('state-')
  const inputResponses = { question: { action: 'accept', content: {} } }
  const refused = { code: -32602, message: 'Unknown or expired requestState' }
  for (const requestState of [`${state}A`, state.slice(0, -1), 'state-1', 'r.', `p.${state.slice(2)}`, 7, {}])
    expect((await call({ requestState, inputResponses }))['error'], String(requestState)).toEqual(refused)
  expect((await call({ requestState: state, inputResponses }, 'sample'))['error']).toEqual(refused)
  expect((await call({ requestState: state, inputResponses }))['result']).toMatchObject({
    content: [{ text: '{"action":"accept","content":{}}' }],
  })
  const seen = JSON.parse(
    (((await call({}, 'seen'))['result'] as Json)['content'] as { text: string }[])[0]?.text ?? '',
  ) as { requests: string[] }
  expect(seen.requests.filter((method) => method === 'tools/call').length).toBe(3)
})

test('questions that belong to no call reach the session on its own stream', async () => {
  await using http = await startScriptedHttp({ answers: 'json' })
  await using opened = await open({
    servers: { one: { url: http.url } },
    options: { transparent: 'one' },
    host: { start: [] },
  })
  const session = await openSession(opened.port, { capabilities: { roots: {} } })
  const standing = new Stream(opened.port, { method: 'GET', headers: session.headers })
  await standing.until(({ status }) => status === 200)
  // With JSON answers the scripted server has nowhere but its own stream to ask on.
  const called = new Stream(opened.port, {
    headers: session.headers,
    body: rpc('tools/call', { name: 'roots', arguments: {} }, 'r'),
  })
  await expect
    .poll(() => [...standing.events, ...called.events].some(({ method }) => method === 'roots/list'))
    .toBe(true)
  const question = [...standing.events, ...called.events].find(({ method }) => method === 'roots/list')
  await session.post(JSON.stringify({ jsonrpc: '2.0', id: question?.['id'], result: { roots: [] } }))
  await called.until(({ isClosed }) => isClosed)
  expect(called.text).toContain('roots')
  standing.drop()
})
