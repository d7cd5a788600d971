// Sessions of the legacy era over HTTP: streams, resumption, questions, cancellation, batches.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { eventIdsIn, openSession, rpc, Stream, send, serve } from './server-fixture.ts'

type Json = Record<string, unknown>
const textOf = (message: Json | undefined): unknown =>
  (message as { result?: { content?: { text: string }[] } })?.result?.content?.[0]?.text
const cancel = (requestId: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason: 'enough' } })

verifies('wire.200', async () => {
  await using served = await serve()
  const asked = async (protocolVersion: unknown): Promise<unknown> => {
    const answer = await send(served.port, {
      body: rpc('initialize', { protocolVersion, capabilities: {}, clientInfo: {} }),
    })
    expect(answer.json['result']).toMatchObject({
      serverInfo: { name: 'fixture' },
      instructions: 'Be kind.',
      capabilities: { logging: {} },
    })
    return (answer.json['result'] as Json)['protocolVersion']
  }
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])
    expect(await asked(version)).toBe(version)
  for (const version of ['2024-10-07', '1999-01-01', '2099-01-01', undefined, 7])
    expect(await asked(version), String(version)).toBe('2025-11-25')
})

verifies('wire.201', async () => {
  await using served = await serve({ limits: { sessionIdleMs: 300 } })
  const { port, recorder, endpoint } = served
  const list = rpc('tools/list')
  expect((await send(port, { body: list })).status).toBe(400)
  const lost = await send(port, { body: list, headers: { 'mcp-session-id': 'nobody' } })
  expect([lost.status, lost.json['error']]).toEqual([404, { code: -32001, message: 'Session not found' }])
  const first = await openSession(port, { name: 'first' })
  expect((await first.post(list)).status).toBe(200)
  expect((await first.post(list, { 'mcp-protocol-version': '1999-01-01' })).status).toBe(400)
  expect((await send(port, { method: 'GET', headers: { accept: 'text/event-stream' } })).status).toBe(405)
  expect((await send(port, { method: 'DELETE' })).status).toBe(405)
  expect((await send(port, { method: 'DELETE', headers: first.headers })).status).toBe(204)
  expect((await first.post(list)).status).toBe(404)
  expect((await send(port, { method: 'DELETE', headers: first.headers })).status).toBe(404)
  expect(recorder.closed).toEqual(['first'])
  const idle = await openSession(port, { name: 'idle' })
  const listening = await openSession(port, { name: 'listening' })
  const stream = new Stream(port, { method: 'GET', headers: listening.headers })
  await stream.until(({ text }) => text !== '')
  await recorder.until(() => recorder.closed.includes('idle'))
  expect((await idle.post(list)).status).toBe(404)
  expect(endpoint.counts.sessions).toBe(1)
  expect((await listening.post(list)).status).toBe(200)
  stream.drop()
  await recorder.until(() => recorder.closed.includes('listening'))
})

verifies('wire.202', async () => {
  await using served = await serve()
  const session = await openSession(served.port)
  const plain = await session.call('echo', { a: 1 })
  expect([plain.headers['content-type'], plain.events, textOf(plain.json)]).toEqual(['application/json', [], '{"a":1}'])
  const unwanted = await session.call('progress')
  expect([unwanted.headers['content-type'], textOf(unwanted.json)]).toEqual(['application/json', 'done'])
  const wanted = await session.call('progress', {}, 'p', { progressToken: 'tok' })
  expect(wanted.headers['content-type']).toBe('text/event-stream')
  expect(wanted.events.slice(0, -1)).toEqual(
    [1, 2, 3].map((progress) => ({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progress, total: 3, progressToken: 'tok' },
    })),
  )
  expect(wanted.json).toMatchObject({ id: 'p', result: { content: [{ text: 'done' }] } })
  const jsonOnly = await session.post(rpc('tools/call', { name: 'progress', _meta: { progressToken: 1 } }), {
    accept: 'application/json',
  })
  expect([jsonOnly.headers['content-type'], textOf(jsonOnly.json)]).toEqual(['application/json', 'done'])
  const streamOnly = await session.post(rpc('tools/call', { name: 'echo', arguments: {} }), {
    accept: 'text/event-stream',
  })
  expect([streamOnly.headers['content-type'], textOf(streamOnly.json)]).toEqual(['text/event-stream', '{}'])
})

