// TLS with an authority of one's own, and proxies: real ones.
import { createServer as createTlsServer } from 'node:https'
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { createAuthority } from '../../testkit/servers/http-certificates.ts'
import { startProxy } from '../../testkit/servers/http-proxy.ts'
import { nodePlatform } from '../src/platform.ts'
import { chooseProxy } from '../src/proxy.ts'
import {
  CLIENTS,
  connect,
  failure,
  json,
  legacy,
  type Message,
  rpcError,
  serve,
  startHttp,
  startTcp,
  type TestServer,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

const authority = createAuthority()
const other = createAuthority('Another authority')

/** A legacy server behind TLS. */
async function startTls(names?: readonly string[], validity = {}): Promise<TestServer> {
  const { cert, key } = authority.issue({ ...(names && { names }), ...validity })
  const handle = legacy((message, response, { headers }) => json(response, message, textResult(String(headers.host))))
  const seen: TestServer['seen'] = []
  const server = createTlsServer({ cert, key }, async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const message = (parts.length === 0 ? {} : JSON.parse(Buffer.concat(parts).toString())) as Message
    seen.push({
      verb: request.method ?? '',
      path: request.url ?? '',
      method: message.method,
      message,
      headers: request.headers,
      left: Promise.resolve(),
    })
    if (request.method !== 'POST') return void response.writeHead(405).end()
    handle(message, response, { ...(seen.at(-1) as (typeof seen)[number]), raw: request })
  })
  return serve(server, seen, 'https')
}

