// Servers that mean harm, or cannot do better: bytes by hand.
import type { Socket } from 'node:net'
import { verifies } from '@convoke/testkit'
import { fetchAnswer } from '@convoke/wire'
import { describe, expect, test } from 'vitest'
import { Door } from '../src/outbound.ts'
import {
  CLIENTS,
  type Client,
  connect,
  event,
  failure,
  json,
  legacy,
  openStream,
  startHttp,
  startListener,
  startTcp,
  type TestServer,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

const HELLO = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'hostile', version: '1' },
}

/** The handshake, then whatever `talk` does with each tool call. */
function startHostile(talk: (socket: Socket, id: number, call: number) => void): Promise<TestServer> {
  let calls = 0
  const respond = (socket: Socket, { verb, message }: Posted): void => {
    const { id, method } = message
    if (verb !== 'POST') socket.write('HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n')
    else if (id === undefined) socket.write('HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n')
    else if (method === 'tools/call') talk(socket, id, ++calls)
    else if (method === 'initialize') socket.write(whole({ jsonrpc: '2.0', id, result: HELLO }))
    else socket.write(whole({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
  }
  return startTcp((socket) => {
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      for (let posted = readRequest(text); posted !== undefined; posted = readRequest(text)) {
        text = posted.rest
        respond(socket, posted)
      }
    })
  })
}

interface Posted {
  verb: string
  message: { id?: number; method?: string }
  rest: string
}

function readRequest(text: string): Posted | undefined {
  const headers = text.indexOf('\r\n\r\n') + 4
  const verb = text.slice(0, text.indexOf(' '))
  const length = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(text)?.[1] ?? 0)
  if (headers < 4 || text.length < headers + length) return undefined
  const body = text.slice(headers, headers + length)
  return { verb, message: body === '' ? {} : JSON.parse(body), rest: text.slice(headers + length) }
}