verifies('wire.203', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const session = await openSession(port)
  await recorder.until(() => recorder.told.includes('notifications/initialized'))
  const holding = new Stream(port, {
    headers: session.headers,
    body: rpc('tools/call', { name: 'hold', arguments: { key: 'k' } }),
  })
  await recorder.until(() => recorder.held.has('k'))
  const [client] = recorder.clients
  client?.notify('notifications/tools/list_changed', {})
  const stream = new Stream(port, { method: 'GET', headers: session.headers })
  await stream.until(({ events }) => events.length === 1)
  client?.notify('notifications/resources/updated', { uri: 'a:b' })
  await stream.until(({ events }) => events.length === 2)
  expect(stream.events.map(({ method }) => method)).toEqual([
    'notifications/tools/list_changed',
    'notifications/resources/updated',
  ])
  expect(holding.text).toBe('')
  // A second GET takes the place of the first, which may be a dead connection.
  const second = new Stream(port, { method: 'GET', headers: session.headers })
  await stream.until(({ isClosed }) => isClosed)
  client?.notify('notifications/prompts/list_changed', {})
  await second.until(({ events }) => events.length > 0)
  expect(second.events.map(({ method }) => method)).toEqual(['notifications/prompts/list_changed'])
  recorder.held.get('k')?.('over')
  await holding.until(({ isClosed }) => isClosed)
  second.drop()
})

verifies('wire.204', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const session = await openSession(port)
  const start = (key: string): Stream =>
    new Stream(port, {
      headers: session.headers,
      body: rpc('tools/call', { name: 'hold', arguments: { key, chatty: true }, _meta: { progressToken: key } }, key),
    })
  const broken = start('broken')
  const other = start('other')
  await broken.until(({ events }) => events.length === 1)
  await other.until(({ events }) => events.length === 1)
  const [primed, last] = eventIdsIn(broken.text)
  broken.drop()
  await broken.until(({ isClosed }) => isClosed)
  recorder.held.get('broken')?.('late')
  recorder.held.get('other')?.('other')
  const resumed = await send(port, {
    method: 'GET',
    headers: { ...session.headers, accept: 'text/event-stream', 'last-event-id': last as string },
  })
  expect(resumed.events).toEqual([
    { jsonrpc: '2.0', method: 'notifications/progress', params: { progress: 1, progressToken: 'broken' } },
    { jsonrpc: '2.0', id: 'broken', result: { content: [{ type: 'text', text: 'late' }] } },
  ])
  // What has left may have been lost on its way: it can be read again for a moment, from any place. A made-up place never was.
  const again = await send(port, {
    method: 'GET',
    headers: { ...session.headers, accept: 'text/event-stream', 'last-event-id': primed as string },
  })
  expect(again.events.length).toBe(3)
  for (const id of ['99_0', 'x', '0_', '-1_0'])
    expect(
      (
        await send(port, {
          method: 'GET',
          headers: { ...session.headers, accept: 'text/event-stream', 'last-event-id': id },
        })
      ).status,
      id,
    ).toBe(400)
  await other.until(({ isClosed }) => isClosed)
  expect(recorder.cancelled).toEqual([])
})

test('a stream begins with an event to come back from, for clients that know it', async () => {
  await using served = await serve()
  for (const [version, ids] of [
    ['2025-11-25', 5],
    ['2025-06-18', 4],
  ] as const) {
    const session = await openSession(served.port, { version })
    const answer = await session.call('progress', {}, 1, { progressToken: 1 })
    expect(eventIdsIn(answer.text).length, version).toBe(ids)
    expect(answer.text.includes('retry: '), version).toBe(version === '2025-11-25')
  }
})

verifies('wire.205', async () => {
  await using served = await serve({ limits: { resumeWindowMs: 80 } })
  const { port, recorder } = served
  const session = await openSession(port)
  const broken = new Stream(port, {
    headers: session.headers,
    body: rpc('tools/call', { name: 'hold', arguments: { key: 'k', chatty: true }, _meta: { progressToken: 1 } }),
  })
  await broken.until(({ events }) => events.length === 1)
  broken.drop()
  await recorder.until(() => recorder.cancelled.length > 0)
  expect(recorder.cancelled).toEqual(['k: Nobody came back for the event stream'])
  expect(served.endpoint.counts.calls).toBe(0)
  expect((await session.call('echo')).status).toBe(200)
})

