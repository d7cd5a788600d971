// Credentials: who asks for them, how often, and what happens to those who wait.
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import type { Authorization, HeadersProvider } from '../src/target.ts'
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

/** Lets only those pass who send this. */
function guarded(
  isValid: (value: string | undefined) => boolean,
  rest: Handler,
  challenges: string | string[] = 'Bearer realm="x"',
  status = 401,
): Handler {
  return (message, response, request) => {
    if (isValid(request.headers.authorization)) return rest(message, response, request)
    response.setHeader('www-authenticate', challenges)
    return response.writeHead(status, { 'content-type': 'text/plain' }).end('who are you?')
  }
}

const greeting = legacy(
  (message, response, { headers }) => json(response, message, textResult(String(headers.authorization))),
  {},
  { 'mcp-session-id': 's1' },
)

/** A wallet whose tokens expire when the test says. */
function wallet(): Authorization & { token: number; challenges: [number, string | undefined][]; renews: boolean } {
  return {
    token: 0,
    challenges: [],
    renews: true,
    header() {
      return `Bearer token-${this.token}`
    },
    async challenge({ status, wwwAuthenticate }) {
      this.challenges.push([status, wwwAuthenticate])
      await new Promise((resolve) => setTimeout(resolve, 20))
      if (this.renews) this.token++
      return this.renews
    },
  }
}

