// What an endpoint does not let anybody do to it: floods, trickles, silence.
import { spawn } from 'node:child_process'
import net from 'node:net'
import { verifies } from '@convoke/testkit'
import type { EndpointLimits } from '@convoke/wire/server'
import { expect, test } from 'vitest'
import { modern, modernMeta, openSession, raw, rpc, Stream, send, serve } from './server-fixture.ts'

type Json = Record<string, unknown>
const MIB = 1024 * 1024
const head = (port: number, lines: string): string =>
  `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n${lines}\r\n`
const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])

verifies(
  'security.071',
  async () => {
    await using served = await serve()
    const { port, recorder } = served
    const session = await openSession(port)
    const nested = (inner: string): string =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${inner}}}`
    const keys = `{${Array.from({ length: 400_000 }, (_, n) => `"k${n}":1`).join(',')}}`
    const bodies: [string, number][] = [
      ['x'.repeat(5 * MIB), 413],
      ['['.repeat(4 * MIB - 1), 400],
      [`${'{"a":'.repeat(700_000)}`, 400],
      [nested(keys.slice(0, 3 * MIB)), 400],
      [nested(`[${'1,'.repeat(1_500_000)}1]`), 400],
      [nested(`${'['.repeat(200)}${']'.repeat(200)}`), 400],
      [`[${'{},'.repeat(10_000)}{}]`, 400],
    ]
    for (const [body, status] of bodies) {
      const startedMs = performance.now()
      expect((await session.post(body)).status, body.slice(0, 20)).toBe(status)
      expect(performance.now() - startedMs).toBeLessThan(2_000)
    }
    expect(recorder.calls).toEqual([])
    // Refused from the head alone, also while the client is still sending.
    expect(statusOf(await raw(port, head(port, `content-length: ${5 * MIB}\r\n`)))).toBe(413)
    const chunked = new net.Socket().connect(port, '127.0.0.1')
    let seen = ''
    chunked.on('data', (chunk: Buffer) => {
      seen += chunk.toString()
    })
    const over = new Promise<void>((resolve) => chunked.on('close', () => resolve()))
    chunked.on('error', () => {})
    chunked.write(head(port, 'transfer-encoding: chunked\r\n'))
    const part = `10000\r\n${'x'.repeat(65_536)}\r\n`
    const pump = (): void => {
      while (!chunked.destroyed && chunked.write(part));
    }
    chunked.on('drain', pump)
    pump()
    await over
    expect(statusOf(seen)).toBe(413)
    expect((await session.call('echo')).status).toBe(200)
    // Seen from outside: what is refused is not kept.
    await using apart = await serveApart({})
    const { headers } = await openSession(apart.port)
    for (let warm = 0; warm < 3; warm++) await send(apart.port, { headers, body: nested('[]') })
    const before = await apart.holdings()
    for (let round = 0; round < 4; round++) for (const [body] of bodies) await send(apart.port, { headers, body })
    expect((await apart.holdings()).rssBytes - before.rssBytes).toBeLessThan(60 * MIB)
  },
  60_000,
)

test('all bodies together are bounded, too', async () => {
  await using served = await serve({ limits: { bodyBytesTotalMax: 100_000 } })
  const { port } = served
  const slow = net.connect(port, '127.0.0.1')
  slow.on('error', () => {})
  slow.write(`${head(port, 'content-length: 90001\r\n')}${'x'.repeat(90_000)}`)
  const body = rpc('initialize', { pad: 'x'.repeat(20_000) })
  await expect.poll(async () => (await send(port, { body })).status).toBe(503)
  slow.destroy()
  await expect.poll(async () => (await send(port, { body })).status).toBe(200)
})

verifies('security.072', async () => {
  await using served = await serve({ limits: { headersTimeoutMs: 150, bodyTimeoutMs: 150 } })
  const { port, recorder } = served
  const trickle = (start: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1')
      let seen = ''
      socket.on('data', (chunk: Buffer) => {
        seen += chunk.toString()
      })
      socket.on('error', () => {})
      const drip = setInterval(() => socket.write('x'), 20)
      socket.on('close', () => {
        clearInterval(drip)
        resolve(seen)
      })
      socket.write(start)
    })
  const [headers, body, chunked] = await Promise.all([
    trickle(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nx-slow: `),
    trickle(head(port, 'content-length: 100000\r\n')),
    trickle(`${head(port, 'transfer-encoding: chunked\r\n')}ffff\r\n`),
  ])
  for (const seen of [headers, body, chunked]) expect(statusOf(seen)).toBe(408)
  expect(statusOf(await raw(port, head(port, `${'x-a: b\r\n'.repeat(101)}content-length: 0\r\n`), '\r\n\r\n'))).toBe(
    431,
  )
  expect(statusOf(await raw(port, head(port, `x-long: ${'y'.repeat(20_000)}\r\n`)))).toBe(431)
  expect(recorder.calls).toEqual([])
})

