// HTTP+SSE of 2024-11-05: chosen, found, lost and found again; SDK v1's own server is the oracle.

import type { ServerResponse } from 'node:http'
import { startEverythingHttp, verifies } from '@convoke/testkit'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { describe, expect, test } from 'vitest'
import { createSdk1Server } from '../../testkit/servers/sdk1-server.ts'
import {
  CLIENTS,
  connect,
  event,
  failure,
  json,
  startHttp,
  startListener,
  type TestServer,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

/** SDK v1 as its documentation shows it: GET /sse, POST /messages. */
async function startSdkSse(): Promise<TestServer & { opened: number }> {
  const transports = new Map<string, SSEServerTransport>()
  const state = { opened: 0 }
  const server = await startListener(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://x')
    if (request.method === 'GET' && url.pathname === '/mcp') {
      state.opened++
      const transport = new SSEServerTransport('/messages', response)
      transports.set(transport.sessionId, transport)
      response.on('close', () => transports.delete(transport.sessionId))
      return createSdk1Server().connect(transport as Transport)
    }
    const known = transports.get(url.searchParams.get('sessionId') ?? '')
    if (request.method !== 'POST' || url.pathname !== '/messages')
      return void response.writeHead(404).end('Cannot POST')
    if (known === undefined) return void response.writeHead(400).end('No transport found for sessionId')
    return known.handlePostMessage(request, response)
  })
  return Object.defineProperty(server, 'opened', { get: () => state.opened }) as TestServer & { opened: number }
}

interface Scripted extends TestServer {
  readonly streams: ServerResponse[]
}

/** A hand-made one: answers on the newest stream. */
async function startOlder(
  endpoint = '/post?s=1',
  options: { first?: string; name?: string; token?: string } = {},
): Promise<Scripted> {
  const streams: ServerResponse[] = []
  const server = await startHttp(
    (message, response, { path, headers }) => {
      if (options.token !== undefined && headers.authorization !== options.token) return response.writeHead(401).end()
      if (path === '/mcp') return response.writeHead(405).end('Method Not Allowed')
      response.writeHead(202).end('Accepted')
      const say = (result: unknown): unknown =>
        message.id !== undefined && streams.at(-1)?.write(event({ jsonrpc: '2.0', id: message.id, result }))
      if (message.method === 'initialize')
        return say({
          protocolVersion: '2024-11-05',
          capabilities: { tools: {} },
          serverInfo: { name: 'older', version: '1' },
        })
      if (message.params?.name === 'die') return streams.at(-1)?.destroy()
      if (message.params?.name !== 'silent') say(textResult(path))
      return undefined
    },
    (_message, response, { verb, headers }) => {
      if (verb !== 'GET') return response.writeHead(405).end()
      if (options.token !== undefined && headers.authorization !== options.token)
        return response.writeHead(401, { 'www-authenticate': 'Bearer x' }).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`${options.first ?? ''}event: ${options.name ?? 'endpoint'}\ndata: ${endpoint}\n\n`)
      return streams.push(response)
    },
  )
  return Object.assign(server, { streams })
}

