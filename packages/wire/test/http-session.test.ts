// Legacy sessions over HTTP: lost, made anew, ended. The forgetful server is the testkit's.
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import {
  CLIENTS,
  connect,
  failure,
  json,
  legacy,
  openStream,
  rpcError,
  startHttp,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

const FORGOTTEN = ['404-json', '404-html', '404-empty', '400-no-session', '200-not-initialized'] as const

for (const client of CLIENTS)
  describe(client, () => {
    verifies(
      'wire.110',
      async () => {
        for (const answer of FORGOTTEN) {
          await using server = await startScriptedHttp({ forgottenAnswers: [answer], getStream: '405' })
          await using session = await connect(server.url, { client })
          await session.callTool('echo', { text: 'before' })
          const before = server.requests.length
          server.forgetSessions()
          const results = await Promise.all(
            Array.from({ length: 10 }, (_, n) => session.callTool('echo', { text: `${n}` })),
          )
          expect(results.map(textOf), answer).toEqual(Array.from({ length: 10 }, (_, n) => `${n}`))
          const after = server.requests.slice(before)
          expect(
            after.filter(({ rpc }) => rpc === 'initialize'),
            answer,
          ).toHaveLength(1)
          expect(after.filter(({ rpc }) => rpc === 'tools/call').length, answer).toBeLessThanOrEqual(20)
          expect(
            after.filter(({ method }) => method === 'DELETE'),
            answer,
          ).toHaveLength(1)
        }
      },
      60_000,
    )

    verifies(
      'wire.111',
      async () => {
        await using server = await startScriptedHttp({ forgetAfterCalls: 2, forgottenAnswers: FORGOTTEN })
        await using session = await connect(server.url, { client })
        for (let round = 0; round < 4; round++) {
          const results = await Promise.allSettled(
            Array.from({ length: 10 }, (_, n) => session.callTool('echo', { text: `${n}` })),
          )
          for (const [n, result] of results.entries())
            if (result.status === 'fulfilled') expect(textOf(result.value)).toBe(`${n}`)
            else expect(result.reason).toMatchObject({ code: 'session-lost' })
        }
        const calls = server.requests.filter(({ rpc }) => rpc === 'tools/call')
        expect(calls.length).toBeLessThanOrEqual(80) // each at most twice
        const ids = new Set(
          server.requests.map(({ headers }) => headers['mcp-session-id']).filter((id) => id !== undefined),
        )
        const deleted = server.requests
          .filter(({ method }) => method === 'DELETE')
          .map(({ headers }) => headers['mcp-session-id'])
        expect(new Set(deleted).size).toBe(deleted.length)
        expect(ids.size - deleted.length).toBeLessThanOrEqual(1) // all but the last
      },
      60_000,
    )

    verifies('wire.112', async () => {
      await using server = await startScriptedHttp({ getStream: '404' })
      await using session = await connect(server.url, { client })
      await until(() => server.requests.some(({ method, status }) => method === 'GET' && status === 404))
      await until(() => server.requests.some(({ rpc, status }) => rpc === 'ping' && status !== undefined))
      expect(textOf(await session.callTool('echo', { text: 'good' }))).toBe('good')
      expect(server.requests.filter(({ rpc }) => rpc === 'initialize')).toHaveLength(1)
    })

    test('an idle session that is lost comes back with its stream', async () => {
      await using server = await startScriptedHttp({ forgottenAnswers: ['404-json'] })
      const changed: string[] = []
      await using session = await connect(server.url, { client }, { onNotification: (method) => changed.push(method) })
      await until(() => server.requests.some(({ method }) => method === 'GET'))
      server.forgetSessions() // ends the streams as well
      await until(() => server.requests.filter(({ rpc }) => rpc === 'initialize').length === 2)
      await until(() => server.requests.filter(({ method }) => method === 'GET').length >= 3)
      await session.callTool('change')
      await until(() => changed.includes('notifications/tools/list_changed'))
    })

    verifies(['http.001', 'http.002'], async () => {
      let sessions = 0
      let forgets = 0
      await using server = await startHttp(
        (message, response, { headers }) => {
          if (message.method === 'initialize') sessions++
          if (message.method === 'tools/call' && forgets-- > 0) return response.writeHead(404).end()
          if (message.method === 'tools/call')
            return json(response, message, textResult(String(headers['mcp-session-id'])))
          return legacy(
            (_message, response_) => response_.writeHead(202).end(),
            {},
            { 'mcp-session-id': `s${sessions}` },
          )(message, response, {} as never)
        },
        (_message, response, { verb }) => response.writeHead(verb === 'DELETE' ? 204 : 405).end(),
      )
      await using session = await connect(server.url, { client })
      forgets = 2
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'session-lost', details: { status: 404 } })
      expect(textOf(await session.callTool('x'))).toBe('s2')
      forgets = 1
      expect(textOf(await session.callTool('x'))).toBe('s3')
    })

    verifies('wire.113', async () => {
      let dropped = 0
      await using server = await startHttp(
        legacy(
          (message, response) => {
            if (message.params?.name === 'stream') {
              openStream(response)
              response.write(': running\n\n')
            }
            dropped++
            setTimeout(() => response.socket?.destroy(), 20)
          },
          {},
          { 'mcp-session-id': 's1' },
        ),
        (_message, response) => response.writeHead(405).end(),
      )
      await using session = await connect(server.url, { client })
      expect(await failure(session.callTool('stream'))).toMatchObject({ code: 'closed', details: { sent: true } })
      expect(await failure(session.callTool('silent'))).toMatchObject({ code: 'closed', details: { sent: true } })
      expect(dropped).toBe(2)
    })

    test('a session that cannot be made anew fails its callers as unsent, and the next call tries again', async () => {
      let refuses = false
      await using server = await startHttp((message, response, request) => {
        if (refuses) return response.writeHead(message.method === 'initialize' ? 503 : 404).end()
        return legacy((one, response_) => json(response_, one, textResult('fine')), {}, { 'mcp-session-id': 's1' })(
          message,
          response,
          request,
        )
      })
      await using session = await connect(server.url, { client })
      refuses = true
      const [one, two] = await Promise.all([failure(session.callTool('x')), failure(session.callTool('y'))])
      expect([one, two].map(({ code, details }) => [code, details['sent']])).toEqual(
        Array(2).fill(['session-lost', false]),
      )
      refuses = false
      expect(textOf(await session.callTool('x'))).toBe('fine')
    })

    test('closing while the session is being made anew ends everything', async () => {
      let stuck = false
      await using server = await startHttp((message, response, request) => {
        if (stuck) return message.method === 'initialize' ? undefined : response.writeHead(404).end()
        return legacy((one, response_) => json(response_, one, textResult('fine')), {}, { 'mcp-session-id': 's1' })(
          message,
          response,
          request,
        )
      })
      const session = await connect(server.url, { client })
      stuck = true
      const call = failure(session.callTool('x'))
      await until(() => server.log.filter((method) => method === 'initialize').length === 2)
      await session.close()
      expect(await call).toMatchObject({ code: 'closed' })
    })

    test('a session id that no header can carry is refused', async () => {
      await using server = await startHttp(legacy(() => {}, {}, { 'mcp-session-id': 'a b' }))
      expect(await failure(connect(server.url, { client, transport: 'streamable' }))).toMatchObject({
        code: 'malformed',
      })
    })

    test('a tool that says "session not found" is only a tool', async () => {
      await using server = await startHttp(
        legacy(
          (message, response) => {
            if (message.params?.name === 'rpc')
              return rpcError(response, 200, message.id, { code: -32000, message: 'Session not found for user 7' })
            json(response, message, textResult('Server not initialized'))
          },
          {},
          { 'mcp-session-id': 's1' },
        ),
      )
      await using session = await connect(server.url, { client })
      expect(textOf(await session.callTool('x'))).toBe('Server not initialized')
      expect(await failure(session.callTool('rpc'))).toMatchObject({ code: 'remote' })
      expect(server.log.filter((method) => method === 'initialize')).toHaveLength(1)
    })
  })
