// What both HTTP clients owe the session, with hand-made servers of both eras.
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../src/protocol.ts'
import {
  accept,
  CLIENTS,
  connect,
  event,
  failure,
  json,
  legacy,
  modern,
  openStream,
  rpcError,
  startHttp,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

const PAGE =
  '<!doctype html><html><head><title>Corp\u0007 Sign-in</title><script>evil()</script></head><body><form>Password</form></body></html>'
const WRONG_ANSWERS: Readonly<Record<string, readonly [status: number, type: string | undefined, body: string]>> = {
  login: [200, 'text/html; charset=utf-8', PAGE],
  text: [200, 'text/plain', 'a\u202e'.repeat(50_000)],
  none: [200, undefined, 'nothing'],
  empty: [200, 'application/json', ''],
  other: [200, 'application/json', '{"jsonrpc":"2.0","id":99,"result":{}}'],
  500: [500, 'text/plain', 'it  broke\n\nbadly'],
}

for (const client of CLIENTS)
  describe(client, () => {
    test('a legacy session: id and version on every request, DELETE at the end', async () => {
      await using server = await startHttp(
        legacy((message, response) => json(response, message, textResult('hi')), {}, { 'mcp-session-id': 's1' }),
        (_message, response, { verb }) => response.writeHead(verb === 'DELETE' ? 200 : 405).end(),
      )
      const session = await connect(server.url, { client })
      expect(session.era).toBe('legacy')
      expect(textOf(await session.callTool('x'))).toBe('hi')
      await session.close()
      expect(server.log).toEqual([
        'server/discover',
        'initialize',
        'notifications/initialized',
        'GET',
        'tools/call',
        'DELETE',
      ])
      for (const { headers, method } of server.seen.slice(2)) {
        expect(headers['mcp-session-id'], method).toBe('s1')
        expect(headers['mcp-protocol-version'], method).toBe('2025-11-25')
      }
      expect(server.seen[1]?.headers['mcp-session-id']).toBeUndefined()
      expect(server.seen[4]?.headers).toMatchObject({
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      })
    })

    verifies('wire.100', async () => {
      const notes: unknown[] = []
      const asked: unknown[] = []
      await using server = await startHttp(
        legacy(async (message, response) => {
          if (message.method === undefined) {
            answers.push(message)
            return accept(response)
          }
          if (message.method !== 'tools/call') return accept(response)
          openStream(response)
          const name = message.params?.name
          response.write(
            event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: name } }),
          )
          response.write(
            event({ jsonrpc: '2.0', id: `q-${name}`, method: 'elicitation/create', params: { message: name } }),
          )
          await until(() => answers.some(({ id }) => (id as unknown) === `q-${name}`))
          response.end(event({ jsonrpc: '2.0', id: message.id, result: textResult(String(name)) }))
        }),
      )
      const answers: { id?: number; result?: unknown }[] = []
      await using session = await connect(
        server.url,
        { client },
        {
          capabilities: { elicitation: {} },
          handlers: {
            'elicitation/create': async ({ message }, { call }) => {
              asked.push([message, call?.params['name']])
              return { action: 'accept', content: {} }
            },
          },
          onNotification: (method, params, call) => notes.push([method, params['data'], call?.params['name']]),
        },
      )
      const results = await Promise.all(['one', 'two', 'three'].map((name) => session.callTool(name)))
      expect(results.map(textOf)).toEqual(['one', 'two', 'three'])
      expect(asked.sort()).toEqual([
        ['one', 'one'],
        ['three', 'three'],
        ['two', 'two'],
      ])
      expect(notes.sort()).toEqual(['one', 'three', 'two'].map((name) => ['notifications/message', name, name]))
      expect(answers.map(({ result }) => result)).toEqual(Array(3).fill({ action: 'accept', content: {} }))
    })

    test('events in odd chunks', async () => {
      await using server = await startHttp(
        legacy(async (message, response) => {
          openStream(response)
          const bytes = Buffer.from(
            `: hi\r\n${event({ jsonrpc: '2.0', id: message.id, result: textResult('größe') })}`.replaceAll(
              '\n',
              '\r\n',
            ),
          )
          for (const byte of bytes) {
            response.write(Buffer.from([byte]))
            if (byte > 127) await new Promise((resolve) => setImmediate(resolve))
          }
          response.end()
        }),
      )
      await using session = await connect(server.url, { client })
      expect(textOf(await session.callTool('x'))).toBe('größe')
    })

    verifies('wire.101', async () => {
      await using server = await startHttp(
        modern((message, response) => {
          if (message.params?.name !== 'hang') return json(response, message, { resultType: 'complete', content: [] })
          openStream(response)
          response.write(': here\n\n')
        }),
      )
      await using session = await connect(server.url, { client })
      expect(session.era).toBe('modern')
      const controller = new AbortController()
      const call = session.callTool('hang', {}, { signal: controller.signal })
      await until(() => server.log.length === 2)
      controller.abort()
      expect(await failure(call)).toMatchObject({ code: 'cancelled', details: { sent: true } })
      await server.seen[1]?.left
      await session.callTool('next')
      expect(server.log).toEqual(['server/discover', 'tools/call', 'tools/call'])
    })

    verifies('wire.102', async () => {
      await using server = await startHttp(
        legacy((message, response) => {
          if (message.method === 'notifications/cancelled') return accept(response)
          if (message.params?.name !== 'hang') json(response, message, textResult('on'))
        }),
      )
      await using session = await connect(server.url, { client })
      const controller = new AbortController()
      const call = session.callTool('hang', {}, { signal: controller.signal })
      await until(() => server.log.at(-1) === 'tools/call')
      controller.abort()
      controller.abort()
      await expect(call).rejects.toMatchObject({ code: 'cancelled' })
      await server.seen.at(-1)?.left.catch(() => {})
      expect(textOf(await session.callTool('next'))).toBe('on')
      await until(() => server.log.includes('notifications/cancelled'))
      expect(server.log.filter((method) => method === 'notifications/cancelled')).toHaveLength(1)
      const cancelled = server.seen.find(({ method }) => method === 'notifications/cancelled')?.message?.params
        ?.requestId
      expect(cancelled).toBe(server.seen.find(({ message }) => message?.params?.name === 'hang')?.message?.id)
    })

    verifies('wire.103', async () => {
      const big = 'x'.repeat(300_000)
      await using server = await startHttp(
        legacy((message, response) => {
          const { name } = message.params ?? {}
          const answer = JSON.stringify({
            jsonrpc: '2.0',
            id: message.id,
            result: textResult(name === 'small' ? 'small' : big),
          })
          if (name === 'json') return json(response, message, textResult(big))
          if (name === 'chunked') {
            response.writeHead(200, { 'content-type': 'application/json' })
            response.write(answer.slice(0, 200_000))
            return response.end(answer.slice(200_000))
          }
          openStream(response)
          if (name === 'side') {
            response.write(event({ jsonrpc: '2.0', method: 'notifications/message', params: { data: big } }))
            return response.end(event({ jsonrpc: '2.0', id: message.id, result: textResult('side') }))
          }
          response.end(`data: ${answer}\n\n`)
        }),
      )
      await using session = await connect(server.url, { client }, { messageBytesMax: 100_000 })
      const settled = await Promise.allSettled(
        ['json', 'chunked', 'events', 'side', 'small'].map((name) => session.callTool(name)),
      )
      expect(
        settled.map((one) => (one.status === 'rejected' ? (one.reason as { code: string }).code : textOf(one.value))),
      ).toEqual(['too-large', 'too-large', 'too-large', 'side', 'small'])
      expect(textOf(await session.callTool('small'))).toBe('small')
    })

    verifies('wire.104', async () => {
      await using server = await startHttp(
        legacy((message, response) => {
          const [status, type, body] = WRONG_ANSWERS[message.params?.name ?? ''] ?? []
          if (status === undefined)
            return rpcError(response, 400, message.id, { code: -32602, message: 'no such tool' })
          response.writeHead(status, type === undefined ? {} : { 'content-type': type }).end(body)
        }),
      )
      await using session = await connect(server.url, { client })
      const host = new URL(server.url).host
      const login = await failure(session.callTool('login'))
      expect(login).toMatchObject({ code: 'malformed', details: { status: 200 } })
      expect(login.message).toBe(
        `${host} answered "tools/call" with a web page, perhaps for a sign-in, instead of JSON or events: Corp Sign-in Password`,
      )
      const text = await failure(session.callTool('text'))
      expect(text.code).toBe('malformed')
      expect(text.message.length).toBeLessThan(500)
      expect(text.message).not.toMatch(/[\u202e\p{Cc}]/u)
      expect(await failure(session.callTool('none'))).toMatchObject({ code: 'malformed' })
      expect(await failure(session.callTool('empty'))).toMatchObject({
        code: 'malformed',
        message: 'HTTP 200 without an answer to "tools/call"',
      })
      expect(await failure(session.callTool('other'))).toMatchObject({ code: 'malformed' })
      expect(await failure(session.callTool('500'))).toMatchObject({
        code: 'http',
        details: { status: 500, sent: true },
        message: `${host} answered "tools/call" with HTTP 500: it broke badly`,
      })
      expect(await failure(session.callTool('rpc'))).toMatchObject({
        code: 'remote',
        details: { rpc: { code: -32602 }, status: 400 },
      })
    })

    test('an idle timeout is put off by progress, and drops the exchange', async () => {
      await using server = await startHttp(
        legacy(async (message, response) => {
          if (message.method === 'notifications/cancelled') return accept(response)
          openStream(response)
          const progressToken = message.params?._meta?.['progressToken']
          for (let progress = 0; progress < Number(message.params?.arguments?.['steps']); progress++) {
            response.write(
              event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } }),
            )
            await new Promise((resolve) => setTimeout(resolve, 100))
          }
          if (message.params?.arguments?.['ends'] === true)
            response.end(event({ jsonrpc: '2.0', id: message.id, result: textResult('done') }))
        }),
      )
      await using session = await connect(server.url, { client })
      const seen: JsonObject[] = []
      const result = await session.callTool(
        'x',
        { steps: 8, ends: true },
        { idleTimeoutMs: 600, onProgress: (one) => seen.push(one) },
      )
      expect(textOf(result)).toBe('done')
      expect(seen).toHaveLength(8)
      expect(await failure(session.callTool('x', { steps: 1 }, { idleTimeoutMs: 150 }))).toMatchObject({
        code: 'timed-out',
        details: { sent: true },
      })
      await server.seen.find(
        ({ message }) => message?.params?.arguments?.['ends'] === undefined && message?.method === 'tools/call',
      )?.left
    })

    test('a stream that goes on after its answer is closed', async () => {
      await using server = await startHttp(
        legacy((message, response) => {
          openStream(response)
          response.write(event({ jsonrpc: '2.0', id: message.id, result: textResult('done') }))
        }),
      )
      await using session = await connect(server.url, { client })
      expect(textOf(await session.callTool('x'))).toBe('done')
      await server.seen.at(-1)?.left
    }, 20_000)

    test('many calls at once share a bounded number of connections', async () => {
      let open = 0
      let most = 0
      await using server = await startHttp(
        legacy(async (message, response) => {
          most = Math.max(most, ++open)
          await new Promise((resolve) => setTimeout(resolve, 5))
          open--
          json(response, message, textResult(String(message.params?.name)))
        }),
      )
      await using session = await connect(server.url, { client })
      const names = Array.from({ length: 600 }, (_, index) => `t${index}`)
      const results = await Promise.all(names.map((name) => session.callTool(name)))
      expect(results.map(textOf)).toEqual(names)
      expect(most).toBeLessThanOrEqual(128)
      expect(server.connections).toBeLessThanOrEqual(140)
    })

    test('closing fails what is in flight, ends its connections, and lets notifications arrive', async () => {
      await using server = await startHttp(
        legacy(async (message, response) => {
          if (message.method !== 'notifications/progress') return
          await new Promise((resolve) => setTimeout(resolve, 50))
          response.writeHead(202).end()
        }),
      )
      const session = await connect(server.url, { client })
      const call = session.callTool('hang')
      call.catch(() => {})
      await until(() => server.log.at(-1) === 'tools/call')
      session.notify('notifications/progress', { progressToken: 1, progress: 1 })
      await Promise.all([session.close(), session.close()])
      expect(await failure(call)).toMatchObject({ code: 'closed', details: { sent: true } })
      expect(server.log.at(-1)).toBe('notifications/progress')
      expect(await session.closed).toMatchObject({ cause: 'local' })
      expect(await failure(session.callTool('late'))).toMatchObject({ code: 'closed', details: { sent: false } })
    })
  })
