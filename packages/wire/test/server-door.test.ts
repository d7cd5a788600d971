// The way in, from outside: raw requests against a real endpoint.

import { verifies } from '@convoke/testkit'
import { createToken, EndpointError, type HttpEndpointOptions, serveHttp } from '@convoke/wire/server'
import { describe, expect, test } from 'vitest'
import { application, modern, openSession, Recorder, raw, rpc, Stream, send, serve } from './server-fixture.ts'

const PING = rpc('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'x', version: '1' },
})
const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
const post = (port: number, lines: readonly string[], { target = '/mcp', body = PING } = {}): Promise<string> =>
  raw(
    port,
    `POST ${target} HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join('')}content-type: application/json\r\naccept: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  )

describe('Host', () => {
  verifies('security.060', async () => {
    await using served = await serve()
    const { port } = served
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`])
      expect(statusOf(await post(port, [`Host: ${host}`])), host).toBe(200)
    const foreign = [
      `evil.example:${port}`,
      'evil.example',
      '127.0.0.1',
      `127.0.0.1:${port + 1}`,
      `localhost:${port}.`,
      `localhost.:${port}`,
      `LOCALHOST:${port}`,
      `127.1:${port}`,
      `0x7f.1:${port}`,
      `2130706433:${port}`,
      `[::1]:${port}`,
      `[::ffff:127.0.0.1]:${port}`,
      `127.0.0.1:${port}/mcp`,
      `user@127.0.0.1:${port}`,
      '',
    ]
    for (const host of foreign) expect([400, 403], host).toContain(statusOf(await post(port, [`Host: ${host}`])))
    for (const path of ['/', '/health', '/metrics', '/mcp', '/callback'])
      expect((await send(port, { method: 'GET', path, headers: { host: `evil.example:${port}` } })).status, path).toBe(
        403,
      )
    const good = `Host: 127.0.0.1:${port}`
    expect(statusOf(await post(port, [good, 'Host: evil.example']))).toBe(400)
    expect(statusOf(await post(port, ['Host: evil.example', good]))).toBe(400)
    expect(statusOf(await post(port, []))).toBe(400)
    for (const target of [
      'http://evil.example/mcp',
      `http://127.0.0.1:${port}/mcp`,
      '*',
      '//evil.example/mcp',
      '\\mcp',
    ])
      expect([400, 403, 404], target).toContain(statusOf(await post(port, [good], { target })))
    expect(served.endpoint.counts.sessions).toBe(2)
  })

  verifies('security.063', async () => {
    await using served = await serve({ hostname: '::1' })
    const { port } = served
    expect(served.endpoint.url).toBe(`http://[::1]:${port}/mcp`)
    const body = PING
    const ask = (host: string): Promise<string> =>
      raw(
        port,
        `POST /mcp HTTP/1.1\r\nHost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
        undefined,
        '::1',
      )
    expect(statusOf(await ask(`[::1]:${port}`))).toBe(200)
    expect(statusOf(await ask(`localhost:${port}`))).toBe(200)
    for (const host of [
      `[::ffff:127.0.0.1]:${port}`,
      `[0:0:0:0:0:0:0:1]:${port}`,
      `127.0.0.1:${port}`,
      `::1:${port}`,
      '[::1]',
    ])
      expect([400, 403], host).toContain(statusOf(await ask(host)))
  })

  test('an allowed name is served with and without the bound port', async () => {
    await using served = await serve({ allowedHosts: ['tools.example', 'other.example:9'] })
    const { port } = served
    for (const host of ['tools.example', `tools.example:${port}`, 'other.example:9'])
      expect(statusOf(await post(port, [`Host: ${host}`])), host).toBe(200)
    for (const host of ['tools.example:1', 'other.example', 'a.tools.example'])
      expect(statusOf(await post(port, [`Host: ${host}`])), host).toBe(403)
  })
})

describe('Origin and site', () => {
  verifies('security.061', async () => {
    await using served = await serve({ allowedOrigins: ['https://app.example'] })
    const { port } = served
    const foreign = [
      'http://evil.example',
      'null',
      `http://localhost.evil.example:${port}`,
      `http://127.0.0.1:${port + 1}`,
      `https://127.0.0.1:${port}`,
      'https://app.example.evil',
      '',
    ]
    for (const origin of foreign)
      expect(statusOf(await post(port, [`Host: 127.0.0.1:${port}`, `Origin: ${origin}`])), origin).toBe(403)
    expect(served.endpoint.counts.sessions).toBe(0)
    expect(served.recorder.calls).toEqual([])
    for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`, 'https://app.example'])
      expect(statusOf(await post(port, [`Host: 127.0.0.1:${port}`, `Origin: ${origin}`])), origin).toBe(200)
  })

  verifies('security.062', async () => {
    await using served = await serve()
    const { port, recorder } = served
    const session = await openSession(port)
    const call = rpc('tools/call', { name: 'echo', arguments: {} })
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json, text/plain',
      'application/jsonp',
      'application/json; charset=latin1',
      '',
    ])
      expect((await session.post(call, { 'content-type': type })).status, type).toBe(415)
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'application/json;charset=UTF-8',
      'Application/JSON',
    ])
      expect((await session.post(call, { 'content-type': type })).status, type).toBe(200)
    for (const site of ['cross-site', 'same-site', 'cross-site, none'])
      expect((await session.post(call, { 'sec-fetch-site': site })).status, site).toBe(403)
    for (const site of ['none', 'same-origin'])
      expect((await session.post(call, { 'sec-fetch-site': site })).status, site).toBe(200)
    const answers = [
      await session.post(call),
      await send(port, {
        method: 'OPTIONS',
        headers: { origin: 'http://evil.example', 'access-control-request-method': 'POST' },
      }),
    ]
    for (const { headers } of answers)
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    const before = recorder.calls.length
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'TRACE'])
      for (const path of ['/mcp', '/health', '/'])
        await send(port, { method, path, headers: { accept: 'application/json' } }).catch(() => undefined)
    expect(recorder.calls.length).toBe(before)
    expect(served.endpoint.counts).toEqual({ sessions: 1, calls: 0, parkedCalls: 0, listeners: 0 })
  })

  test('a page of an origin that was allowed by name may call and read', async () => {
    await using served = await serve({ allowedOrigins: ['https://app.example'] })
    const { port } = served
    const origin = { origin: 'https://app.example' }
    const preflight = await send(port, {
      method: 'OPTIONS',
      headers: { ...origin, 'access-control-request-method': 'POST' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers['access-control-allow-origin']).toBe('https://app.example')
    const answer = await send(port, { body: PING, headers: { ...origin, 'sec-fetch-site': 'cross-site' } })
    expect([
      answer.status,
      answer.headers['access-control-allow-origin'],
      answer.headers['access-control-expose-headers'],
    ]).toEqual([200, 'https://app.example', 'mcp-session-id'])
  })
})

describe('tokens', () => {
  const token = createToken()
  const locked: Partial<HttpEndpointOptions> = { tokens: [{ name: 'ada', token }] }
  const bearer = { authorization: `Bearer ${token}` }

  verifies('security.064', async () => {
    await using served = await serve(locked)
    const { port, recorder } = served
    const paths = [
      '/mcp',
      '//mcp',
      '/health/../mcp',
      '/health/%2e%2e/mcp',
      '/health;/mcp',
      '/health%2f..%2fmcp',
      '/mcp/',
      '/mcp%00',
      '/MCP',
      '/mcp?x',
      '/mcp#x',
      '/./mcp',
      '/%6dcp',
      '/health?',
      '/health/',
      '/Health',
    ]
    const tricks = [
      {},
      { 'x-original-url': '/mcp' },
      { 'x-rewrite-url': '/mcp' },
      { 'x-http-method-override': 'POST' },
      { 'x-forwarded-host': `127.0.0.1:${port}` },
    ]
    for (const path of paths)
      for (const headers of tricks) {
        const answer = await send(port, { path, headers, body: PING })
        expect([400, 401, 404], path).toContain(answer.status)
        expect(answer.text).not.toContain('fixture')
      }
    for (const method of ['HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE', 'GET'])
      for (const path of ['/mcp', '/', '/metrics'])
        expect([400, 401, 404, 405], `${method} ${path}`).toContain((await send(port, { method, path })).status)
    for (const bytes of [
      'CONNECT /mcp HTTP/1.1\r\nHost: x\r\n\r\n',
      'BREW /mcp HTTP/1.1\r\nHost: x\r\n\r\n',
      `GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\ncontent-length: 2\r\n\r\n{}`,
    ])
      expect(await raw(port, bytes, '\r\n\r\n')).not.toContain('200')
    expect(recorder.calls).toEqual([])
    expect(served.endpoint.counts.sessions).toBe(0)
    expect((await send(port, { method: 'GET', path: '/health' })).text).toBe('ok')
  })

  verifies('security.066', async () => {
    const open = (options: Partial<HttpEndpointOptions>): Promise<unknown> =>
      serveHttp({ application: application(new Recorder()), ...options })
    const codeOf = (error: unknown): string => (error instanceof EndpointError ? error.code : String(error))
    for (const hostname of ['0.0.0.0', '::', '192.0.2.1', 'tools.example', '128.0.0.1', '127.0.0.1.evil.example'])
      expect(await open({ hostname }).catch(codeOf), hostname).toBe('token-required')
    for (const weak of [
      '',
      'changeme',
      'x'.repeat(31),
      'x'.repeat(64),
      `${'abcdefgh'.repeat(4)} `,
      `${'abcdefgh'.repeat(4)}\n`,
    ])
      expect(await open({ tokens: [{ name: 'weak', token: weak }] }).catch(codeOf), JSON.stringify(weak)).toBe(
        'token-weak',
      )
    const endpoint = await serveHttp({
      application: application(new Recorder()),
      hostname: '0.0.0.0',
      tokens: [{ name: 'ada', token: createToken() }],
    })
    await endpoint.close()
  })

  verifies('security.067', async () => {
    await using served = await serve(locked)
    const { port } = served
    const refused: Record<string, string>[] = [
      {},
      { authorization: token },
      { authorization: `Bearer  ${token}` },
      { authorization: `Bearer ${token}x` },
      { authorization: `Bearer ${token.slice(0, -1)}` },
      { authorization: `Basic ${token}` },
      { authorization: `Bearer ${token}, Bearer ${token}` },
      { cookie: `token=${token}` },
      { 'x-api-key': token },
      { 'proxy-authorization': `Bearer ${token}` },
    ]
    for (const headers of refused) {
      const answer = await send(port, { headers, body: PING })
      expect([answer.status, answer.headers['www-authenticate']], JSON.stringify(Object.keys(headers))).toEqual([
        401,
        'Bearer realm="convoke"',
      ])
      expect(answer.text).not.toContain(token)
    }
    for (const path of [`/mcp?token=${token}`, `/mcp?access_token=${token}`])
      expect((await send(port, { path, body: PING })).status).toBe(401)
    expect((await send(port, { body: rpc('initialize', { token }) })).status).toBe(401)
    expect(
      statusOf(
        await post(port, [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${token}`, 'Authorization: Bearer x']),
      ),
    ).toBe(400)
    for (const scheme of ['Bearer', 'bearer'])
      expect((await send(port, { headers: { authorization: `${scheme} ${token}` }, body: PING })).status).toBe(200)
  })

  verifies('security.068', async () => {
    await using served = await serve(locked)
    const { port } = served
    const statuses = new Map<number, number>()
    for (let attempt = 0; attempt < 150; attempt++) {
      const { status } = await send(port, { headers: { authorization: `Bearer ${createToken()}` }, body: PING })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect([...statuses]).toEqual([
      [401, 100],
      [429, 50],
    ])
    expect((await send(port, { headers: bearer, body: PING })).status).toBe(200)
  })

  verifies('security.069', async () => {
    const other = createToken()
    await using served = await serve({ tokens: [...(locked.tokens ?? []), { name: 'bob', token: other }] })
    const { port, recorder } = served
    const ada = await openSession(port, { headers: bearer, capabilities: { elicitation: {} } })
    const stolen = { ...ada.headers, authorization: `Bearer ${other}` }
    const nobody = { ...ada.headers, authorization: `Bearer ${other}`, 'mcp-session-id': 'A'.repeat(32) }
    const asking = new Stream(port, {
      headers: ada.headers,
      body: rpc('tools/call', { name: 'ask', arguments: {} }, 'q'),
    })
    await asking.until(({ events }) => events.length > 0)
    const answer = JSON.stringify({
      jsonrpc: '2.0',
      id: asking.events[0]?.['id'],
      result: { action: 'accept', content: {} },
    })
    for (const body of [
      rpc('tools/list'),
      answer,
      JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } }),
    ]) {
      const [theirs, none] = [await send(port, { headers: stolen, body }), await send(port, { headers: nobody, body })]
      expect([theirs.status, theirs.text]).toEqual([404, none.text])
    }
    for (const headers of [
      { ...stolen, accept: 'text/event-stream' },
      { ...stolen, accept: 'text/event-stream', 'last-event-id': '1_0' },
    ])
      expect((await send(port, { method: 'GET', headers })).status).toBe(404)
    expect((await send(port, { method: 'DELETE', headers: stolen })).status).toBe(404)
    expect((await send(port, { method: 'DELETE', headers: { 'mcp-session-id': ada.id } })).status).toBe(401)
    expect(asking.isClosed).toBe(false)
    expect((await ada.post(answer)).status).toBe(202)
    await asking.until(({ isClosed }) => isClosed)
    expect(asking.events.at(-1)).toMatchObject({ id: 'q', result: {} })
    expect(recorder.closed).toEqual([])
  })
})