for (const client of CLIENTS)
  describe(client, () => {
    verifies('wire.170', async () => {
      await using server = await startSdkSse()
      const notes: unknown[] = []
      for (const transport of ['sse', 'auto'] as const) {
        await using session = await connect(
          server.url,
          { client, transport },
          {
            capabilities: { elicitation: {} },
            handlers: { 'elicitation/create': async () => ({ action: 'accept', content: { name: transport } }) },
          },
        )
        expect(session.era).toBe('legacy')
        expect(session.serverInfo).toMatchObject({ name: 'sdk1' })
        expect((await session.list('tools')).items.map(({ name }) => name)).toEqual(['echo', 'add', 'ask', 'steps'])
        expect(textOf(await session.callTool('echo', { text: 'größe' }))).toBe('größe')
        expect(textOf(await session.callTool('ask'))).toBe(`accept: {"name":"${transport}"}`)
        await session.callTool('steps', { count: 3 }, { onProgress: ({ progress }) => notes.push(progress) })
      }
      expect(notes).toEqual([1, 2, 3, 1, 2, 3])
      expect(server.opened).toBe(2)
    })

    test('server-everything over HTTP+SSE', async () => {
      await using server = await startEverythingHttp('sse')
      await using session = await connect(server.url, { client })
      expect((await session.list('tools')).items.length).toBeGreaterThan(5)
      expect(textOf(await session.callTool('echo', { message: 'hi' }))).toContain('hi')
    })

    verifies('wire.171', async () => {
      await using server = await startOlder()
      await using session = await connect(server.url, { client })
      const [lost, silent] = await Promise.all([failure(session.callTool('die')), failure(session.callTool('silent'))])
      for (const error of [lost, silent]) expect(error).toMatchObject({ code: 'closed', details: { sent: true } })
      const results = await Promise.all([session.callTool('x'), session.callTool('y')])
      expect(results.map(textOf)).toEqual(['/post?s=1', '/post?s=1'])
      expect(server.log.filter((method) => method === 'initialize').length).toBeLessThanOrEqual(4) // two refused ones look for the transport
      expect(server.streams).toHaveLength(2)
    })

    test('a lost stream comes back on its own, for what the server has to say', async () => {
      const heard: string[] = []
      await using server = await startOlder()
      await using session = await connect(server.url, { client }, { onNotification: (method) => heard.push(method) })
      server.streams.at(-1)?.destroy()
      await until(() => server.streams.length === 2 && server.log.at(-1) === 'notifications/initialized')
      server.streams.at(-1)?.write(event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }))
      await until(() => heard.length === 1)
      expect(textOf(await session.callTool('x'))).toBe('/post?s=1')
    })

    verifies('security.037', async () => {
      await using sink = await startHttp((_message, response) => response.end())
      for (const endpoint of [
        `http://127.0.0.1:${sink.port}/post`,
        `//127.0.0.1:${sink.port}/post`,
        'https://evil.example/post',
        'javascript:alert(1)',
        'http://[',
        ' ',
      ]) {
        await using server = await startOlder(endpoint)
        const error = await failure(
          connect(server.url, { client, transport: 'sse', headers: { authorization: 'Bearer CANARY' } }),
        )
        expect(['refused', 'malformed'], endpoint).toContain(error.code)
        expect(error.message).not.toContain('CANARY')
      }
      expect(sink.connections).toBe(0)
    })

    test('what is no such server is told by its first refusal', async () => {
      await using nothing = await startHttp(
        (_message, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>'),
        (_message, response) => response.writeHead(404).end(),
      )
      expect(await failure(connect(nothing.url, { client }))).toMatchObject({
        code: 'http',
        details: { status: 404 },
        message: expect.stringContaining('Not here'),
      })
      expect(nothing.log.filter((verb) => verb === 'GET')).toHaveLength(1)
      await using json405 = await startHttp(
        (_message, response) => response.writeHead(405).end(),
        (message, response) => json(response, message, {}),
      )
      expect(await failure(connect(json405.url, { client }))).toMatchObject({ code: 'http', details: { status: 405 } })
      expect(await failure(connect(json405.url, { client, transport: 'sse' }))).toMatchObject({ code: 'malformed' })
      await using streamable = await startHttp((_message, response) => response.writeHead(404).end())
      expect(await failure(connect(streamable.url, { client, transport: 'streamable' }))).toMatchObject({
        code: 'http',
        details: { status: 404 },
      })
      expect(streamable.log).not.toContain('GET')
    })

    test('messages before the endpoint, endless comments and a second endpoint do no harm', async () => {
      await using server = await startOlder('/post', {
        first: `: ${'x'.repeat(100_000)}\n\ndata: {"jsonrpc":"2.0","method":"notifications/early"}\n\nevent: strange\ndata: 1\n\n`,
      })
      await using session = await connect(server.url, { client, transport: 'sse' })
      server.streams.at(-1)?.write('event: endpoint\ndata: /elsewhere\n\n')
      expect(textOf(await session.callTool('x'))).toBe('/post')
      await using wrong = await startOlder('/post', { name: 'message' })
      expect(await failure(connect(wrong.url, { client, transport: 'sse' }, { startupTimeoutMs: 300 }))).toMatchObject({
        code: 'timed-out',
      })
    })

    test('a sign-in for the stream', async () => {
      let token = 0
      await using server = await startOlder('/post?s=1', { token: 'Bearer 1' })
      const challenges: unknown[] = []
      const authorization = {
        header: () => `Bearer ${token}`,
        challenge: async (...what: unknown[]) => challenges.push(what) > 0 && ++token > 0,
      }
      await using session = await connect(server.url, { client, transport: 'sse', authorization })
      expect(challenges).toEqual([[{ status: 401, wwwAuthenticate: 'Bearer x', refused: 'Bearer 0', round: 0 }]])
      expect(textOf(await session.callTool('x'))).toBe('/post?s=1')
    })

    test('closing ends the stream', async () => {
      await using server = await startOlder()
      const session = await connect(server.url, { client })
      const call = failure(session.callTool('silent'))
      await until(() => server.log.at(-1) === 'tools/call')
      await session.close()
      expect(await call).toMatchObject({ code: 'closed', details: { sent: true } })
      await server.seen.findLast(({ verb }) => verb === 'GET')?.left
    })
  })
