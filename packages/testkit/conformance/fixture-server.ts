// Serves the fixture over HTTP on a free port of the loopback interface and prints `READY PORT`.
// Sessions for clients of 2025-11-25 and older, stateless for 2026-07-28. `--sessions none`: the older clients get no sessions either; `--era modern`: they are refused.
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import {
  localhostHostValidation,
  localhostOriginValidation,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
  toWebRequest,
} from '@modelcontextprotocol/node'
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server'
import { createFixture } from './fixture-factory.ts'

const { values: options } = parseArgs({
  options: {
    sessions: { type: 'string', default: 'stateful' },
    era: { type: 'string', default: 'both' },
    port: { type: 'string', default: '0' },
  },
})

/** The adapter's own type, which `exactOptionalPropertyTypes` sets apart from Node's. */
type RequestLike = Parameters<typeof serveModern>[0]

const BODY_BYTES_MAX = 4 * 1024 * 1024
const fixture = createFixture()
const handler = createMcpHandler(fixture.build, {
  legacy: options.sessions === 'none' && options.era === 'both' ? 'stateless' : 'reject',
})
fixture.notifier = handler.notify
const serveModern = toNodeHandler(handler)
const sessions = new Map<string, NodeStreamableHTTPServerTransport>()
const hasValidHost = localhostHostValidation()
const hasValidOrigin = localhostOriginValidation()

async function serveSession(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
  const id = request.headers['mcp-session-id']
  const known = typeof id === 'string' ? sessions.get(id) : undefined
  const transport = known ?? (id === undefined ? await openSession() : undefined)
  if (transport !== undefined) return transport.handleRequest(request, response, body)
  const error = { jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } }
  response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(error))
}

async function openSession(): Promise<NodeStreamableHTTPServerTransport> {
  const server = fixture.build()
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => {
      sessions.set(id, transport)
      fixture.live.add(server)
    },
    onsessionclosed: (id) => {
      sessions.delete(id)
      fixture.live.delete(server)
    },
  })
  await server.connect(transport)
  return transport
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (!hasValidHost(request, response) || !hasValidOrigin(request, response)) return
  const body = request.method === 'POST' ? await read(request) : undefined
  const isSessionEra =
    options.sessions !== 'none' &&
    options.era === 'both' &&
    (await isLegacyRequest(await toWebRequest(request as RequestLike, body)))
  if (isSessionEra) return serveSession(request, response, body)
  return serveModern(request as RequestLike, response, body)
}

async function read(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > BODY_BYTES_MAX) throw new Error('The body is too large')
    parts.push(part)
  }
  return JSON.parse(Buffer.concat(parts).toString())
}

const server = createServer((request, response) => {
  serve(request, response).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`)
    if (!response.headersSent) response.writeHead(400)
    response.end()
  })
})
server.listen(Number(options.port), '127.0.0.1', () => {
  process.stdout.write(`READY ${(server.address() as AddressInfo).port}\n`)
})
process.once('SIGTERM', () => process.exit(0))
