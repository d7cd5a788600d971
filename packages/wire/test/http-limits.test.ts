// The limit of one message over HTTP, to the byte, in every place where a message can come.
import { verifies } from '@convoke/testkit'
import { describe, expect } from 'vitest'
import {
  CLIENTS,
  connect,
  failure,
  json,
  legacy,
  modern,
  openStream,
  startHttp,
  textOf,
  textResult,
} from './http-fixture.ts'

const LIMIT = 100_000
const MIB = 1024 * 1024

/** An answer of exactly so many bytes. */
function answerOf(id: number | undefined, bytes: number): string {
  const answer = (text: string): string =>
    JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...textResult(text) } })
  return answer('x'.repeat(bytes - answer('').length))
}

for (const client of CLIENTS)
  describe(client, () => {
    verifies(['http.006', 'http.007', 'http.008'], async () => {
      await using server = await startHttp(
        legacy((message, response) => {
          const [kind, bytes] = (message.params?.name ?? '').split(' ')
          const answer = answerOf(message.id, Number(bytes))
          if (kind === 'events') {
            openStream(response)
            return response.write(`data: ${answer}\n\n`) // and never ends
          }
          response.writeHead(200, { 'content-type': 'application/json' })
          if (kind === 'chunked') response.write(answer.slice(0, 50_000))
          return response.end(kind === 'chunked' ? answer.slice(50_000) : answer)
        }),
      )
      await using session = await connect(server.url, { client }, { messageBytesMax: LIMIT })
      for (const kind of ['declared', 'chunked', 'events']) {
        expect(String(textOf(await session.callTool(`${kind} ${LIMIT}`))).length, kind).toBeGreaterThan(LIMIT - 200)
        expect(await failure(session.callTool(`${kind} ${LIMIT + 1}`)), kind).toMatchObject({
          code: 'too-large',
          details: { sent: true },
        })
      }
    })

    verifies('http.010', async () => {
      await using server = await startHttp((_message, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(LIMIT + 1) })
        response.flushHeaders() // and nothing more
      })
      const start = connect(server.url, { client }, { messageBytesMax: LIMIT, era: 'legacy' })
      expect(await failure(start)).toMatchObject({ code: 'too-large', details: { status: 200 } })
      expect(server.log).toEqual(['initialize'])
    })

    verifies('http.011', async () => {
      await using server = await startHttp(
        modern((message, response) => {
          const answer = answerOf(message.id, LIMIT + 1)
          switch (message.params?.name ?? '') {
            case 'json':
              return response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
            case 'error':
              return response.writeHead(500, { 'content-type': 'text/plain' }).end(answer)
            case 'events':
              openStream(response)
              return response.write(`data: ${answer}\n\n`)
          }
          return json(response, message, { resultType: 'complete', ...textResult('good') })
        }),
      )
      await using session = await connect(server.url, { client }, { messageBytesMax: LIMIT })
      expect(await failure(session.callTool('json'))).toMatchObject({ code: 'too-large' })
      expect(await failure(session.callTool('events'))).toMatchObject({ code: 'too-large' })
      const error = await failure(session.callTool('error'))
      expect(error).toMatchObject({ code: 'http', details: { status: 500 } })
      expect(error.message.length).toBeLessThan(1_000)
      expect(textOf(await session.callTool('x'))).toBe('good')
      await using talkative = await startHttp((message, response) =>
        json(response, message, { big: 'x'.repeat(LIMIT) }),
      )
      expect(await failure(connect(talkative.url, { client }, { messageBytesMax: LIMIT }))).toMatchObject({
        code: 'too-large',
      })
    })

    verifies('http.012', async () => {
      await using server = await startHttp(
        legacy((message, response) =>
          response.writeHead(200, { 'content-type': 'application/json' }).end(answerOf(message.id, 9 * MIB)),
        ),
      )
      await using session = await connect(server.url, { client })
      expect(String(textOf(await session.callTool('x'))).length).toBeGreaterThan(8 * MIB)
    })
  })