verifies('wire.207', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const session = await openSession(port)
  const answers = ['a', 'b', 0, '0'].map((id) => session.call('hold', { key: `${typeof id}-${id}` }, id))
  await recorder.until(() => recorder.held.size === 4)
  for (const requestId of ['0', 'nobody', null, 'init'])
    expect((await session.post(cancel(requestId))).status).toBe(202)
  expect(recorder.cancelled).toEqual(['string-0: enough'])
  await session.post(cancel('a'))
  expect(recorder.cancelled).toEqual(['string-0: enough', 'string-a: enough'])
  recorder.held.get('string-b')?.('b')
  recorder.held.get('number-0')?.('zero')
  const [a, b, zero] = await Promise.all(answers)
  expect(textOf(b?.json)).toBe('b')
  expect([zero?.json['id'], textOf(zero?.json)]).toEqual([0, 'zero'])
  expect(a?.json['error']).toMatchObject({ message: 'enough' })
})

verifies('wire.208', async () => {
  await using served = await serve()
  const { port } = served
  const session = await openSession(port, { capabilities: { elicitation: {} } })
  const ask = (id: string, rounds = 1): Stream =>
    new Stream(port, { headers: session.headers, body: rpc('tools/call', { name: 'ask', arguments: { rounds } }, id) })
  const [first, second] = [ask('one', 2), ask('two')]
  await first.until(({ events }) => events.length === 1)
  await second.until(({ events }) => events.length === 1)
  const questions = [first.events[0], second.events[0]]
  expect(questions.map((question) => question?.['method'])).toEqual(['elicitation/create', 'elicitation/create'])
  const answer = (id: unknown, content: Json): Promise<{ status: number }> =>
    session.post(JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content } }))
  expect((await answer(questions[1]?.['id'], { n: 2 })).status).toBe(202)
  await second.until(({ isClosed }) => isClosed)
  expect(textOf(second.events[1])).toBe('[{"action":"accept","content":{"n":2}}]')
  expect(first.events.length).toBe(1)
  for (const id of [questions[1]?.['id'], 999, 'x']) expect((await answer(id, {})).status).toBe(202) // late, unknown: nothing happens
  await answer(questions[0]?.['id'], { n: 1 })
  await first.until(({ events }) => events.length === 2)
  await session.post(
    JSON.stringify({ jsonrpc: '2.0', id: first.events[1]?.['id'], error: { code: -1, message: 'no' } }),
  )
  await first.until(({ isClosed }) => isClosed)
  expect(first.events[2]).toMatchObject({ id: 'one', error: { code: -1, message: 'no' } })
})

test('a question that is taken back is cancelled at the client', async () => {
  await using served = await serve()
  const session = await openSession(served.port)
  const answer = await session.call('askAndTakeBack')
  expect(answer.events.map(({ method }) => method)).toEqual(['roots/list', 'notifications/cancelled', undefined])
  expect(answer.events[1]?.['params']).toMatchObject({ requestId: answer.events[0]?.['id'] })
  expect(textOf(answer.json)).toBe('The question was taken back')
})

test('a client that takes no stream cannot be asked, and a silent one is given up', async () => {
  await using served = await serve({ limits: { askTimeoutMs: 60 } })
  const session = await openSession(served.port)
  const deaf = await session.post(rpc('tools/call', { name: 'ask' }), { accept: 'application/json' })
  expect(deaf.json['error']).toMatchObject({ code: -32601 })
  const silent = await session.call('ask')
  expect(silent.events.map(({ method }) => method)).toEqual([
    'elicitation/create',
    'notifications/cancelled',
    undefined,
  ])
  expect(silent.json['error']).toMatchObject({ code: -32603 })
})

