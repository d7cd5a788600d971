// Serves the SDK v1 server over HTTP and prints `READY PORT`. `--sessions stateful|stateless --answers json|sse`
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { createSdk1Server } from './sdk1-server.ts'

const { values: options } = parseArgs({
  options: { sessions: { type: 'string', default: 'stateful' }, answers: { type: 'string', default: 'sse' } },
})
const enableJsonResponse = options.answers === 'json'
const sessions = new Map<string, StreamableHTTPServerTransport>()

async function open(transport: StreamableHTTPServerTransport): Promise<StreamableHTTPServerTransport> {
  // The SDK's own classes do not agree with each other under `exactOptionalPropertyTypes`.
  await createSdk1Server().connect(transport as Transport)
  return transport
}

async function serveStateless(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST') return void response.writeHead(405).end()
  const transport = await open(new StreamableHTTPServerTransport({ enableJsonResponse }))
  response.once('close', () => void transport.close())
  return transport.handleRequest(request, response)
}

async function serveSession(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const id = request.headers['mcp-session-id']
  if (typeof id === 'string' && !sessions.has(id)) return void response.writeHead(404).end()
  const known = typeof id === 'string' ? sessions.get(id) : undefined
  if (known !== undefined) return known.handleRequest(request, response)
  const transport = await open(
    new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      enableJsonResponse,
      onsessioninitialized: (created) => void sessions.set(created, transport),
      onsessionclosed: (closed) => void sessions.delete(closed),
    }),
  )
  return transport.handleRequest(request, response)
}

const serve = options.sessions === 'stateless' ? serveStateless : serveSession
const server = createServer((request, response) => {
  serve(request, response).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`)
    response.destroy()
  })
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`READY ${(server.address() as AddressInfo).port}\n`)
})
process.once('SIGTERM', () => process.exit(0))
