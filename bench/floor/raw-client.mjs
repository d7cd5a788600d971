// The floor: JSON-RPC clients written by hand, with no SDK, no validation and no timers. What a host must do at least, and nothing else.
import { spawn } from 'node:child_process'

// `import 'node:http'` reads every export of it on Node 24, and so loads undici: about 60 ms and 10 MB.
const http = process.getBuiltinModule('node:http')

const HELLO = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw-floor', version: '1.0.0' } }

class RawClient {
  id = 0

  async listTools() {
    const tools = []
    let cursor
    do {
      const page = await this.request('tools/list', cursor === undefined ? {} : { cursor })
      tools.push(...page.tools)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return tools
  }

  callTool(name, args) {
    return this.request('tools/call', { name, arguments: args })
  }
}

export class RawStdio extends RawClient {
  pending = new Map()
  rest = []

  constructor({ command, args = [], env }) {
    super()
    this.process = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'], env: { ...process.env, ...env } })
    const gone = (error) => {
      for (const { reject } of this.pending.values()) reject(error)
      this.pending.clear()
    }
    this.process.on('error', gone)
    this.process.on('exit', (code) => gone(new Error(`exit ${code}`)))
    this.process.stdin.on('error', () => {})
    this.process.stdout.on('data', (chunk) => this.take(chunk))
  }

  async connect() {
    await this.request('initialize', HELLO)
    this.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
  }

  take(chunk) {
    let at = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, at)) {
      this.line(chunk, at, end)
      at = end + 1
    }
    if (at < chunk.length) this.rest.push(at > 0 ? chunk.subarray(at) : chunk)
  }

  line(chunk, at, end) {
    let text
    if (this.rest.length > 0) {
      this.rest.push(chunk.subarray(at, end))
      text = Buffer.concat(this.rest).toString()
      this.rest.length = 0
    } else text = chunk.toString('utf8', at, end)
    const message = JSON.parse(text)
    const waiting = this.pending.get(message.id)
    if (waiting === undefined) return
    this.pending.delete(message.id)
    if (message.error === undefined) waiting.resolve(message.result)
    else waiting.reject(new Error(message.error.message))
  }

  write(text) {
    this.process.stdin.write(text)
  }

  request(method, params) {
    const id = this.id++
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject })
      this.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    })
  }

  close() {
    this.process.stdin.end()
    this.process.kill('SIGTERM')
  }
}

/** One change to the floor: requests of one tick leave in one write. */
export class BatchingStdio extends RawStdio {
  queue = ''

  write(text) {
    if (this.queue === '') {
      queueMicrotask(() => {
        this.process.stdin.write(this.queue)
        this.queue = ''
      })
    }
    this.queue += text
  }
}

export class RawHttp extends RawClient {
  headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

  constructor({ url }) {
    super()
    const { hostname, port, pathname } = new URL(url)
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 128, noDelay: true })
    this.options = { host: hostname, port, path: pathname, method: 'POST', agent: this.agent }
  }

  async connect() {
    const { protocolVersion } = await this.request('initialize', HELLO)
    this.headers['mcp-protocol-version'] = protocolVersion
    await this.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }

  request(method, params) {
    return this.post({ jsonrpc: '2.0', id: this.id++, method, params })
  }

  post(message) {
    const body = JSON.stringify(message)
    const headers = { ...this.headers, 'content-length': Buffer.byteLength(body) }
    return new Promise((resolve, reject) => {
      const request = http.request({ ...this.options, headers }, (response) => {
        const parts = []
        response.on('data', (part) => parts.push(part))
        response.on('error', reject)
        response.on('end', () => this.answered(message, response, parts, { resolve, reject }))
      })
      request.on('error', reject)
      request.end(body)
    })
  }

  answered(message, response, parts, { resolve, reject }) {
    const session = response.headers['mcp-session-id']
    if (session !== undefined) this.headers['mcp-session-id'] = session
    if (message.id === undefined) return resolve()
    const text = parts.length === 1 ? parts[0].toString() : Buffer.concat(parts).toString()
    if (response.statusCode >= 400) return reject(new Error(`HTTP ${response.statusCode} ${text.slice(0, 200)}`))
    const isStream = (response.headers['content-type'] ?? '').startsWith('text/event-stream')
    const { result, error } = JSON.parse(isStream ? answerIn(text) : text)
    if (error === undefined) resolve(result)
    else reject(new Error(error.message))
  }

  close() {
    this.agent.destroy()
  }
}

/** The data of the event that carries the answer. */
function answerIn(text) {
  const events = text.split(/\r?\n\r?\n/).map((event) =>
    event
      .split(/\r?\n/)
      .filter((line) => line.startsWith('data:'))
      .map((line) => line.slice('data:'.length).trimStart())
      .join('\n'),
  )
  return events.find((event) => event.includes('"result"') || event.includes('"error"')) ?? ''
}
