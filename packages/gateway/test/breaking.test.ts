// Attempts to break the gateway: bad moments to leave, hosts that go first, servers that send too much.
import { type ScriptedAct, scriptedStdio, startScriptedHttp } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { modern, openSession, rpc, Stream, send } from '../../wire/test/server-fixture.ts'
import { connect, open, seenBy, textOf } from './fixture.ts'

type Json = Record<string, unknown>
/** An answer that asks for input, whatever the client says. */
const asking = (result: Json): ScriptedAct =>
  ({ kind: 'content', content: [], resultType: 'input_required', ...result }) as ScriptedAct

test('a call that is cancelled while it waits for its turn never reaches the server', async () => {
  await using opened = await open({ servers: { pipe: scriptedStdio() } })
  await using asker = await connect(opened.url, 'legacy', {
    handlers: { 'elicitation/create': async () => ({ action: 'decline' }) },
  })
  await asker.callTool('pipe__elicit') // from now on one call at a time
  const session = await openSession(opened.port)
  const first = session.call('pipe__late', { ms: 400, text: 'first' }, 1)
  await expect.poll(() => opened.gateway.counts.calls).toBe(1)
  const waiting = session.call('pipe__echo', { text: 'never' }, 2)
  const leaving = new Stream(opened.port, {
    headers: session.headers,
    body: rpc('tools/call', { name: 'pipe__echo', arguments: { text: 'never' } }, 3),
  })
  await expect.poll(() => opened.gateway.counts.calls).toBe(3)
  await session.post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } }))
  leaving.drop()
  await waiting
  expect(textOf((await first).json['result'] as Json)).toBe('first')
  expect((await seenBy(asker, 'pipe')).calls).toEqual({ elicit: 1, late: 1, seen: 1 })
})

test('a connection of its own that is still starting ends with its session', async () => {
  await using opened = await open({
    servers: { slow: scriptedStdio({ startDelayMs: 20_000 }) },
    options: { transparent: 'slow' },
    host: { start: [] },
  })
  const stream = new Stream(opened.port, {
    body: rpc('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'hasty', version: '1' },
    }),
  })
  await expect.poll(() => opened.gateway.counts.dedicated).toBe(1)
  stream.drop()
  await expect.poll(() => opened.gateway.counts).toMatchObject({ sessions: 0, dedicated: 0 })
})

test('a gateway outlives its host without harm', async () => {
  const opened = await open({ servers: { one: scriptedStdio() } })
  try {
    const session = await openSession(opened.port)
    expect((await session.call('one__echo', { text: 'x' })).json['result']).toBeDefined()
    await opened.host.close()
    const after = await session.call('one__echo', { text: 'y' })
    expect(after.json['error']).toMatchObject({ code: -32603 })
    expect((await session.post(rpc('resources/list'))).status).toBe(200)
    expect((await session.post(rpc('tools/list'))).json['result']).toBeDefined()
    expect((await session.call('nobody__x')).json['error']).toMatchObject({ code: -32602 })
  } finally {
    await opened[Symbol.asyncDispose]()
  }
})

test('closing does not wait for a server that is waited for', async () => {
  const opened = await open({
    servers: { one: scriptedStdio({ startDelayMs: 20_000 }) },
    options: { limits: { listWaitMs: 1 } },
  })
  const session = await openSession(opened.port)
  const waiting = session.call('one__echo', {}, 1).catch((error: Error) => error)
  await expect.poll(() => opened.gateway.counts.calls).toBe(1)
  const startedMs = performance.now()
  await opened[Symbol.asyncDispose]()
  expect(performance.now() - startedMs).toBeLessThan(10_000)
  await waiting
})

test('a state that is too large to come back is an error, not a dead end', async () => {
  await using http = await startScriptedHttp({
    era: 'modern',
    tools: [
      {
        name: 'huge',
        does: asking({ inputRequests: {}, requestState: 'x'.repeat(100_000) }),
      },
    ],
  })
  await using opened = await open({ servers: { one: { url: http.url } } })
  const { json } = await modern(opened.port, 'tools/call', { name: 'one__huge', arguments: {} })
  expect(json['error']).toMatchObject({ code: -32603, message: expect.stringContaining('65536 bytes') })
})

test('a server that asks without end is stopped, in either era of the client', async () => {
  await using http = await startScriptedHttp({
    era: 'modern',
    tools: [
      {
        name: 'nag',
        does: asking({ inputRequests: { q: { method: 'roots/list' } } }),
      },
    ],
  })
  await using opened = await open({ servers: { one: { url: http.url } } })
  await using client = await connect(opened.url, 'legacy', { handlers: { 'roots/list': async () => ({ roots: [] }) } })
  await expect(client.callTool('one__nag')).rejects.toMatchObject({
    details: { rpc: { message: expect.stringContaining('16 times') } },
  })
  expect(http.requests.filter(({ rpc: method }) => method === 'tools/call').length).toBe(16)
  await using newer = await connect(opened.url, 'modern', { handlers: { 'roots/list': async () => ({ roots: [] }) } })
  await expect(newer.callTool('one__nag')).rejects.toThrow()
})

test('subscriptions that are asked for and dropped in a hurry come to nothing', async () => {
  await using opened = await open({ servers: { one: scriptedStdio() } })
  const sessions = await Promise.all(Array.from({ length: 10 }, () => openSession(opened.port)))
  await Promise.all(
    sessions.map(async (session, n) => {
      const ask = (method: string): Promise<unknown> =>
        session.post(rpc(`resources/${method}`, { uri: 'scripted://one' }, `${method}-${Math.random()}`))
      await Promise.all([ask('subscribe'), ask('subscribe'), ask('unsubscribe'), ask('subscribe')])
      if (n % 2 === 0) await ask('unsubscribe')
      await send(opened.port, { method: 'DELETE', headers: session.headers })
    }),
  )
  await expect.poll(() => opened.gateway.counts.subscriptions).toBe(0)
  expect(opened.gateway.counts.sessions).toBe(0)
})