verifies('wire.211', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const batch = (...messages: unknown[]): string => JSON.stringify(messages)
  const call = (id: unknown, args: Json): Json => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'echo', arguments: args },
  })
  const notification = { jsonrpc: '2.0', method: 'notifications/x' }
  const old = await openSession(port, { version: '2025-03-26' })
  const streamed = await old.post(
    batch(call(1, { n: 1 }), notification, call('2', { n: 2 }), { jsonrpc: '2.0', id: 3 }),
  )
  expect(streamed.events.map((event) => [event['id'], textOf(event) ?? (event['error'] as Json)['code']])).toEqual([
    [1, '{"n":1}'],
    ['2', '{"n":2}'],
    [3, -32600],
  ])
  const listed = await old.post(batch(call(1, { n: 1 }), call(2, { n: 2 })), { accept: 'application/json' })
  expect((listed.json as unknown as Json[]).map(textOf)).toEqual(['{"n":1}', '{"n":2}'])
  const doubled = await old.post(batch(call(1, {}), { jsonrpc: '2.0', id: 1, method: 'initialize' }), {
    accept: 'application/json',
  })
  expect((doubled.json as unknown as Json[])[1]).toMatchObject({ id: 1, error: { code: -32600 } })
  expect((await old.post(batch(notification, notification))).status).toBe(202)
  expect(recorder.told.filter((method) => method === 'notifications/x').length).toBe(3)
  for (const version of ['2025-11-25', '2025-06-18', '2024-11-05']) {
    const session = await openSession(port, { version })
    const refused = await session.post(batch(call(1, {})))
    expect([refused.status, (refused.json['error'] as Json)['code']], version).toEqual([400, -32600])
  }
  const before = recorder.calls.length
  expect((await old.post('[]')).status).toBe(400)
  expect((await old.post(batch(...Array.from({ length: 101 }, (_, id) => call(id, {}))))).status).toBe(400)
  expect((await send(port, { body: batch({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }) })).status).toBe(
    400,
  )
  expect(recorder.calls.length).toBe(before)
})

verifies('wire.218', async () => {
  await using served = await serve()
  const session = await openSession(served.port)
  const body = '{ "content" :[ ] , "x":1.0, "y":"\\u00e4ä" ,"z":12345678901234567890}'
  const answer = await session.call('raw', { body }, 'id "1"')
  expect(answer.text).toBe(`{"jsonrpc":"2.0","id":"id \\"1\\"","result":${body}}`)
  const lined = await session.post(rpc('tools/call', { name: 'raw', arguments: { body: '{\n"a":\r\n1}' } }), {
    accept: 'text/event-stream',
  })
  expect(lined.json['result']).toEqual({ a: 1 })
  const broken = await session.call('raw', { body: '{"a":}' })
  expect(broken.json['error']).toEqual({ code: -32603, message: 'Internal error' })
  for (const bytes of [1, 15_000, 17_000, 3_000_000])
    expect((textOf((await session.call('big', { bytes })).json) as string).length).toBe(bytes)
  for (const bytes of [1, 3_000_000])
    expect(
      (
        textOf(
          (
            await session.post(rpc('tools/call', { name: 'big', arguments: { bytes } }), {
              accept: 'text/event-stream',
            })
          ).json,
        ) as string
      ).length,
    ).toBe(bytes)
})

verifies('wire.221', async () => {
  await using served = await serve({ limits: { keepAliveCommentMs: 60 } })
  const { port, recorder } = served
  const session = await openSession(port)
  const held = new Stream(port, {
    headers: session.headers,
    body: rpc('tools/call', { name: 'hold', arguments: { key: 'k' } }),
  })
  const plain = new Stream(port, {
    headers: { ...session.headers, accept: 'application/json' },
    body: rpc('tools/call', { name: 'hold', arguments: { key: 'j' } }, 2),
  })
  const standing = new Stream(port, { method: 'GET', headers: session.headers })
  await held.until(({ text }) => (text.match(/^:$/gm)?.length ?? 0) >= 2)
  await standing.until(({ text }) => (text.match(/^:$/gm)?.length ?? 0) >= 3)
  expect(plain.text).toBe('')
  for (const key of ['k', 'j']) recorder.held.get(key)?.('late')
  await held.until(({ isClosed }) => isClosed)
  await plain.until(({ isClosed }) => isClosed)
  expect(textOf(held.events.at(-1))).toBe('late')
  expect(textOf(JSON.parse(plain.text) as Json)).toBe('late')
  standing.drop()
})

test('an error of the application says nothing of its insides', async () => {
  await using served = await serve()
  const session = await openSession(served.port)
  const answer = await session.call('fail')
  expect([answer.status, answer.json['error']]).toEqual([200, { code: -32603, message: 'Internal error' }])
})