verifies('security.070', async () => {
  await using served = await serve()
  const ids = await Promise.all(Array.from({ length: 50 }, async () => (await openSession(served.port)).id))
  expect(new Set(ids).size).toBe(50)
  for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{32}$/) // 192 bits
  // No position is fixed or counts up.
  for (let at = 0; at < 32; at++) expect(new Set(ids.map((id) => id[at])).size).toBeGreaterThan(10)
})

verifies('security.065', async () => {
  await using served = await serve()
  const { port, recorder } = served
  const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n`
  const smuggled = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n'
  for (const lines of [
    'content-length: 5\r\ntransfer-encoding: chunked\r\n',
    'transfer-encoding: chunked\r\ncontent-length: 5\r\n',
    'content-length: 5\r\ncontent-length: 6\r\n',
    'transfer-encoding: chunked, identity\r\n',
    'transfer-encoding: xchunked\r\n',
    'content-length: +5\r\n',
    'content-length: 5, 5\r\n',
  ]) {
    const seen = await raw(port, `${head}${lines}\r\n0\r\n\r\n${smuggled}`)
    expect(statusOf(seen), lines).toBe(400)
    expect(seen.match(/HTTP\/1\.1/g)?.length, lines).toBe(1)
  }
  expect(recorder.calls).toEqual([])
})

verifies('security.081', async () => {
  await using served = await serve()
  for (const encoding of ['br', 'gzip', 'zstd', 'deflate', 'identity', 'x'])
    expect(
      (await send(served.port, { headers: { 'content-encoding': encoding }, body: 'garbage' })).status,
      encoding,
    ).toBe(415)
  expect((await modern(served.port, 'tools/list')).status).toBe(200)
})
