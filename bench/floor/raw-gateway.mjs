// The gateway floor: HTTP in, lines out to stdio servers, routed by the prefix of the name, results passed as bytes. `node raw-gateway.mjs PORT CONFIG`
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [port, file] = process.argv.slice(2)
const { mcpServers } = JSON.parse(readFileSync(file, 'utf8'))
const HELLO = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'floor-gateway', version: '1' } }
const ID_HEAD = /^\{"jsonrpc":"2\.0","id":(\d+),/

class Upstream {
  id = 0
  pending = new Map()
  rest = []

  constructor(name, { command, args }) {
    this.name = name
    this.process = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] })
    this.process.stdout.on('data', (chunk) => this.take(chunk))
  }

  take(chunk) {
    let at = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, at)) {
      let line = chunk.subarray(at, end)
      if (this.rest.length > 0) {
        this.rest.push(line)
        line = Buffer.concat(this.rest)
        this.rest.length = 0
      }
      at = end + 1
      this.line(line)
    }
    if (at < chunk.length) this.rest.push(at > 0 ? chunk.subarray(at) : chunk)
  }

  /** The workload servers write the id first: it is taken from there, and the rest stays bytes. */
  line(bytes) {
    const head = ID_HEAD.exec(bytes.toString('latin1', 0, 48))
    if (head === null) return
    const id = Number(head[1])
    this.pending.get(id)?.(bytes.subarray(head[0].length))
    this.pending.delete(id)
  }

  request(method, params) {
    const id = this.id++
    return new Promise((resolve) => {
      this.pending.set(id, resolve)
      this.process.stdin.write(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${JSON.stringify(params)}}\n`)
    })
  }

  async open() {
    await this.request('initialize', HELLO)
    this.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    const { result } = JSON.parse(`{${await this.request('tools/list', {})}`)
    return result.tools.map((tool) => ({ ...tool, name: `${this.name}__${tool.name}` }))
  }
}

const upstreams = new Map(Object.entries(mcpServers).map(([name, entry]) => [name, new Upstream(name, entry)]))
const opened = Promise.all([...upstreams.values()].map((upstream) => upstream.open()))
const list = opened.then((all) => Buffer.from(`"result":${JSON.stringify({ tools: all.flat() })}}`))
const sessions = new Set()
const hello = Buffer.from(
  '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"floor-gateway","version":"1"}}}',
)

function resultOf({ method, params }) {
  if (method === 'initialize') return hello
  if (method === 'tools/list') return list
  if (method !== 'tools/call') return Buffer.from('"error":{"code":-32601,"message":"Method not found"}}')
  const at = params.name.indexOf('__')
  return upstreams.get(params.name.slice(0, at)).request('tools/call', { ...params, name: params.name.slice(at + 2) })
}

async function post(request, response, body) {
  const message = JSON.parse(body)
  if (message.id === undefined) return response.writeHead(202).end()
  const headers = { 'content-type': 'application/json' }
  if (message.method === 'initialize') {
    headers['mcp-session-id'] = randomUUID()
    sessions.add(headers['mcp-session-id'])
  } else if (!sessions.has(request.headers['mcp-session-id'])) return response.writeHead(404).end()
  const tail = await resultOf(message)
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},`
  response.writeHead(200, { ...headers, 'content-length': head.length + tail.length })
  response.write(head)
  return response.end(tail)
}

createServer((request, response) => {
  if (request.method !== 'POST') return response.writeHead(405).end()
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () =>
    post(request, response, parts.length === 1 ? parts[0].toString() : Buffer.concat(parts).toString()),
  )
}).listen(Number(port), '127.0.0.1')
process.on('SIGTERM', () => {
  for (const upstream of upstreams.values()) upstream.process.kill()
  process.exit(0)
})
