// Servers that others wrote, over HTTP: SDK v1, SDK v2 in both eras, server-everything. And what they tell on their own.

import { startEverythingHttp, startSdk1Http, startSdk2Http, verifies } from '@convoke/testkit'
import type { Session, SessionOptions } from '@convoke/wire'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { describe, expect, test } from 'vitest'
import { createFixture } from '../../testkit/conformance/fixture-factory.ts'
import type { JsonObject } from '../src/protocol.ts'
import {
  CLIENTS,
  type Client,
  connect,
  event,
  failure,
  json,
  legacy,
  modern,
  openStream,
  rpcError,
  startHttp,
  startListener,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

const answering: Partial<SessionOptions> = {
  capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  handlers: {
    'elicitation/create': async () => ({
      action: 'accept',
      content: { name: 'Ada', username: 'ada', email: 'ada@example.org' },
    }),
    'sampling/createMessage': async () => ({
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: 'sampled' },
    }),
    'roots/list': async () => ({ roots: [{ uri: 'file:///tmp' }] }),
  },
}

// Real servers take a moment to start: each is started once, and both clients visit it.

verifies(
  'wire.180',
  async () => {
    for (const sessions of ['stateful', 'stateless'] as const)
      for (const answers of ['sse', 'json'] as const) {
        await using server = await startSdk1Http({ sessions, answers })
        for (const client of CLIENTS) await visitSdk1(server.url, client, answers === 'sse', sessions === 'stateful')
      }
  },
  60_000,
)

async function visitSdk1(url: string, client: Client, streams: boolean, hasSessions: boolean): Promise<void> {
  const steps: unknown[] = []
  await using session = await connect(url, { client }, answering)
  expect(session.verdict).toEqual({ era: 'legacy', version: '2025-11-25' })
  expect((await session.list('tools')).items.map(({ name }) => name)).toEqual(['echo', 'add', 'ask', 'steps'])
  expect(textOf(await session.callTool('echo', { text: 'größe' }))).toBe('größe')
  expect((await session.callTool('add', { a: 1, b: 2 })).structuredContent).toEqual({ sum: 3 })
  if (streams && hasSessions) expect(textOf(await session.callTool('ask'))).toContain('accept')
  await session.callTool('steps', { count: 5 }, { onProgress: ({ progress }) => steps.push(progress) })
  if (streams) expect(steps).toEqual([1, 2, 3, 4, 5])
  expect((await session.request('resources/read', { uri: 'sdk1://one' }))['contents']).toHaveLength(1)
}

verifies(
  'wire.181',
  async () => {
    const visits = [
      [{ era: 'modern' }, 'auto', 'modern'],
      [{ era: 'both' }, 'auto', 'modern'],
      [{ era: 'both' }, 'legacy', 'legacy'],
      [{ era: 'both', sessions: 'none' }, 'legacy', 'legacy'],
    ] as const
    for (const [options, era, expected] of visits) {
      await using server = await startSdk2Http(options)
      for (const client of CLIENTS) {
        await using session = await connect(server.url, { client }, { ...answering, era })
        expect(session.era).toBe(expected)
        await visitSdk2(session)
        if (!('sessions' in options) && expected === 'legacy')
          expect(textOf(await session.callTool('test_sampling', { prompt: 'x' }))).toContain('sampled')
      }
    }
  },
  60_000,
)

async function visitSdk2(session: Session): Promise<void> {
  expect((await session.list('tools')).items.length).toBeGreaterThan(5)
  expect(textOf(await session.callTool('test_simple_text'))).toContain('simple text')
  const steps: unknown[] = []
  await session.callTool('test_tool_with_progress', {}, { onProgress: ({ progress }) => steps.push(progress) })
  expect(steps).toEqual([0, 50, 100])
  const unknown = await failure(session.request('no/such-method'))
  expect(unknown).toMatchObject({ code: 'remote', details: { rpc: { code: -32601 } } })
}

