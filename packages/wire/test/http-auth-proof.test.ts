// Tokens that are bound to a key: a proof for each request, the nonces of the server, and where proofs must not go.
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import type { Authorization, ProofRequest } from '../src/target.ts'
import {
  CLIENTS,
  connect,
  failure,
  type Handler,
  json,
  legacy,
  openStream,
  startHttp,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

/** Proofs that can be read: a number, the nonce, the method and the URL. */
class Prover implements Authorization {
  token = 'DPoP t0'
  nonce = ''
  count = 0
  readonly nonces: string[] = []
  readonly refused: (string | undefined)[] = []
  readonly requests: ProofRequest[] = []
  renews = false

  header(): string {
    return this.token
  }
  async challenge({ refused }: { refused: string | undefined }): Promise<boolean> {
    this.refused.push(refused)
    return this.renews
  }
  proof(request: ProofRequest): string | Promise<string> {
    this.requests.push(request)
    const proof = `${this.count++}.${this.nonce}.${request.method}.${new URL(request.url).pathname}`
    return this.count % 2 === 0 ? proof : Promise.resolve(proof) // at once or later
  }
  sawNonce(nonce: string): void {
    this.nonces.push(nonce)
    this.nonce = nonce
  }
}

const echo = (): Handler =>
  legacy(
    (message, response, { headers }) => json(response, message, textResult(String(headers['dpop']))),
    {},
    { 'mcp-session-id': 's1' },
  )

for (const client of CLIENTS)
  describe(client, () => {
    verifies('http.030', async () => {
      await using server = await startHttp(echo(), (_message, response, { verb }) =>
        verb === 'GET' ? openStream(response) : response.writeHead(200).end(),
      )
      const prover = new Prover()
      const session = await connect(`${server.url}?key=1`, {
        client,
        authorization: prover,
        headers: { DPoP: 'configured' },
      })
      await until(() => server.log.includes('GET') && server.log.includes('notifications/initialized'))
      await session.callTool('x', {}, { headers: { dpop: 'of the caller' } })
      await Promise.all(Array.from({ length: 5 }, () => session.callTool('x')))
      await session.close()
      const proofs = server.seen.map(({ headers }) => String(headers['dpop']))
      expect(new Set(proofs).size).toBe(server.seen.length)
      for (const [n, { verb }] of server.seen.entries())
        expect(proofs[n]).toMatch(new RegExp(`^\\d+\\.\\.${verb}\\./mcp$`))
      expect(new Set(server.seen.map(({ verb }) => verb))).toEqual(new Set(['POST', 'GET', 'DELETE']))
      expect(prover.requests[0]).toEqual({ method: 'POST', url: `${server.url}?key=1`, authorization: 'DPoP t0' })
    })

    verifies('http.031', async () => {
      let wanted = 'n1'
      let token = 'DPoP t0'
      await using server = await startHttp((message, response, request) => {
        const [, nonce] = String(request.headers['dpop']).split('.')
        if (nonce !== wanted)
          return response
            .writeHead(401, {
              'www-authenticate': 'DPoP error="use_dpop_nonce", error_description="x"',
              'dpop-nonce': wanted,
            })
            .end()
        if (request.headers.authorization !== token)
          return response.writeHead(401, { 'www-authenticate': 'DPoP error="invalid_token"' }).end()
        if (message.params?.name === 'next') response.setHeader('dpop-nonce', (wanted = 'n2'))
        if (message.params?.name === 'bad') response.setHeader('dpop-nonce', 'no nonce at all')
        return echo()(message, response, request)
      })
      const prover = new Prover()
      await using session = await connect(server.url, { client, authorization: prover })
      expect(prover.refused).toEqual([])
      await until(() => server.log.includes('GET') && server.log.includes('notifications/initialized'))
      // With an ordinary answer: the next request has it already.
      await session.callTool('next')
      server.seen.length = 0
      await session.callTool('x')
      expect(server.log).toEqual(['tools/call'])
      // The token is refused after the nonce was: one round each, and no proof twice.
      wanted = 'n3'
      token = 'DPoP t1'
      prover.renews = true
      const { challenge } = prover
      prover.challenge = async (refusal) => {
        prover.token = token
        return challenge.call(prover, refusal)
      }
      server.seen.length = 0
      expect(textOf(await session.callTool('x'))).toMatch(/^\d+\.n3\.POST/)
      expect(server.log).toEqual(['tools/call', 'tools/call', 'tools/call'])
      expect(prover.refused).toEqual(['DPoP t0'])
      expect(new Set(server.seen.map(({ headers }) => headers['dpop'])).size).toBe(3)
      // Nonces that no proof can hold are not passed on.
      await session.callTool('bad')
      expect(prover.nonce).toBe('n3')
      // A server that is never content is asked twice, and the token is not blamed for it.
      prover.sawNonce = () => {}
      wanted = 'n4'
      server.seen.length = 0
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'unauthorized', details: { status: 401 } })
      expect(server.log).toEqual(['tools/call', 'tools/call'])
      expect(prover.refused).toHaveLength(1)
    })

    verifies('http.032', async () => {
      let isMoved = false
      let drops = 0
      const used = new WeakSet<object>()
      await using server = await startHttp((message, response, request) => {
        if (isMoved) return response.writeHead(307, { location: '/other' }).end()
        if (message.method === 'prompts/list' && used.has(request.raw.socket) && drops-- > 0)
          return response.socket?.destroy()
        used.add(request.raw.socket)
        return echo()(message, response, request)
      })
      const prover = new Prover()
      await using session = await connect(server.url, { client, authorization: prover })
      await until(() => server.log.includes('GET') && server.log.includes('notifications/initialized'))
      // On a connection that has served others: harmless to do again, with another proof.
      drops = 1
      let calls = 0
      while (drops > 0) {
        await session.request('prompts/list')
        calls++
      }
      const lists = server.seen.filter(({ method }) => method === 'prompts/list').map(({ headers }) => headers['dpop'])
      expect(lists).toHaveLength(calls + 1)
      expect(new Set(lists).size).toBe(calls + 1)
      isMoved = true
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'refused', details: { status: 307 } })
      expect(server.seen.every(({ path }) => path === '/mcp')).toBe(true)
    })

    verifies('http.036', async () => {
      await using elsewhere = await startHttp((_message, response) => response.writeHead(200).end())
      await using server = await startHttp((message, response, request) =>
        message.params?.name === 'moved'
          ? response.writeHead(307, { location: elsewhere.url }).end()
          : echo()(message, response, request),
      )
      for (const authorization of [new Prover(), { header: () => 'Bearer secret', challenge: async () => false }]) {
        await using session = await connect(server.url, { client, authorization })
        expect(await failure(session.callTool('moved'))).toMatchObject({ code: 'refused' })
      }
      expect(elsewhere.connections).toBe(0)
    })

    test('proofs that cannot be made or carried fail the request unsent; none is none', async () => {
      await using server = await startHttp(echo())
      const prover = new Prover()
      await using session = await connect(server.url, { client, authorization: prover })
      prover.proof = () => Promise.reject(new Error('the key is gone'))
      const error = await failure(session.callTool('x'))
      expect(error).toMatchObject({ code: 'unauthorized', details: { sent: false } })
      expect(error.cause).toMatchObject({ message: 'the key is gone' })
      prover.proof = () => 'a\r\nb: c'
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'refused', details: { sent: false } })
      prover.proof = () => undefined as never
      prover.sawNonce = () => {
        throw new Error('its own business')
      }
      expect(textOf(await session.callTool('x'))).toBe('undefined')
    })
  })