for (const client of CLIENTS)
  describe(client, () => {
    verifies('wire.150', async () => {
      await using server = await startTls()
      const error = await failure(connect(server.url, { client }))
      expect(error).toMatchObject({ code: 'unreachable', details: { sent: false } })
      expect(error.message).toMatch(
        /^The certificate of 127\.0\.0\.1:\d+ is not trusted \(.*\): set "ca" of this server to the PEM file of the authority that signed it$/,
      )
      await using session = await connect(server.url, { client, ca: authority.cert })
      expect(textOf(await session.callTool('x'))).toBe(`127.0.0.1:${server.port}`)
      await using byName = await connect(server.url.replace('127.0.0.1', 'localhost'), { client, ca: authority.cert })
      expect(textOf(await byName.callTool('x'))).toBe(`localhost:${server.port}`)
    })

    verifies('security.035', async () => {
      const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
      process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
      try {
        await using trusted = await startTls()
        expect(await failure(connect(trusted.url, { client, ca: other.cert }))).toMatchObject({
          code: 'unreachable',
          message: expect.stringContaining('is not the authority that signed it'),
        })
        await using named = await startTls(['other.example'])
        expect(await failure(connect(named.url, { client, ca: authority.cert }))).toMatchObject({
          code: 'unreachable',
          message: expect.stringContaining('is for another name'),
        })
        await using expired = await startTls(undefined, { notBefore: new Date(0), notAfter: new Date(1e12) })
        expect(await failure(connect(expired.url, { client, ca: authority.cert }))).toMatchObject({
          code: 'unreachable',
          message: expect.stringContaining('has expired'),
        })
        expect([...trusted.seen, ...named.seen, ...expired.seen]).toEqual([])
        for (const ca of ['', 'no certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'])
          expect(await failure(connect(trusted.url, { client, ca })), ca).toMatchObject({
            code: 'refused',
            message: 'The "ca" of this server holds no certificate in PEM form',
          })
      } finally {
        if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
        else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
      }
    })

    verifies('wire.151', async () => {
      await using plain = await startHttp(
        legacy((message, response, { headers }) =>
          json(response, message, textResult(`${headers.host} ${headers['proxy-authorization']}`)),
        ),
      )
      await using secure = await startTls(['mcp.example'])
      await using proxy = await startProxy({
        credentials: 'me:p%40ss',
        hosts: { 'plain.example': plain.port, 'mcp.example': secure.port },
      })
      const platform = {
        ...nodePlatform,
        env: {
          HTTP_PROXY: proxy.url.replace('me:p%40ss', 'me:p%2540ss'),
          https_proxy: proxy.url.replace('me:p%40ss', 'me:p%2540ss'),
          NO_PROXY: 'direct.example',
        },
      }
      {
        await using session = await connect('http://plain.example/mcp', { client, proxy: 'environment' }, { platform })
        expect(textOf(await session.callTool('x'))).toBe('plain.example undefined')
        expect(proxy.requests.map(({ method, target }) => `${method} ${target}`)).toContain(
          'POST http://plain.example/mcp',
        )
      }
      const before = proxy.requests.length
      {
        await using session = await connect(
          'https://mcp.example/mcp',
          { client, proxy: 'environment', ca: authority.cert, headers: { authorization: 'Bearer CANARY' } },
          { platform },
        )
        expect(textOf(await session.callTool('x'))).toBe('mcp.example')
      }
      const tunnels = proxy.requests.slice(before)
      expect(new Set(tunnels.map(({ method, target }) => `${method} ${target}`))).toEqual(
        new Set(['CONNECT mcp.example:443']),
      )
      expect(JSON.stringify(tunnels)).not.toContain('CANARY')
      expect(
        secure.seen.every(
          ({ headers }) => headers['proxy-authorization'] === undefined && headers.authorization === 'Bearer CANARY',
        ),
      ).toBe(true)
    })

    verifies('wire.152', async () => {
      await using proxy = await startProxy({ credentials: 'me:HUSH-HUSH' })
      const withoutName = `http://127.0.0.1:${proxy.port}`
      const denied = await failure(connect('https://mcp.example/mcp', { client, proxy: withoutName }))
      expect(denied).toMatchObject({ code: 'unreachable', details: { sent: false } })
      expect(denied.message).toBe(
        `The proxy 127.0.0.1:${proxy.port} answered 407 instead of a tunnel to mcp.example:443: it wants a user name and password in the proxy URL`,
      )
      expect(await failure(connect('http://mcp.example/mcp', { client, proxy: withoutName }))).toMatchObject({
        code: 'unreachable',
        details: { status: 407, sent: false },
      })
      await using refusing = await startProxy({ credentials: 'me:HUSH-HUSH', refuseTunnels: 403 })
      const refused = await failure(connect('https://mcp.example/mcp', { client, proxy: refusing.url }))
      expect(refused.message).toBe(
        `The proxy 127.0.0.1:${refusing.port} answered 403 instead of a tunnel to mcp.example:443`,
      )
      const { port } = proxy
      await proxy[Symbol.asyncDispose]()
      const gone = await failure(
        connect('https://mcp.example/mcp', { client, proxy: `http://me:HUSH-HUSH@127.0.0.1:${port}` }),
      )
      expect(gone.message).toBe(
        `Connection refused by 127.0.0.1:${port} (ECONNREFUSED) through the proxy 127.0.0.1:${port}: nothing listens there`,
      )
      for (const proxyUrl of [
        'socks5://me:HUSH-HUSH@127.0.0.1:1',
        'http://me:HUSH-HUSH@[',
        'http://me:%zz-HUSH-HUSH@x',
      ])
        expect((await failure(connect('https://mcp.example/mcp', { client, proxy: proxyUrl }))).code).toBe('refused')
      for (const error of [denied, refused, gone]) expect(inspectDeep(error)).not.toContain('HUSH-HUSH')
    })

    test('a proxy that itself speaks TLS', async () => {
      await using secure = await startTls(['mcp.example'])
      await using proxy = await startProxy({ tls: authority.issue(), hosts: { 'mcp.example': secure.port } })
      await using session = await connect('https://mcp.example/mcp', { client, proxy: proxy.url, ca: authority.cert })
      expect(textOf(await session.callTool('x'))).toBe('mcp.example')
      expect(proxy.requests.every(({ method }) => method === 'CONNECT')).toBe(true)
    })

    test('a proxy that says nothing, or talks before the server does', async () => {
      await using silent = await startTcp(() => {})
      const session = connect(
        'https://mcp.example/mcp',
        { client, proxy: `http://127.0.0.1:${silent.port}` },
        { startupTimeoutMs: 200 },
      )
      expect(await failure(session)).toMatchObject({ code: 'timed-out' })
      await using chatty = await startTcp((socket) =>
        socket.once('data', () =>
          socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{}'),
        ),
      )
      expect(
        await failure(connect('https://mcp.example/mcp', { client, proxy: `http://127.0.0.1:${chatty.port}` })),
      ).toMatchObject({ code: 'unreachable', details: { sent: false } })
    })

    test('the tunnel is kept for further calls', async () => {
      await using secure = await startTls(['mcp.example'])
      await using proxy = await startProxy({ hosts: { 'mcp.example': secure.port } })
      await using session = await connect('https://mcp.example/mcp', { client, proxy: proxy.url, ca: authority.cert })
      for (let n = 0; n < 5; n++) await session.callTool('x')
      await until(() => secure.seen.length >= 8)
      expect(proxy.requests.length).toBeLessThanOrEqual(3)
    })

    test('a server that lets the proxy answer with an MCP error is told apart', async () => {
      await using plain = await startHttp((message, response) =>
        rpcError(response, 400, message.id, { code: -32000, message: 'go away' }),
      )
      await using proxy = await startProxy({ hosts: { 'plain.example': plain.port } })
      expect(
        await failure(connect('http://plain.example/mcp', { client, proxy: proxy.url, transport: 'streamable' })),
      ).toMatchObject({ code: 'remote' })
    })
  })