verifies('security.073', async () => {
  await using served = await serve({ limits: { streamsMax: 5 } })
  const { port, endpoint } = served
  const session = await openSession(port)
  const sessions = await Promise.all(Array.from({ length: 6 }, () => openSession(port)))
  const gets = sessions.map(({ headers }) => new Stream(port, { method: 'GET', headers }))
  await Promise.all(gets.map((stream) => stream.until(({ status }) => status !== 0)))
  expect(gets.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 429])
  const listen = (): Stream =>
    new Stream(port, {
      headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
      body: rpc('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: modernMeta() }),
    })
  const listeners = Array.from({ length: 7 }, listen)
  await Promise.all(listeners.map((stream) => stream.until(({ status }) => status !== 0)))
  expect(listeners.filter(({ status }) => status === 429).length).toBe(2)
  expect(endpoint.counts.listeners).toBe(5)
  expect(gets.filter(({ status, isClosed }) => status === 200 && !isClosed).length).toBe(5)
  expect((await session.call('echo')).status).toBe(200)
  for (const stream of [...gets, ...listeners]) stream.drop()
})

verifies('wire.224', async () => {
  await using served = await serve({ limits: { callsPerSessionMax: 3, callsMax: 5 } })
  const { port, recorder } = served
  const [first, second] = [await openSession(port), await openSession(port)]
  const held = [1, 2, 3].map((id) => first.call('hold', { key: `${id}` }, id))
  await recorder.until(() => recorder.held.size === 3)
  const refused = await first.call('echo', {}, 4)
  expect([refused.status, refused.json]).toMatchObject([429, { id: 4, error: { code: -32000 } }])
  held.push(second.call('hold', { key: '4' }), modern(port, 'tools/call', { name: 'hold', arguments: { key: '5' } }))
  await recorder.until(() => recorder.held.size === 5)
  expect((await second.call('echo', {}, 9)).status).toBe(429)
  expect((await modern(port, 'tools/list')).status).toBe(429)
  for (const key of ['1', '2', '3', '4', '5']) recorder.held.get(key)?.(key)
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect((await first.call('echo', {}, 4)).status).toBe(200)
})

verifies('security.087', async () => {
  await using served = await serve({ limits: { sessionsMax: 20 } })
  const { port, endpoint } = served
  const session = await openSession(port)
  const statuses = await Promise.all(
    Array.from(
      { length: 60 },
      async (_, n) => (await send(port, { body: rpc('initialize', { clientInfo: { name: `${n}` } }) })).status,
    ),
  )
  expect(statuses.filter((status) => status === 200).length).toBe(19)
  expect(statuses.filter((status) => status === 429).length).toBe(41)
  expect(endpoint.counts.sessions).toBe(20)
  expect((await session.call('echo')).status).toBe(200)
  await send(port, { method: 'DELETE', headers: session.headers })
  expect((await send(port, { body: rpc('initialize') })).status).toBe(200)
})

verifies('security.086', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const [victim, attacker] = [
    await openSession(port, { name: 'victim' }),
    await openSession(port, { name: 'attacker' }),
  ]
  const held = victim.call('hold', { key: 'v' }, 7)
  const asked = new Stream(port, { headers: victim.headers, body: rpc('tools/call', { name: 'ask' }, 8) })
  await asked.until(({ events }) => events.length === 1)
  await recorder.until(() => recorder.held.has('v'))
  await attacker.post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }))
  await attacker.post(
    JSON.stringify({
      jsonrpc: '2.0',
      id: asked.events[0]?.['id'],
      result: { action: 'accept', content: { forged: true } },
    }),
  )
  await attacker.post(
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 7, progress: NaN } }),
  )
  expect(recorder.cancelled).toEqual([])
  expect(asked.isClosed).toBe(false)
  recorder.held.get('v')?.('mine')
  expect((await held).status).toBe(200)
  asked.drop()
})

