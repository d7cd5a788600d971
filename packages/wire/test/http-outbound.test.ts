// The one door out: schemes, headers, redirects, encodings, sizes, and what is sent again. Both clients.
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { verifies } from '@convoke/testkit'
import { fetchAnswer } from '@convoke/wire'
import { describe, expect, test } from 'vitest'
import type { WireError } from '../src/errors.ts'
import { Door, type DoorRequest } from '../src/outbound.ts'
import {
  CLIENTS,
  type Client,
  connect,
  failure,
  json,
  legacy,
  modern,
  serve,
  startHttp,
  startListener,
  startTcp,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

interface Answer {
  status: number
  body: string
  error?: WireError
  sent?: boolean
}

async function ask(door: Door, request: Partial<DoorRequest> = {}): Promise<Answer> {
  return new Promise((resolve) => {
    const answer: Answer = { status: 0, body: '' }
    door.send(
      {
        method: 'POST',
        path: '/mcp',
        headers: [],
        body: '{}',
        redirects: 'same-origin',
        repeatable: false,
        ...request,
      },
      {
        head: (status) => {
          answer.status = status
        },
        data: (chunk) => {
          answer.body += chunk.toString()
        },
        end: () => resolve(answer),
        fail: (error, { sent }) => resolve({ ...answer, error, sent }),
      },
    )
  })
}

async function openDoor(client: Client, url: string): Promise<Door & Disposable> {
  const door = await Door.open(new URL(url), { client, proxy: 'none' })
  return Object.assign(door, { [Symbol.dispose]: () => door.close() })
}

for (const client of CLIENTS)
  describe(client, () => {
    verifies('security.030', async () => {
      await using server = await startHttp((message, response, { headers }) => {
        expect(headers['accept-encoding']).toBe('gzip, deflate, identity')
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
        response.end(body)
        void message
      })
      let coding = ''
      let body: Buffer = Buffer.alloc(0)
      for (const [name, bytes] of [
        ['br', brotliCompressSync('{}')],
        ['br', Buffer.from('0123456789abcdef'.repeat(4), 'hex')],
        ['zstd', Buffer.alloc(64, 1)],
        ['gzip, br', Buffer.alloc(64)],
        ['gzip, gzip', gzipSync(gzipSync('{}'))],
        ['x-unheard-of', Buffer.alloc(64)],
      ] as const) {
        ;[coding, body] = [name, bytes]
        const error = await failure(connect(server.url, { client }))
        expect(error, name).toMatchObject({ code: 'refused', details: { status: 200, sent: true } })
        expect(error.message).toContain(`"${name}"`)
      }
    })

    test('gzip and deflate, zlib and bare, are decoded, also as event streams', async () => {
      const encoders = {
        gzip: gzipSync,
        'x-gzip': gzipSync,
        deflate: deflateSync,
        'deflate ': deflateRawSync,
        identity: (text: string) => text,
      }
      await using server = await startHttp(
        legacy((message, response) => {
          const { name = '' } = message.params ?? {}
          const [coding = '', kind] = name.split('/')
          const answer = JSON.stringify({
            jsonrpc: '2.0',
            id: message.id,
            result: textResult(name + 'é'.repeat(50_000)),
          })
          const encode = encoders[coding as keyof typeof encoders]
          response.writeHead(200, {
            'content-type': kind === 'json' ? 'application/json' : 'text/event-stream',
            'content-encoding': coding.trim(),
          })
          response.end(encode(kind === 'json' ? answer : `data: ${answer}\n\n`))
        }),
      )
      await using session = await connect(server.url, { client })
      for (const coding of Object.keys(encoders))
        for (const kind of ['json', 'events'])
          expect(String(textOf(await session.callTool(`${coding}/${kind}`)))).toHaveLength(
            `${coding}/${kind}`.length + 50_000,
          )
    })

    verifies('security.031', async () => {
      const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024), { level: 9 })
      await using server = await startHttp(
        legacy((message, response) => {
          const { name } = message.params ?? {}
          if (name === 'fine') return json(response, message, textResult('fine'))
          if (name === 'torn')
            return response
              .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
              .end(bomb.subarray(0, 500))
          if (name === 'lie')
            return response
              .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
              .end('{"not":"gzip"}')
          response
            .writeHead(200, {
              'content-type': name === 'events' ? 'text/event-stream' : 'application/json',
              'content-encoding': 'gzip',
            })
            .end(bomb)
        }),
      )
      await using session = await connect(server.url, { client })
      const before = process.memoryUsage().rss
      for (const name of ['json', 'events'])
        expect(await failure(session.callTool(name))).toMatchObject({ code: 'too-large' })
      expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
      expect(await failure(session.callTool('torn'))).toMatchObject({ code: 'malformed' })
      expect(await failure(session.callTool('lie'))).toMatchObject({
        code: 'malformed',
        message: 'The answer is not the gzip that its headers say',
      })
      expect(textOf(await session.callTool('fine'))).toBe('fine')
    })

    verifies('security.032', async () => {
      await using sink = await startHttp((_message, response) => response.end())
      let location = ''
      let status = 307
      await using server = await startHttp((_message, response) => response.writeHead(status, { location }).end())
      const target = { client, headers: { authorization: 'Bearer CANARY', cookie: 'a=CANARY', 'x-api-key': 'CANARY' } }
      for (status of [301, 302, 303, 307, 308])
        for (location of [
          sink.url,
          `//127.0.0.1:${sink.port}/x`,
          `http://localhost:${server.port}/mcp`,
          `https://127.0.0.1:${server.port}/mcp`,
          'javascript:alert(1)',
          'http://[',
        ]) {
          const error = await failure(connect(server.url, target, { era: 'legacy' }))
          expect(error, location).toMatchObject({ code: 'refused', details: { status } })
          expect(error.message).not.toContain('CANARY')
        }
      location = `${sink.url}?token=SECRET`
      expect((await failure(connect(server.url, target, { era: 'legacy' }))).message).toContain(
        `redirects to http://127.0.0.1:${sink.port}/mcp, another origin`,
      )
      expect(sink.connections).toBe(0)
    })

    verifies('wire.140', async () => {
      await using server = await startHttp((message, response, request) => {
        if (request.path === '/mcp') return response.writeHead(307, { location: '/mcp/' }).end()
        return legacy((one, response_) => json(response_, one, textResult(request.path)))(message, response, request)
      })
      await using session = await connect(server.url, { client, headers: { authorization: 'Bearer kept' } })
      expect(session.era).toBe('legacy') // the question for the era is not sent on; `initialize` is
      expect(textOf(await session.callTool('x'))).toBe('/mcp/')
      expect(server.seen.filter(({ path }) => path === '/mcp/').map(({ headers }) => headers.authorization)).toEqual(
        Array(3).fill('Bearer kept'),
      )
      expect(server.seen.filter(({ path, method }) => path === '/mcp/' && method === 'server/discover')).toEqual([])
    })

    test('a redirect of a modern server is an error that names the way out', async () => {
      await using server = await startHttp(
        modern((_message, response) => response.writeHead(308, { location: '/other' }).end()),
      )
      await using session = await connect(server.url, { client })
      const error = await failure(session.callTool('x'))
      expect(error).toMatchObject({ code: 'refused', details: { status: 308 } })
      expect(error.message).toContain(`/other: not followed here; if that is the server, configure that URL`)
    })

    test('redirects: methods by status, at most ten, and none without a place to go', async () => {
      const seen: string[] = []
      await using server = await startListener((request, response) => {
        seen.push(`${request.method} ${request.url} ${request.headers['content-type']} ${request.headers['x-own']}`)
        const [, status = '', hops = '0'] = /^\/(\d+)-(\d+)$/.exec(request.url ?? '') ?? []
        if (status === '') return void response.end('arrived')
        response
          .writeHead(
            Number(status),
            status === '300' ? {} : { location: Number(hops) > 1 ? `/${status}-${Number(hops) - 1}` : '/end' },
          )
          .end('moved')
      })
      using door = await openDoor(client, server.url)
      const headers = ['content-type', 'application/json', 'x-own', 'kept']
      for (const [status, verb] of [
        [301, 'GET'],
        [302, 'GET'],
        [303, 'GET'],
        [307, 'POST'],
        [308, 'POST'],
      ]) {
        seen.length = 0
        expect(await ask(door, { path: `/${status}-1`, headers })).toMatchObject({ status: 200, body: 'arrived' })
        expect(seen.at(-1)).toBe(verb === 'GET' ? 'GET /end undefined kept' : 'POST /end application/json kept')
      }
      expect(await ask(door, { path: '/307-10', headers })).toMatchObject({ status: 200 })
      expect(await ask(door, { path: '/307-11', headers })).toMatchObject({
        error: { code: 'refused', message: expect.stringContaining('More than 10 redirects') },
      })
      expect(await ask(door, { path: '/300-1', headers })).toMatchObject({ status: 300, body: 'moved' })
    })

    verifies('security.033', async () => {
      await using server = await startHttp(legacy((message, response) => json(response, message, textResult('fine'))))
      for (const headers of [
        { 'x-a': 'a\r\nx-b: c' },
        { 'x-a\r\nx-b': 'c' },
        { 'x a': 'b' },
        { '': 'b' },
        { 'x-a': '世界' },
        { 'x-a': 'a\0b' },
      ]) {
        const error = await failure(connect(server.url, { client, headers }))
        expect(error, JSON.stringify(headers)).toMatchObject({ code: 'refused', details: { sent: false } })
        expect(error.message).not.toMatch(/世界|c$|b$/)
      }
      expect(server.connections).toBe(0)
      await using session = await connect(server.url, {
        client,
        headers: {
          Host: 'evil.example',
          'Content-Length': '3',
          'Transfer-Encoding': 'chunked',
          Accept: 'text/html',
          'Mcp-Session-Id': 'x',
          'X-Own': ' größe ',
        },
      })
      expect(await failure(session.callTool('x', {}, { headers: { 'x-a': 'a\nb' } }))).toMatchObject({
        code: 'refused',
        details: { sent: false },
      })
      await session.callTool(
        'x',
        {},
        { headers: { 'X-Trace': '1', authorization: 'Bearer other', host: 'evil.example' } },
      )
      const last = server.seen.at(-1)?.headers
      expect(last).toMatchObject({
        host: `127.0.0.1:${server.port}`,
        accept: 'application/json, text/event-stream',
        'x-own': 'größe',
        'x-trace': '1',
      })
      expect(last?.authorization).toBeUndefined()
      expect(last?.['transfer-encoding']).toBeUndefined()
      expect(last?.['mcp-session-id']).toBeUndefined()
    })

    verifies('wire.141', async () => {
      /** Answers the first request of a connection, and breaks at the second one without a byte. */
      let answered = 0
      await using server = await startTcp((socket) => {
        let requests = 0
        socket.on('data', () => {
          if (++requests > 1) socket.resetAndDestroy()
          else answered++
          socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok')
        })
      })
      using door = await openDoor(client, server.url)
      expect(await ask(door)).toMatchObject({ status: 200 })
      expect(await ask(door, { repeatable: true })).toMatchObject({ status: 200, body: 'ok' })
      expect(answered).toBe(2)
      // A tool call may have been acted upon before the connection broke: never twice.
      expect(await ask(door, { repeatable: false })).toMatchObject({ error: { code: 'closed' }, sent: true })
      expect(answered).toBe(2)
    })

    test('a connection that the server closed while it was idle is not used again', async () => {
      const sockets: Socket[] = []
      const server = createServer((_request, response) => void response.end('ok'))
      await using running = await serve(server, [])
      server.on('connection', (socket) => sockets.push(socket))
      using door = await openDoor(client, running.url)
      for (let n = 0; n < 3; n++) {
        expect(await ask(door)).toMatchObject({ status: 200, body: 'ok' })
        sockets.at(-1)?.end()
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      expect(running.connections).toBe(3)
    })

    test('an idle connection is kept for as long as the server says, less a second', async () => {
      let seconds = 1
      await using server = await startListener((_request, response) => {
        response.setHeader('keep-alive', `timeout=${seconds}`).end('ok')
      })
      using door = await openDoor(client, server.url)
      for (let n = 0; n < 2; n++) expect(await ask(door)).toMatchObject({ status: 200 })
      expect(server.connections).toBe(2)
      seconds = 2
      for (let n = 0; n < 8; n++) expect(await ask(door)).toMatchObject({ status: 200 })
      expect(server.connections).toBeLessThanOrEqual(4) // undici keeps a client for each that it had
      await until(() => server.openConnections === 0) // given up by this side, well before the server's time
    })

    test('a fresh connection that breaks is not tried again', async () => {
      await using server = await startTcp((socket) => socket.on('data', () => socket.destroy()))
      using door = await openDoor(client, server.url)
      expect(await ask(door, { repeatable: true })).toMatchObject({ error: { code: 'closed' }, sent: true })
      expect(server.connections).toBe(1)
    })

    verifies('wire.142', async () => {
      const closed = await startHttp(() => {})
      await closed[Symbol.asyncDispose]()
      const refused = await failure(connect(closed.url, { client }))
      expect(refused).toMatchObject({ code: 'unreachable', details: { sent: false } })
      expect(refused.message).toBe(
        `Connection refused by 127.0.0.1:${closed.port} (ECONNREFUSED): nothing listens there`,
      )
      const unknown = await failure(connect('http://no-such-name.invalid/mcp', { client }))
      expect(unknown).toMatchObject({
        code: 'unreachable',
        message: expect.stringMatching(
          /^The name "no-such-name\.invalid" could not be resolved \((ENOTFOUND|EAI_AGAIN)\)$/,
        ),
      })
      await using plain = await startTcp((socket) => socket.on('data', () => socket.end('SSH-2.0-OpenSSH_9.2\r\n')))
      expect(await failure(connect(plain.url, { client }))).toMatchObject({
        code: 'closed',
        message: expect.stringContaining('is not HTTP'),
      })
      const tls = await failure(connect(plain.url.replace('http:', 'https:'), { client }))
      expect(tls).toMatchObject({
        code: 'unreachable',
        message: expect.stringContaining('is its URL meant to begin with http://?'),
      })
      for (const url of ['ftp://x/mcp', 'file:///etc/passwd', 'not a url', 'ws://x'])
        expect(await failure(connect(url, { client })), url).toMatchObject({
          code: 'refused',
          details: { sent: false },
        })
    })

    test('connecting has a time limit', async () => {
      // A listener whose queue is full answers nothing: the address is real, the connection never comes.
      const door = await Door.open(new URL('http://192.0.2.1:9/'), { client, proxy: 'none', connectTimeoutMs: 150 })
      const answer = await ask(door)
      door.close()
      expect(answer).toMatchObject({ error: { code: 'unreachable' }, sent: false })
    })

    test('closing the door ends connections that are still being made', async () => {
      await using server = await startTcp(() => {})
      const door = await Door.open(new URL(server.url.replace('http:', 'https:')), { client, proxy: 'none' })
      void ask(door)
      await until(() => server.connections === 1)
      door.close()
      door.close()
      expect(await ask(door)).toMatchObject({ error: { code: 'closed' }, sent: false })
    })

    test('one request with its whole answer in memory, within limits', async () => {
      await using server = await startListener((request, response) => {
        if (request.url === '/big') return void response.end('x'.repeat(2_000))
        if (request.url === '/slow') return
        if (request.url === '/moved') return void response.writeHead(302, { location: '/big' }).end()
        response.writeHead(404, { 'x-own': 'a' }).end(`${request.method} ${request.headers['x-sent']}`)
      })
      const base = new URL(server.url).origin
      const options = { client, proxy: 'none' } as const
      const found = await fetchAnswer(`${base}/a#fragment`, { ...options, headers: { 'X-Sent': 'yes' } })
      expect([found.status, found.header('x-own'), found.body.toString()]).toEqual([404, 'a', 'GET yes'])
      expect((await fetchAnswer(`${base}/a`, { ...options, method: 'POST', body: 'b' })).body.toString()).toBe(
        'POST undefined',
      )
      expect(await failure(fetchAnswer(`${base}/big`, { ...options, answerBytesMax: 1_000 }))).toMatchObject({
        code: 'too-large',
      })
      expect(await failure(fetchAnswer(`${base}/moved`, options))).toMatchObject({ code: 'refused' })
      expect((await fetchAnswer(`${base}/moved`, { ...options, redirects: 'same-origin' })).body).toHaveLength(2_000)
      expect(await failure(fetchAnswer(`${base}/slow`, { ...options, timeoutMs: 50 }))).toMatchObject({
        code: 'timed-out',
        details: { sent: true },
      })
      const controller = new AbortController()
      const aborted = failure(fetchAnswer(`${base}/slow`, { ...options, signal: controller.signal }))
      setTimeout(() => controller.abort(), 20)
      expect(await aborted).toMatchObject({ code: 'cancelled' })
      expect(await failure(fetchAnswer(`${base}/slow`, { ...options, signal: controller.signal }))).toMatchObject({
        code: 'cancelled',
        details: { sent: false },
      })
    })
  })

verifies('security.034', async () => {
  const plain = (url: string, plainHttp?: 'any' | 'loopback' | 'never') =>
    failure(fetchAnswer(url, { proxy: 'none', timeoutMs: 200, ...(plainHttp && { plainHttp }) }))
  expect(await plain('http://auth.example/token')).toMatchObject({
    code: 'refused',
    message: 'http://auth.example is not encrypted: only https can be used here',
  })
  expect(await plain('HTTP://auth.example/token')).toMatchObject({ code: 'refused' })
  expect(await plain('http://127.0.0.1.evil.example/')).toMatchObject({ code: 'refused' })
  expect(await plain('http://localhost.evil.example/')).toMatchObject({ code: 'refused' })
  await using server = await startListener((_request, response) => void response.end('ok'))
  expect((await fetchAnswer(server.url, { proxy: 'none' })).body.toString()).toBe('ok')
  expect(await plain(server.url, 'never')).toMatchObject({ code: 'refused' })
  expect(server.connections).toBe(1)
})