function inspectDeep(error: Error): string {
  const parts = [error.message, String(error.stack), JSON.stringify(error)]
  if (error.cause instanceof Error) parts.push(inspectDeep(error.cause))
  return parts.join('\n')
}

verifies('wire.153', () => {
  const of = (url: string, env: Record<string, string>, setting = 'environment'): string | undefined => {
    const choice = chooseProxy(new URL(url), setting, env)
    return choice === undefined ? undefined : `${choice.secure ? 'https' : 'http'} ${choice.name}`
  }
  const both = { HTTP_PROXY: 'http://up:1', HTTPS_PROXY: 'https://secure' }
  const rows: [string, Record<string, string>, string | undefined, string?][] = [
    ['http://a.example/', both, 'http up:1'],
    ['https://a.example/', both, 'https secure:443'],
    ['https://a.example/', { HTTP_PROXY: 'http://up:1' }, undefined],
    ['https://a.example/', { ALL_PROXY: 'all:3128' }, 'http all:3128'],
    ['https://a.example/', { https_proxy: 'low:1', HTTPS_PROXY: 'up:1' }, 'http low:1'],
    ['http://a.example/', { HTTP_PROXY: 'up:1', REQUEST_METHOD: 'GET' }, undefined],
    ['http://a.example/', { http_proxy: 'low:1', REQUEST_METHOD: 'GET' }, 'http low:1'],
    ['http://a.example/', { ...both, http_proxy: '' }, undefined],
    ['http://a.example/', { ...both, NO_PROXY: '*' }, undefined],
    ['http://a.example/', { ...both, NO_PROXY: 'b.example, A.EXAMPLE' }, undefined],
    ['http://x.a.example/', { ...both, no_proxy: 'a.example' }, undefined],
    ['http://x.a.example/', { ...both, no_proxy: '.a.example' }, undefined],
    ['http://x.a.example/', { ...both, no_proxy: '*.a.example' }, undefined],
    ['http://xa.example/', { ...both, no_proxy: 'a.example' }, 'http up:1'],
    ['http://a.example.evil/', { ...both, no_proxy: 'a.example' }, 'http up:1'],
    ['http://a.example:8080/', { ...both, no_proxy: 'a.example:8080' }, undefined],
    ['http://a.example/', { ...both, no_proxy: 'a.example:8080' }, 'http up:1'],
    ['http://a.example./', { ...both, no_proxy: 'a.example' }, undefined],
    ['http://10.0.0.1/', { ...both, no_proxy: '10.0.0.1' }, undefined],
    ['http://110.0.0.1/', { ...both, no_proxy: '0.0.1' }, 'http up:1'],
    ['http://[2001:db8::1]/', { ...both, no_proxy: '[2001:db8::1]' }, undefined],
    ['http://[2001:db8::1]:90/', { ...both, no_proxy: '[2001:db8::1]:90' }, undefined],
    ['http://[2001:db8::1]/', { ...both, no_proxy: '2001:db8::1' }, undefined],
    ['http://localhost:1/', both, undefined],
    ['http://x.localhost:1/', both, undefined],
    ['http://127.9.9.9:1/', both, undefined],
    ['http://[::1]:1/', both, undefined],
    ['http://127.0.0.1/', {}, 'http mine:80', 'mine'],
    ['http://a.example/', both, undefined, 'none'],
    ['http://a.example/', { ...both, no_proxy: '*' }, 'http mine:80', 'http://u:p@mine'],
  ]
  for (const [url, env, expected, setting] of rows)
    expect(of(url, env, setting), JSON.stringify([url, env])).toBe(expected)
  expect(chooseProxy(new URL('http://a.example'), 'http://me:p%40ss@p', {})?.authorization).toBe(
    `Basic ${Buffer.from('me:p@ss').toString('base64')}`,
  )
})