function whole(message: unknown, headers = ''): string {
  const body = JSON.stringify(message)
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

const answer = (id: number, text = 'fine'): { jsonrpc: string; id: number; result: unknown } => ({
  jsonrpc: '2.0',
  id,
  result: textResult(text),
})
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

async function codeOf(
  client: Client,
  talk: (socket: Socket, id: number) => void,
  idleTimeoutMs = 5_000,
): Promise<string> {
  await using server = await startHostile((socket, id, call) =>
    call === 1 ? talk(socket, id) : socket.write(whole(answer(id))),
  )
  await using session = await connect(server.url, { client })
  const first = await session.callTool('x', {}, { idleTimeoutMs }).then(textOf, (error: { code: string }) => error.code)
  // Whatever that was, it was the call's and not the session's.
  expect(textOf(await session.callTool('next'))).toBe('fine')
  return String(first)
}

for (const client of CLIENTS)
  describe(client, () => {
    verifies(
      'security.040',
      async () => {
        const json200 = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'
        const rows: [string, (socket: Socket, id: number) => void, string][] = [
          [
            'length and chunks at once',
            (socket, id) =>
              socket.write(
                `${json200}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n${chunk(JSON.stringify(answer(id)))}0\r\n\r\n`,
              ),
            'closed',
          ],
          [
            'two lengths',
            (socket) => socket.write(`${json200}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`),
            'closed',
          ],
          ['a negative length', (socket) => socket.write(`${json200}content-length: -1\r\n\r\n{}`), 'closed'],
          [
            'a chunk that lies',
            (socket) => socket.end(`${json200}transfer-encoding: chunked\r\n\r\nffff\r\n{}\r\n0\r\n\r\n`),
            'closed',
          ],
          [
            'a chunk size that is no number',
            (socket) => socket.write(`${json200}transfer-encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n`),
            'closed',
          ],
          [
            'a body cut short',
            (socket, id) => socket.end(`${json200}content-length: 5000\r\n\r\n${JSON.stringify(answer(id))}`),
            'closed',
          ],
          ['no status line', (socket) => socket.end('hello there\r\n\r\n'), 'closed'],
          [
            'a line folded',
            (socket, id) => socket.end(`${json200}x-a: b\r\n c: d\r\n\r\n${JSON.stringify(answer(id))}`),
            'closed',
          ],
          [
            'a NUL in a header',
            (socket, id) => socket.end(`${json200}x-a: b\0c\r\n\r\n${JSON.stringify(answer(id))}`),
            'closed',
          ],
          [
            'bare line feeds',
            (socket, id) => socket.end(`${json200.replaceAll('\r', '')}\n${JSON.stringify(answer(id))}`),
            'closed',
          ],
          [
            'headers of 100 kB',
            (socket, id) => socket.write(whole(answer(id), `x-a: ${'a'.repeat(100_000)}\r\n`)),
            'closed',
          ],
          ['many headers', (socket, id) => socket.write(whole(answer(id), 'x-a: b\r\n'.repeat(20_000))), 'closed'],
          [
            'an upgrade nobody asked for',
            (socket) => socket.write('HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'),
            'closed',
          ],
          [
            'until the end of the connection',
            (socket, id) =>
              socket.end(`HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n${JSON.stringify(answer(id))}`),
            'fine',
          ],
          [
            'early hints first',
            (socket, id) =>
              socket.write(`${'HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n'.repeat(50)}${whole(answer(id))}`),
            'fine',
          ],
          [
            'brackets without end',
            (socket) => socket.write(`${json200}content-length: 500000\r\n\r\n${'['.repeat(500_000)}`),
            'malformed',
          ],
          ['an answer to somebody else', (socket) => socket.write(whole(answer(4_711))), 'malformed'],
          ['a number', (socket) => socket.write(whole(7)), 'malformed'],
          ['nothing at all', (socket) => socket.end(), 'closed'],
        ]
        for (const [what, talk, expected] of rows) expect(await codeOf(client, talk), what).toBe(expected)
      },
      60_000,
    )

    verifies(
      'security.041',
      async () => {
        const json200 = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'
        const drip = (before: string, piece: string) => (socket: Socket) => {
          socket.write(before)
          const timer = setInterval(() => socket.write(piece), 20)
          socket.once('close', () => clearInterval(timer))
        }
        const rows: [string, (socket: Socket, id: number) => void][] = [
          ['no answer', () => {}],
          ['a header that never ends', drip('HTTP/1.1 200 OK\r\nx-a: ', 'a')],
          ['headers that never end', drip('HTTP/1.1 200 OK\r\n', 'x-a: b\r\n')],
          ['a body that never ends', drip(`${json200}transfer-encoding: chunked\r\n\r\n`, chunk(' '))],
          [
            'comments without end',
            drip('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n', ': still here\n\n'),
          ],
          [
            'notifications without end',
            drip(
              'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n',
              event({ jsonrpc: '2.0', method: 'notifications/message', params: {} }),
            ),
          ],
          ['hints without end', drip('', 'HTTP/1.1 103 Early Hints\r\n\r\n')],
          ['an error page that never ends', drip('HTTP/1.1 500 No\r\ncontent-type: text/html\r\n\r\n', '<p>')],
        ]
        for (const [what, talk] of rows) expect(await codeOf(client, talk, 150), what).toBe('timed-out')
      },
      60_000,
    )

    verifies('security.042', async () => {
      // After the first answer the server says more than it was asked, on the same connection.
      let connections = 0
      await using server = await startHostile((socket, id, call) => {
        connections++
        socket.write(
          whole(answer(id, `answer ${call}`)) +
            (call === 1 ? whole(answer(id + 1, 'poison')) + whole(answer(id + 2, 'poison')) : ''),
        )
      })
      await using session = await connect(server.url, { client })
      const texts: unknown[] = []
      for (let n = 0; n < 4; n++)
        texts.push(await session.callTool('x').then(textOf, (error: { code: string }) => error.code))
      expect(texts[0]).toBe('answer 1')
      expect(texts).not.toContain('poison')
      expect(texts.at(-1)).toMatch(/^answer \d$/)
      expect(connections).toBeGreaterThan(1)
    })

    test('an endless answer does not fill the memory', async () => {
      await using server = await startHttp(
        legacy((message, response) => {
          const { name } = message.params ?? {}
          if (name === 'fine') return json(response, message, textResult('fine'))
          response.writeHead(200, { 'content-type': name === 'events' ? 'text/event-stream' : 'application/json' })
          const block = Buffer.alloc(256 * 1024, name === 'events' ? 'data: x\n' : ' ')
          const more = (): void => {
            while (!response.destroyed && response.write(block));
            if (!response.destroyed) response.once('drain', more)
          }
          return more()
        }),
      )
      await using session = await connect(server.url, { client }, { messageBytesMax: 8 * 1024 * 1024 })
      const before = process.memoryUsage().rss
      expect(await failure(session.callTool('json'))).toMatchObject({ code: 'too-large', details: { sent: true } })
      const controller = new AbortController()
      const call = failure(session.callTool('events', {}, { signal: controller.signal, totalTimeoutMs: 400 }))
      expect(await call).toMatchObject({ code: 'timed-out' })
      expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024)
      expect(textOf(await session.callTool('fine'))).toBe('fine')
    })

    test('a server that gives a new session id with every answer confuses nobody', async () => {
      let n = 0
      await using server = await startHttp(
        legacy(
          (message, response) => json(response, message, textResult('fine'), { 'mcp-session-id': `other-${++n}` }),
          {},
          { 'mcp-session-id': 'first' },
        ),
      )
      await using session = await connect(server.url, { client })
      for (let call = 0; call < 3; call++) await session.callTool('x')
      expect(new Set(server.seen.slice(2).map(({ headers }) => headers['mcp-session-id']))).toEqual(new Set(['first']))
    })

    test('event ids that no header can carry are not sent back', async () => {
      for (const id of ['x'.repeat(5_000), 'a\u0001b', '']) {
        await using server = await startHttp(
          legacy((_message, response) => {
            openStream(response)
            response.end(`id: ${id}\ndata:\n\n`)
          }),
        )
        await using session = await connect(server.url, { client })
        expect(await failure(session.callTool('x'))).toMatchObject({ code: 'closed' })
        expect(server.seen.some(({ headers }) => headers['last-event-id'] !== undefined)).toBe(false)
      }
    })

    verifies('security.043', async () => {
      await using inside = await startListener((_request, response) => void response.end('secret'))
      const { port } = inside
      const hosts = [
        '127.0.0.1',
        'localhost',
        '0x7f.1',
        '017700000001',
        '2130706433',
        '127.1',
        '[::1]',
        '[::ffff:127.0.0.1]',
        '[::ffff:7f00:1]',
        '[64:ff9b::7f00:1]',
        '0.0.0.0',
        '0',
        '169.254.169.254',
        '[fe80::1]',
        '10.0.0.1',
        'localhost.',
      ]
      for (const host of hosts) {
        const error = await failure(
          fetchAnswer(`http://${host}:${port}/`, {
            client,
            proxy: 'none',
            addresses: 'public',
            plainHttp: 'any',
            timeoutMs: 2_000,
          }),
        )
        expect([host, error.code]).toEqual([host, 'refused'])
        expect(error.message).toContain('not a public address')
      }
      expect(inside.connections).toBe(0)
      const open = await fetchAnswer(`http://localhost:${port}/`, {
        client,
        proxy: 'none',
        addresses: 'public-or-loopback',
      })
      expect(open.body.toString()).toBe('secret')
    })

    test('one request more than can wait is refused, and dropping one makes room', async () => {
      await using server = await startTcp(() => {})
      const door = await Door.open(new URL(server.url), { client, proxy: 'none' })
      const failed: string[] = []
      const request = {
        method: 'POST',
        path: '/',
        headers: [],
        body: '{}',
        redirects: 'none',
        repeatable: false,
      } as const
      const sink = {
        head: () => {},
        data: () => {},
        end: () => {},
        fail: ({ code }: { code: string }) => failed.push(code),
      }
      const exchanges = Array.from({ length: 128 + 10_000 }, () => door.send(request, sink))
      door.send(request, sink)
      await until(() => failed.length > 0)
      expect(failed).toEqual(['refused'])
      await until(() => server.connections === 128)
      for (const exchange of exchanges.slice(0, 64)) exchange.drop()
      await until(() => server.connections === 192)
      door.close()
      expect(failed).toHaveLength(1)
    })
  })
