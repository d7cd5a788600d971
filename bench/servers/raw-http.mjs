// Workload server over streamable HTTP, written by hand; prints `READY PORT`. Flags: common.mjs, and `--mode stateless|stateful --sse`.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { answer, makeTools, readFlags } from './common.mjs'

const flags = readFlags()
const tools = makeTools(flags)
const world = { flags, tools, list: flags.page > 0 ? undefined : JSON.stringify({ tools }) }
const sessions = new Set()

async function post(request, response, body) {
  const message = JSON.parse(body)
  const headers = {}
  if (flags.mode === 'stateful') {
    if (message.method === 'initialize') {
      headers['mcp-session-id'] = randomUUID()
      sessions.add(headers['mcp-session-id'])
    } else if (!sessions.has(request.headers['mcp-session-id'])) return response.writeHead(404).end()
  }
  if (message.id === undefined) return response.writeHead(202, headers).end()
  const text = await answer(message, world)
  if (flags.sse) {
    response.writeHead(200, { ...headers, 'content-type': 'text/event-stream' })
    return response.end(`event: message\ndata: ${text}\n\n`)
  }
  return response
    .writeHead(200, { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text)
}

const server = createServer((request, response) => {
  if (request.method === 'DELETE') sessions.delete(request.headers['mcp-session-id'])
  if (request.method !== 'POST') return response.writeHead(request.method === 'DELETE' ? 200 : 405).end()
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () =>
    post(request, response, parts.length === 1 ? parts[0].toString() : Buffer.concat(parts).toString()),
  )
})
server.keepAliveTimeout = 60_000
server.listen(flags.port, '127.0.0.1', () => process.stdout.write(`READY ${server.address().port}\n`))
process.on('SIGTERM', () => process.exit(0))