/** A connection that sends a request and then reads nothing. */
function mute(
  port: number,
  headers: Record<string, string>,
  body: string,
): { socket: net.Socket; closed: Promise<void> } {
  const socket = net.connect(port, '127.0.0.1')
  socket.pause()
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  const lines = Object.entries({ accept: 'application/json, text/event-stream', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.write(`${head(port, `${lines.join('')}content-length: ${Buffer.byteLength(body)}\r\n`)}${body}`)
  return { socket, closed }
}

interface Holdings {
  rssBytes: number
  sockets: number
  bigCalls: number
  cancelled: string[]
}

/** The fixture's endpoint in a process of its own. */
async function serveApart(
  limits: Partial<EndpointLimits>,
): Promise<{ port: number; holdings(): Promise<Holdings> } & AsyncDisposable> {
  const script = new URL('./server-process.ts', import.meta.url).pathname
  const child = spawn(process.execPath, ['--conditions=@convoke/source', script, JSON.stringify(limits)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const port = await new Promise<number>((resolve) =>
    child.stdout.once('data', (chunk: Buffer) => resolve(Number(chunk.toString()))),
  )
  const watcher = await openSession(port)
  return {
    port,
    async holdings() {
      const { json } = await watcher.call('holdings')
      return JSON.parse(((json['result'] as Json)['content'] as { text: string }[])[0]?.text ?? '') as Holdings
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await exited
    },
  }
}

verifies(
  'security.074',
  async () => {
    await using apart = await serveApart({ outputStallMs: 300, outputBytesMax: 100_000, resumeWindowMs: 200 })
    const { port } = apart
    const session = await openSession(port)
    for (let warm = 0; warm < 50; warm++) await session.call('echo', { warm })
    const before = await apart.holdings()
    // A stream that nobody reads: 20 kB more with every turn of the event loop.
    const chatty = mute(
      port,
      session.headers,
      rpc('tools/call', { name: 'flood', arguments: {}, _meta: { progressToken: 1 } }, 'flood'),
    )
    await expect
      .poll(async () => (await apart.holdings()).cancelled, { timeout: 10_000 })
      .toEqual(['flood: Nobody came back for the event stream'])
    expect((await apart.holdings()).rssBytes - before.rssBytes).toBeLessThan(60 * MIB)
    // Answers that nobody reads.
    const bigs = Array.from({ length: 6 }, (_, id) =>
      mute(port, session.headers, rpc('tools/call', { name: 'big', arguments: { bytes: 20 * MIB } }, `b${id}`)),
    )
    await expect.poll(async () => (await apart.holdings()).bigCalls, { timeout: 20_000 }).toBe(6)
    await expect.poll(async () => (await apart.holdings()).sockets, { timeout: 10_000 }).toBeLessThanOrEqual(2)
    expect((await session.call('echo')).status).toBe(200)
    for (const { socket } of [...bigs, chatty]) socket.destroy()
    await Promise.all([...bigs, chatty].map(({ closed }) => closed))
  },
  60_000,
)

test('large answers together are bounded, too', async () => {
  await using served = await serve({ limits: { outputBytesTotalMax: 30 * MIB } })
  const { port, recorder } = served
  const session = await openSession(port)
  const silent = mute(port, session.headers, rpc('tools/call', { name: 'big', arguments: { bytes: 25 * MIB } }, 'a'))
  await recorder.until(() => recorder.calls.length === 1)
  const refused = await session.call('big', { bytes: 10 * MIB }, 'b')
  expect([refused.status, (refused.json['error'] as Json)['message']]).toEqual([
    503,
    'Too many answers wait to be read',
  ])
  expect((await session.call('echo', {}, 'c')).status).toBe(200)
  silent.socket.destroy()
  await silent.closed
  await expect.poll(async () => (await session.call('big', { bytes: 10 * MIB }, 'd')).status).toBe(200)
})

verifies('wire.220', async () => {
  const served = await serve()
  const { port, recorder, endpoint } = served
  const session = await openSession(port, { name: 'drained' })
  const finishing = session.call('hold', { key: 'finishing' }, 1)
  const stuck = new Stream(port, {
    headers: session.headers,
    body: rpc('tools/call', { name: 'hold', arguments: { key: 'stuck' } }, 2),
  })
  const standing = new Stream(port, { method: 'GET', headers: session.headers })
  await recorder.until(() => recorder.held.size === 2)
  await standing.until(({ status }) => status === 200)
  const closing = endpoint.close({ drainMs: 300 })
  await standing.until(({ isClosed }) => isClosed)
  await expect(send(port, { method: 'GET', path: '/health' })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  expect(recorder.cancelled).toEqual([])
  recorder.held.get('finishing')?.('in time')
  expect((await finishing).status).toBe(200)
  await closing
  await stuck.until(({ isClosed }) => isClosed)
  expect(recorder.cancelled).toEqual(['stuck: The endpoint is closing'])
  expect(recorder.closed).toEqual(['drained'])
  expect(endpoint.counts).toEqual({ sessions: 0, calls: 0, parkedCalls: 0, listeners: 0 })
  await endpoint.close()
})

test('an idle endpoint closes at once, and a taken port is told by name', async () => {
  const served = await serve()
  await expect(serve({ port: served.port })).rejects.toMatchObject({ code: 'address-in-use' })
  await expect(serve({ hostname: '127.1.2.3.4' })).rejects.toMatchObject({ code: 'token-required' })
  await expect(serve({ limits: { bodyBytesMax: 0 } })).rejects.toMatchObject({ code: 'invalid-options' })
  const keepAlive = net.connect(served.port, '127.0.0.1')
  keepAlive.write(`GET /health HTTP/1.1\r\nHost: 127.0.0.1:${served.port}\r\n\r\n`)
  await new Promise((resolve) => keepAlive.once('data', resolve))
  const startedMs = performance.now()
  await served.endpoint.close()
  expect(performance.now() - startedMs).toBeLessThan(2_000)
  keepAlive.destroy()
})
