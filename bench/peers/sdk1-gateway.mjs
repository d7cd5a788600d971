// The gateway that one writes in an afternoon on SDK v1: a client for each server, a server and a transport for each session. `node sdk1-gateway.mjs PORT CONFIG`
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [port, file] = process.argv.slice(2)
const { mcpServers } = JSON.parse(readFileSync(file, 'utf8'))
const clients = new Map()
const tools = []
const sessions = new Map()

async function openUpstream([name, { command, args }]) {
  const client = new Client({ name: 'gateway', version: '1' })
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }))
  clients.set(name, client)
  for (const tool of (await client.listTools()).tools) tools.push({ ...tool, name: `${name}__${tool.name}` })
}
const ready = Promise.all(Object.entries(mcpServers).map(openUpstream))

async function openSession() {
  const server = new Server({ name: 'gateway', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, async () => {
    await ready
    return { tools }
  })
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    const at = params.name.indexOf('__')
    return clients
      .get(params.name.slice(0, at))
      .callTool({ name: params.name.slice(at + 2), arguments: params.arguments })
  })
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse: true,
    onsessioninitialized: (id) => sessions.set(id, transport),
  })
  await server.connect(transport)
  return transport
}

createServer(async (request, response) => {
  const transport = sessions.get(request.headers['mcp-session-id']) ?? (await openSession())
  await transport.handleRequest(request, response)
}).listen(Number(port), '127.0.0.1')
process.on('SIGTERM', async () => {
  await Promise.all([...clients.values()].map((client) => client.close()))
  process.exit(0)
})
