// Attempts to break the server half: lost connections at bad moments, unusual but legal HTTP, use after the end.
import net from 'node:net'
import { serveHttp } from '@convoke/wire/server'
import { expect, test } from 'vitest'
import {
  application,
  eventIdsIn,
  eventsIn,
  modern,
  openSession,
  Recorder,
  raw,
  rpc,
  Stream,
  send,
  serve,
} from './server-fixture.ts'

type Json = Record<string, unknown>
const textOf = (message: Json | undefined): string =>
  (((message?.['result'] ?? {}) as Json)['content'] as { text: string }[])[0]?.text ?? ''
const post = (port: number, headers: Record<string, string>, body: string): string =>
  `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n${Object.entries(
    headers,
  )
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

test('a question survives a broken stream: it is asked again where the client comes back, and its answer ends the call', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const session = await openSession(port, { capabilities: { elicitation: {} } })
  const broken = new Stream(port, {
    headers: session.headers,
    body: rpc('tools/call', { name: 'ask', arguments: {} }, 'q'),
  })
  await broken.until(({ events }) => events.length === 1)
  const [primed] = eventIdsIn(broken.text)
  broken.drop()
  await broken.until(({ isClosed }) => isClosed)
  const resumed = new Stream(port, {
    method: 'GET',
    headers: { ...session.headers, 'last-event-id': primed as string },
  })
  await resumed.until(({ events }) => events.length === 1)
  expect(resumed.events[0]).toMatchObject({ method: 'elicitation/create' })
  await session.post(JSON.stringify({ jsonrpc: '2.0', id: resumed.events[0]?.['id'], result: { action: 'decline' } }))
  await resumed.until(({ isClosed }) => isClosed)
  expect(textOf(resumed.events.at(-1))).toBe('[{"action":"decline"}]')
  expect(recorder.cancelled).toEqual([])
})

test('a modern call that has told its progress can still ask, and goes on telling afterwards', async () => {
  await using served = await serve()
  const call = (extra: Json): Promise<Awaited<ReturnType<typeof modern>>> =>
    modern(
      served.port,
      'tools/call',
      { name: 'askAfterProgress', arguments: {}, ...extra },
      { meta: { progressToken: 'p' } },
    )
  const first = await call({})
  expect(first.events.map(({ method }) => method)).toEqual(['notifications/progress', undefined])
  const { requestState, resultType } = first.json['result'] as Json
  expect(resultType).toBe('input_required')
  const second = await call({ requestState, inputResponses: { 'question-1': { roots: [] } } })
  expect(second.events.map(({ params }) => (params as Json | undefined)?.['progress'])).toEqual([2, undefined])
  expect(textOf(second.json)).toBe('{"roots":[]}')
})

test('a modern client that hangs up in its second round cancels the call', async () => {
  await using served = await serve()
  const { port, endpoint } = served
  const first = await modern(port, 'tools/call', { name: 'ask', arguments: { rounds: 2 } })
  const { requestState } = first.json['result'] as Json
  const gone = net.connect(port, '127.0.0.1')
  gone.on('error', () => {})
  const body = rpc('tools/call', {
    ...{ name: 'ask', arguments: { rounds: 2 }, requestState, inputResponses: { 'question-1': { action: 'cancel' } } },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  })
  gone.write(post(port, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'ask' }, body))
  gone.destroy()
  // Whether the round was read or not: nothing of the call is left but a state that expires.
  await expect.poll(() => endpoint.counts.calls).toBe(0)
  expect(endpoint.counts.parkedCalls).toBeLessThanOrEqual(1)
})

test('requests pipelined on one connection are answered in order, each with its own', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const session = await openSession(port)
  const bodies = [
    rpc('tools/call', { name: 'hold', arguments: { key: 'slow' } }, 'a'),
    rpc('tools/call', { name: 'echo', arguments: { n: 2 } }, 'b'),
    rpc('tools/call', { name: 'echo', arguments: { n: 3 } }, 'c'),
  ]
  const answers = raw(port, bodies.map((body) => post(port, session.headers, body)).join(''), '"n\\":3')
  await recorder.until(() => recorder.calls.length === 3)
  recorder.held.get('slow')?.('first')
  const seen = await answers
  expect([...seen.matchAll(/"id":"(\w)"/g)].map(([, id]) => id)).toEqual(['a', 'b', 'c'])
})

test('Expect: 100-continue is honoured, and refused before the body when the door is', async () => {
  await using served = await serve()
  const { port } = served
  const body = rpc('initialize')
  const head = (host: string, length: number): string =>
    `POST /mcp HTTP/1.1\r\nHost: ${host}\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: ${length}\r\n\r\n`
  const socket = net.connect(port, '127.0.0.1')
  let seen = ''
  socket.on('data', (chunk: Buffer) => {
    seen += chunk.toString()
  })
  socket.write(head(`127.0.0.1:${port}`, body.length))
  await expect.poll(() => seen).toContain('100 Continue')
  socket.write(body)
  await expect.poll(() => seen).toContain('200 OK')
  socket.destroy()
  expect(await raw(port, head('evil.example', body.length), '\r\n\r\n')).toMatch(/^HTTP\/1\.1 403/)
  expect(await raw(port, head(`127.0.0.1:${port}`, 5_000_000), '\r\n\r\n')).toMatch(/^HTTP\/1\.1 413/)
})

test('an upgrade is not offered, and HTTP/1.0 without a Host is refused', async () => {
  await using served = await serve()
  const { port } = served
  const upgrade = `GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n`
  expect(await raw(port, upgrade, '\r\n\r\n')).toMatch(/^HTTP\/1\.1 (4\d\d)/)
  expect(await raw(port, 'GET /health HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 400/)
})

test('a handshake that its client does not wait for leaves no session', async () => {
  const recorder = new Recorder()
  const answers: (() => void)[] = []
  const slow = application(recorder)
  const endpoint = await serveHttp({
    application: {
      ...slow,
      describe: (client) =>
        new Promise((resolve) => {
          answers.push(() => resolve({ serverInfo: {}, capabilities: {} }))
          recorder.told.push(String(client.info['name']))
          recorder.changed()
        }),
    },
  })
  try {
    const stream = new Stream(endpoint.port, { body: rpc('initialize', { clientInfo: { name: 'hasty' } }) })
    await recorder.until(() => answers.length === 1)
    expect(endpoint.counts.sessions).toBe(1)
    stream.drop()
    await recorder.until(() => recorder.closed.length === 1)
    expect([recorder.closed, endpoint.counts.sessions]).toEqual([['hasty'], 0])
    answers[0]?.() // too late: nobody is told anything
    // … and one that fails.
    const failing = send(endpoint.port, { body: rpc('initialize', { clientInfo: { name: 'waits' } }) })
    await recorder.until(() => answers.length === 2)
    await endpoint.close({ drainMs: 10 })
    await failing.catch(() => {})
    expect(recorder.closed).toEqual(['hasty', 'waits'])
  } finally {
    await endpoint.close()
  }
})

test('a hundred sessions that come and go with their streams leave nothing', async () => {
  await using served = await serve()
  const { port, endpoint, recorder } = served
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const session = await openSession(port, { name: `${round}-${n}` })
        const standing = new Stream(port, { method: 'GET', headers: session.headers })
        const chatty = new Stream(port, {
          headers: session.headers,
          body: rpc('tools/call', {
            name: 'hold',
            arguments: { key: `${round}-${n}`, chatty: true },
            _meta: { progressToken: 1 },
          }),
        })
        await chatty.until(({ events }) => events.length === 1)
        if (n % 2 === 0) chatty.drop()
        await send(port, { method: 'DELETE', headers: session.headers })
        await standing.until(({ isClosed }) => isClosed)
        await chatty.until(({ isClosed }) => isClosed)
      }),
    )
  }
  expect(endpoint.counts).toEqual({ sessions: 0, calls: 0, parkedCalls: 0, listeners: 0 })
  expect(recorder.closed.length).toBe(100)
  expect(recorder.cancelled.length).toBe(100)
})

test('the events that are kept for a client are bounded, the newest stay, and one too large is not kept', async () => {
  await using served = await serve({ limits: { replayEventsMax: 5, replayBytesMax: 2_000 } })
  const { port, recorder } = served
  const session = await openSession(port)
  const [client] = recorder.clients
  for (let n = 0; n < 50; n++) client?.notify('notifications/resources/updated', { uri: `u:${n}` })
  client?.notify('notifications/resources/updated', { uri: 'x'.repeat(3_000) })
  const stream = new Stream(port, { method: 'GET', headers: session.headers })
  await stream.until(({ events }) => events.length === 5)
  expect(stream.events.map(({ params }) => (params as Json)['uri'])).toEqual(['u:45', 'u:46', 'u:47', 'u:48', 'u:49'])
  stream.drop()
})

test('all kept events together are bounded', async () => {
  await using served = await serve({ limits: { replayBytesTotalMax: 1_000 } })
  const { port, recorder } = served
  const sessions = await Promise.all(Array.from({ length: 20 }, () => openSession(port)))
  for (const client of recorder.clients) client.notify('notifications/resources/updated', { uri: 'y'.repeat(200) })
  const streams = sessions.map(({ headers }) => new Stream(port, { method: 'GET', headers }))
  const kept = (): number => streams.reduce((sum, { text }) => sum + eventsIn(text).length, 0)
  await Promise.all(streams.map((stream) => stream.until(({ text }) => text.includes(':\n\n'))))
  await expect.poll(kept).toBeGreaterThan(0)
  expect(kept()).toBeLessThan(5)
  for (const stream of streams) stream.drop()
})