test('server-everything', async () => {
  await using server = await startEverythingHttp()
  for (const client of CLIENTS) {
    await using session = await connect(server.url, { client }, answering)
    expect(session.era).toBe('legacy')
    expect((await session.list('tools')).items.length).toBeGreaterThan(5)
    expect(textOf(await session.callTool('echo', { message: 'größe' }))).toBe('Echo: größe')
    const progress: unknown[] = []
    const steps = { idleTimeoutMs: 5_000, onProgress: (one: JsonObject) => progress.push(one['progress']) }
    await session.callTool('trigger-long-running-operation', { duration: 1, steps: 4 }, steps)
    expect(progress).toEqual([1, 2, 3, 4])
    expect(textOf(await session.callTool('trigger-sampling-request', { prompt: 'x', maxTokens: 10 }))).toContain(
      'sampled',
    )
    const controller = new AbortController()
    const call = failure(
      session.callTool('trigger-long-running-operation', { duration: 30, steps: 1 }, { signal: controller.signal }),
    )
    setTimeout(() => controller.abort(), 100)
    expect(await call).toMatchObject({ code: 'cancelled' })
    expect(textOf(await session.callTool('echo', { message: 'on' }))).toBe('Echo: on')
  }
}, 60_000)

for (const client of CLIENTS)
  describe(client, () => {
    verifies('wire.182', async () => {
      const handler = createMcpHandler(createFixture().build, { legacy: 'reject', keepAliveMs: 50 })
      const serveModern = toNodeHandler(handler)
      await using server = await startListener((request, response) => void serveModern(request as never, response))
      const heard: string[] = []
      let resumed = 0
      await using session = await connect(server.url, { client })
      const subscription = await session.subscribe(
        { toolsListChanged: true, resourceSubscriptions: ['test://watched-resource'] },
        {
          onNotification: (method, { uri }) => heard.push(uri === undefined ? method : `${method} ${String(uri)}`),
          onResumed: () => resumed++,
        },
      )
      expect(subscription.honored).toEqual({
        toolsListChanged: true,
        resourceSubscriptions: ['test://watched-resource'],
      })
      handler.notify.toolsChanged()
      handler.notify.promptsChanged() // nobody asked
      handler.notify.resourceUpdated('test://watched-resource')
      handler.notify.resourceUpdated('test://other')
      await until(() => heard.length === 2)
      server.closeConnections()
      await until(() => resumed === 1)
      handler.notify.toolsChanged()
      await until(() => heard.length === 3)
      expect(heard).toEqual([
        'notifications/tools/list_changed',
        'notifications/resources/updated test://watched-resource',
        'notifications/tools/list_changed',
      ])
      await subscription.close()
      expect(await subscription.closed).toBe('local')
      handler.notify.toolsChanged()
      expect(textOf(await session.callTool('test_simple_text'))).toContain('simple text')
      expect(heard).toHaveLength(3)
      await handler.close()
    })

    test('a subscription that is refused for want of credentials ends, and asks nobody again', async () => {
      let allows = true
      await using server = await startHttp(
        modern((message, response) => {
          if (!allows) return response.writeHead(401).end()
          openStream(response)
          const _meta = { 'io.modelcontextprotocol/subscriptionId': message.id }
          return response.write(
            event({
              jsonrpc: '2.0',
              method: 'notifications/subscriptions/acknowledged',
              params: { _meta, notifications: { toolsListChanged: true } },
            }),
          )
        }),
      )
      await using session = await connect(server.url, { client })
      await using subscription = await session.subscribe({ toolsListChanged: true })
      allows = false
      server.closeConnections()
      expect(await subscription.closed).toBe('remote')
      expect(server.log).toEqual(['server/discover', 'subscriptions/listen', 'subscriptions/listen'])
    })

    verifies('wire.183', async () => {
      let streams = 0
      let stream = (_text: string): void => {}
      let sessions = 0
      await using server = await startHttp(
        (message, response, request) => {
          if (message.method === 'initialize') sessions++
          if (message.method === 'tools/call' && request.headers['mcp-session-id'] !== `s${sessions}`)
            return response.writeHead(404).end()
          return legacy(
            (one, response_) => json(response_, one, one.method === 'tools/call' ? textResult('fine') : {}),
            { capabilities: { resources: { subscribe: true } } },
            { 'mcp-session-id': `s${sessions}` },
          )(message, response, request)
        },
        (_message, response, { verb }) => {
          if (verb !== 'GET') return response.writeHead(200).end()
          streams++
          openStream(response)
          stream = (text) => void response.write(text)
          return undefined
        },
      )
      const heard: unknown[] = []
      await using session = await connect(server.url, { client })
      await using _subscription = await session.subscribe(
        { resourceSubscriptions: ['a:1'] },
        { onNotification: (_method, { uri }) => heard.push(uri) },
      )
      await until(() => streams === 1)
      stream(event({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:1' } }))
      stream(event({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'b:1' } }))
      await until(() => heard.length === 1)
      sessions = 7 // the server was started anew
      expect(textOf(await session.callTool('x'))).toBe('fine')
      await until(() => streams === 2 && server.log.filter((method) => method === 'resources/subscribe').length === 2)
      stream(event({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:1' } }))
      await until(() => heard.length === 2)
      expect(heard).toEqual(['a:1', 'a:1'])
    })

    verifies('wire.190', async () => {
      const annotated = (name: string, schema: JsonObject): JsonObject => ({
        name,
        inputSchema: { type: 'object', properties: schema },
      })
      const tools = [
        annotated('good', {
          region: { type: 'string', 'x-mcp-header': 'Region' },
          deep: { type: 'object', properties: { n: { type: 'integer', 'x-mcp-header': 'N' } } },
          sure: { type: 'boolean', 'x-mcp-header': 'Sure' },
        }),
        annotated('bad', { a: { type: 'string', 'x-mcp-header': 'a b' } }),
      ]
      let mismatches = 0
      await using server = await startHttp(
        modern((message, response, { headers }) => {
          if (message.method === 'tools/list')
            return json(response, message, { resultType: 'complete', tools, ttlMs: 0, cacheScope: 'private' })
          if (message.params?.arguments?.['region'] !== undefined && headers['mcp-param-region'] === undefined) {
            mismatches++
            return rpcError(response, 400, message.id, { code: -32020, message: 'Header mismatch' })
          }
          return json(response, message, { resultType: 'complete', content: [] })
        }),
      )
      await using session = await connect(server.url, { client })
      // Before the list is known the header cannot be there, and the refusal says what to do.
      expect(await failure(session.callTool('good', { region: 'x' }))).toMatchObject({
        code: 'remote',
        details: { rpc: { code: -32020 }, status: 400 },
      })
      const { items, rejected } = await session.list('tools')
      expect([items.map(({ name }) => name), rejected.map(({ name }) => name)]).toEqual([['good'], ['bad']])
      await session.callTool('good', { region: 'Hello, 世界', deep: { n: 2 ** 53 }, sure: false })
      const last = server.seen.at(-1)?.headers
      expect(last).toMatchObject({
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'good',
        'mcp-param-region': '=?base64?SGVsbG8sIOS4lueVjA==?=',
        'mcp-param-sure': 'false',
      })
      expect(last?.['mcp-param-n']).toBeUndefined()
      await session.callTool('größe', {}, { headers: { 'Mcp-Param-Region': 'passed-on' } })
      expect(server.seen.at(-1)?.headers).toMatchObject({
        'mcp-name': '=?base64?Z3LDtsOfZQ==?=',
        'mcp-param-region': 'passed-on',
      })
      session.notify('notifications/progress', { progress: 1 })
      await until(() => server.log.includes('notifications/progress'))
      expect(server.seen.at(-1)?.headers).toMatchObject({
        'mcp-method': 'notifications/progress',
        'mcp-protocol-version': '2026-07-28',
      })
      expect(mismatches).toBe(1)
    })
  })