for (const client of CLIENTS)
  describe(client, () => {
    verifies(['wire.160', 'http.005'], async () => {
      let valid = 1
      await using server = await startHttp(
        guarded((value) => value === `Bearer token-${valid}`, greeting, [
          'Basic realm="a"',
          'Bearer error="invalid_token", resource_metadata="https://x/y"',
        ]),
      )
      const authorization = wallet()
      await using session = await connect(server.url, { client, authorization })
      expect(authorization.challenges).toEqual([
        [401, 'Basic realm="a", Bearer error="invalid_token", resource_metadata="https://x/y"'],
      ])
      valid = 2
      const results = await Promise.all(Array.from({ length: 10 }, () => session.callTool('x')))
      expect(results.map(textOf)).toEqual(Array(10).fill('Bearer token-2'))
      expect(authorization.challenges).toHaveLength(2)
    })

    verifies('wire.161', async () => {
      await using server = await startHttp(guarded(() => false, greeting, 'Bearer scope="a b"'))
      const authorization = wallet()
      const error = await failure(connect(server.url, { client, authorization }))
      expect(error).toMatchObject({
        code: 'unauthorized',
        details: { status: 401, challenge: 'Bearer scope="a b"', sent: true },
      })
      expect(authorization.challenges).toHaveLength(3)
      expect(server.log).toEqual(Array(4).fill('server/discover'))
      authorization.renews = false
      server.seen.length = 0
      await failure(connect(server.url, { client, authorization }))
      expect(server.log).toHaveLength(1)
      server.seen.length = 0
      expect(await failure(connect(server.url, { client }))).toMatchObject({
        code: 'unauthorized',
        details: { status: 401, challenge: 'Bearer scope="a b"' },
      })
      expect(server.log).toHaveLength(1)
    })

    test('403 with a wish for scope is told to the wallet, and what it throws to the caller', async () => {
      let allows = true
      await using server = await startHttp(
        guarded(() => allows, greeting, 'Bearer error="insufficient_scope", scope="write"', 403),
      )
      const authorization = wallet()
      await using session = await connect(server.url, { client, authorization })
      allows = false
      authorization.challenge = async () => {
        throw new Error('the user has closed the window')
      }
      const error = await failure(session.callTool('x'))
      expect(error).toMatchObject({ code: 'unauthorized', details: { status: 403 } })
      expect(error.cause).toMatchObject({ message: 'the user has closed the window' })
      authorization.header = () => Promise.reject(new Error('the keyring is locked'))
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'unauthorized', details: { sent: false } })
      authorization.header = () => 'Bearer a\r\nx-b: c'
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'refused', details: { sent: false } })
      authorization.header = () => Promise.resolve(undefined)
      allows = true
      expect(textOf(await session.callTool('x'))).toBe('undefined')
    })

    test('a call that waits for its credentials has sent nothing, and can be cancelled', async () => {
      await using server = await startHttp(greeting)
      const authorization = wallet()
      await using session = await connect(server.url, { client, authorization })
      const before = server.log.length
      let give = (_value: string): void => {}
      authorization.header = () => new Promise((resolve) => (give = resolve))
      const controller = new AbortController()
      const call = failure(session.callTool('x', {}, { signal: controller.signal }))
      controller.abort()
      expect(await call).toMatchObject({ code: 'cancelled', details: { sent: false } })
      give('Bearer late')
      authorization.header = () => 'Bearer now'
      expect(textOf(await session.callTool('y'))).toBe('Bearer now')
      expect(server.log.slice(before).filter((method) => method === 'tools/call')).toHaveLength(1)
    })

    test('a sign-in takes as long as it takes: the idle clock stands still', async () => {
      let valid = 0
      await using server = await startHttp(guarded((value) => value === `Bearer token-${valid}`, greeting))
      const authorization = wallet()
      await using session = await connect(server.url, { client, authorization })
      valid = 1
      authorization.challenge = async () => {
        await new Promise((resolve) => setTimeout(resolve, 1_000))
        authorization.token++
        return true
      }
      expect(textOf(await session.callTool('x', {}, { idleTimeoutMs: 600 }))).toBe('Bearer token-1')
    })

    verifies('wire.162', async () => {
      let valid = 0
      await using server = await startHttp(
        guarded((value) => value === `Bearer token-${valid}`, greeting),
        (_message, response, { headers, verb }) => {
          if (verb !== 'GET') return response.writeHead(200).end()
          if (headers.authorization !== `Bearer token-${valid}`) return response.writeHead(401).end()
          return openStream(response)
        },
      )
      const authorization = wallet()
      await using session = await connect(server.url, { client, authorization })
      await until(() => server.log.includes('GET'))
      valid = 1
      server.closeConnections()
      await until(() => server.log.filter((verb) => verb === 'GET').length === 2)
      await new Promise((resolve) => setTimeout(resolve, 1_500)) // longer than its delay
      expect(server.log.filter((verb) => verb === 'GET')).toHaveLength(2)
      expect(textOf(await session.callTool('x'))).toBe('Bearer token-1')
      await until(() => server.log.filter((verb) => verb === 'GET').length === 3)
      await session.close()
      expect(server.seen.at(-1)).toMatchObject({ verb: 'DELETE', headers: { authorization: 'Bearer token-1' } })
    })

    verifies('wire.163', async () => {
      let valid = 'a'
      await using server = await startHttp((message, response, request) => {
        if (request.headers['x-key'] !== valid)
          return response.writeHead(401, { 'www-authenticate': 'Bearer original' }).end()
        return legacy((one, response_) =>
          json(response_, one, textResult(`${request.headers['x-key']} ${request.headers['x-fixed']}`)),
        )(message, response, request)
      })
      let asked = 0
      let refused = 0
      let next = 'a'
      const headersProvider: HeadersProvider = {
        async headers() {
          asked++
          await new Promise((resolve) => setTimeout(resolve, 10))
          return { 'X-Key': next }
        },
        async refused() {
          refused++
          return true
        },
      }
      await using session = await connect(server.url, {
        client,
        headersProvider,
        headers: { 'x-key': 'overridden', 'x-fixed': 'kept' },
      })
      expect(asked).toBe(1)
      expect(textOf(await session.callTool('x'))).toBe('a kept')
      ;[valid, next] = ['b', 'b']
      const results = await Promise.all(Array.from({ length: 10 }, () => session.callTool('x')))
      expect(results.map(textOf)).toEqual(Array(10).fill('b kept'))
      expect([asked, refused]).toEqual([2, 1])
      // The same again changes nothing: the server's own refusal stands.
      valid = 'c'
      server.seen.length = 0
      expect(await failure(session.callTool('x'))).toMatchObject({
        code: 'unauthorized',
        details: { status: 401, challenge: 'Bearer original' },
      })
      expect(server.log).toEqual(['tools/call'])
    })

    verifies('http.052', async () => {
      await using server = await startHttp(greeting)
      for (const given of [
        { 'Content-Length': '1' },
        { 'mcp-session-id': 'x' },
        { Origin: 'https://x' },
        { 'x-a': 'a\nb' },
        { 'x-a': 'SECRET', 'X-A': 'SECRET' },
        { 'x-a': 1 as unknown as string },
        null as unknown as Record<string, string>,
        Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`x-${n}`, ''])),
      ]) {
        const error = await failure(
          connect(server.url, { client, headersProvider: { headers: () => given, refused: async () => false } }),
        )
        expect(error, JSON.stringify(given)).toMatchObject({ code: 'refused', details: { sent: false } })
        expect(error.message).not.toContain('SECRET')
      }
      const throwing = { headers: () => Promise.reject(new Error('exit 1')), refused: async () => false }
      expect(await failure(connect(server.url, { client, headersProvider: throwing }))).toMatchObject({
        code: 'unauthorized',
        details: { sent: false },
      })
      expect(server.connections).toBe(0)
      await using moved = await startHttp((_message, response) => response.writeHead(307, { location: '/other' }).end())
      expect(
        await failure(
          connect(
            moved.url,
            { client, headersProvider: { headers: () => ({}), refused: async () => false } },
            { era: 'legacy' },
          ),
        ),
      ).toMatchObject({ code: 'refused', details: { status: 307 } })
    })

    test('credentials in the URL are sent as a header and never shown', async () => {
      await using server = await startHttp(
        guarded((value) => value === `Basic ${Buffer.from('me:HUSH@HUSH').toString('base64')}`, greeting),
      )
      const url = server.url.replace('http://', 'http://me:HUSH%40HUSH@')
      await using session = await connect(url, { client })
      expect(textOf(await session.callTool('x'))).toContain('Basic ')
      const gone = await failure(connect(url.replace(`:${server.port}`, ':1'), { client }))
      expect(gone.message + String(gone.stack) + JSON.stringify(gone)).not.toContain('HUSH')
    })

    verifies('security.036', async () => {
      const CANARY = 'sk-CANARY/+"é"'
      await using server = await startHttp((_message, response, { headers }) => {
        const sent = String(headers['x-api-key'])
        const forms = [
          sent,
          JSON.stringify(sent),
          encodeURIComponent(sent),
          Buffer.from(sent).toString('base64'),
          headers.authorization,
        ]
        return response.writeHead(500, { 'content-type': 'text/plain' }).end(`You sent ${forms.join(' and ')}`)
      })
      const authorization = { header: () => 'Bearer tok-CANARY-123', challenge: async () => false }
      const error = await failure(connect(server.url, { client, headers: { 'x-api-key': CANARY }, authorization }))
      expect(error.message).toContain('HTTP 500: You sent [redacted]')
      const shown = error.message + String(error.stack) + JSON.stringify(error)
      for (const form of ['CANARY', encodeURIComponent('CANARY/+'), Buffer.from(CANARY).toString('base64')])
        expect(shown).not.toContain(form)
    })
  })
