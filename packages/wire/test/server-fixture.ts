// A small application behind a real endpoint, and raw ways to reach it.
import http from 'node:http'
import net from 'node:net'
import type {
  Application,
  Client,
  Exchange,
  HttpEndpoint,
  HttpEndpointOptions,
  Listener,
  Reply,
} from '@convoke/wire/server'
import { serveHttp } from '@convoke/wire/server'

type Json = Record<string, unknown>

/** What the application was asked, and handles on what is still open. */
export class Recorder {
  readonly calls: { name: string; args: Json }[] = []
  readonly cancelled: string[] = []
  readonly told: string[] = []
  readonly closed: string[] = []
  readonly listeners: Listener[] = []
  /** Whoever began with `initialize`. */
  readonly clients: Client[] = []
  readonly #waiting: { test: () => boolean; resolve: () => void }[] = []
  /** Ends `hold` calls, by the name of their argument `key`. */
  readonly held: Map<string, (text: string) => void> = new Map()

  changed(): void {
    for (const { test, resolve } of [...this.#waiting]) if (test()) resolve()
  }

  /** Resolves when the test holds; it is looked at whenever the application notes something. */
  until(test: () => boolean): Promise<void> {
    if (test()) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push({ test, resolve }))
  }
}

const text = (value: string): Reply => ({ kind: 'result', result: { content: [{ type: 'text', text: value }] } })

type Tool = (exchange: Exchange, args: Json, recorder: Recorder) => Reply | Promise<Reply>

const TOOLS: Record<string, Tool> = {
  echo: (_exchange, args) => text(JSON.stringify(args)),
  raw: (_exchange, args) => ({ kind: 'result-bytes', body: Buffer.from(String(args['body'])), typed: false }),
  big: (_exchange, args) => ({
    kind: 'result-bytes',
    body: Buffer.from(JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(Number(args['bytes'])) }] })),
    typed: false,
  }),
  fail: () => {
    throw new Error('a secret of the application')
  },
  progress: (exchange) => {
    for (let progress = 1; progress <= 3; progress++) exchange.progress({ progress, total: 3 })
    return text('done')
  },
  log: (exchange) => {
    for (const level of ['debug', 'warning', 'error']) exchange.notify('notifications/message', { level, data: level })
    return text('logged')
  },
  hold: (exchange, args, recorder) =>
    new Promise((resolve) => {
      const key = String(args['key'])
      exchange.whenCancelled((reason) => {
        recorder.cancelled.push(`${key}: ${reason}`)
        recorder.held.delete(key)
        recorder.changed()
      })
      if (args['chatty'] === true) exchange.progress({ progress: 0 })
      recorder.held.set(key, (value) => {
        recorder.held.delete(key)
        if (args['chatty'] === true) exchange.progress({ progress: 1 })
        resolve(text(value))
      })
      recorder.changed()
    }),
  /** What this process holds at present. */
  holdings: (_exchange, _args, recorder) =>
    text(
      JSON.stringify({
        rssBytes: process.memoryUsage.rss(),
        sockets: process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length,
        bigCalls: recorder.calls.filter(({ name }) => name === 'big').length,
        cancelled: recorder.cancelled,
      }),
    ),
  // Progress without end, until the call is cancelled.
  flood: (exchange, _args, recorder) =>
    new Promise(() => {
      let going = true
      exchange.whenCancelled((reason) => {
        going = false
        recorder.cancelled.push(`flood: ${reason}`)
        recorder.changed()
      })
      const more = (): void => {
        if (!going) return
        for (let progress = 0; progress < 20; progress++) exchange.progress({ progress, message: 'x'.repeat(1_000) })
        setImmediate(more)
      }
      more()
    }),
  ask: async (exchange, args) => {
    const rounds = Number(args['rounds'] ?? 1)
    const answers: unknown[] = []
    for (let round = 1; round <= rounds; round++)
      answers.push(
        await exchange.ask('elicitation/create', {
          message: `round ${round}`,
          requestedSchema: { type: 'object', properties: {} },
        }),
      )
    return text(JSON.stringify(answers))
  },
  askAfterProgress: async (exchange) => {
    exchange.progress({ progress: 1 })
    const answer = await exchange.ask('roots/list', {})
    exchange.progress({ progress: 2 })
    return text(JSON.stringify(answer))
  },
  askBoth: async (exchange) => {
    const answers = await Promise.all([
      exchange.ask('elicitation/create', { message: 'who?', requestedSchema: { type: 'object', properties: {} } }),
      exchange.ask('roots/list', {}),
    ])
    return text(JSON.stringify(answers))
  },
  askAndTakeBack: async (exchange) => {
    const controller = new AbortController()
    const answer = exchange.ask('roots/list', {}, controller.signal)
    setImmediate(() => controller.abort())
    return text(await answer.then(JSON.stringify, (error: Error) => error.message))
  },
}

export const MIRRORED_SCHEMA = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
  },
}

export function application(recorder: Recorder): Application {
  return {
    describe(client) {
      if (client.era === 'legacy') recorder.clients.push(client)
      return {
        serverInfo: { name: 'fixture', version: '1.0.0' },
        capabilities: { tools: { listChanged: true }, logging: {}, resources: { subscribe: true } },
        instructions: 'Be kind.',
      }
    },
    request(exchange) {
      const { method, params } = exchange
      if (method === 'tools/list')
        return {
          kind: 'result',
          result: { tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' } })) },
        }
      if (method === 'logging/setLevel') return { kind: 'result', result: {} }
      const tool = Object.hasOwn(TOOLS, String(params['name'])) ? TOOLS[String(params['name'])] : undefined
      if (method !== 'tools/call')
        return { kind: 'error', error: { code: -32601, message: `Method not found: ${method}` } }
      if (tool === undefined) return { kind: 'error', error: { code: -32602, message: 'Unknown tool' } }
      const args = (params['arguments'] ?? {}) as Json
      recorder.calls.push({ name: String(params['name']), args })
      recorder.changed()
      return tool(exchange, args, recorder)
    },
    notification(_client, method) {
      recorder.told.push(method)
      recorder.changed()
    },
    clientClosed(client) {
      recorder.closed.push(String(client.info['name']))
      recorder.changed()
    },
    listen(listener) {
      recorder.listeners.push(listener)
      recorder.changed()
      return listener.wanted
    },
    inputSchema: (tool) => (tool === 'echo' ? MIRRORED_SCHEMA : undefined),
  }
}

export interface Served {
  readonly endpoint: HttpEndpoint
  readonly recorder: Recorder
  readonly port: number
}

/** An endpoint on a free port; `await using` closes it. */
export async function serve(options: Partial<HttpEndpointOptions> = {}): Promise<Served & AsyncDisposable> {
  const recorder = new Recorder()
  const endpoint = await serveHttp({ application: application(recorder), ...options })
  return { endpoint, recorder, port: endpoint.port, [Symbol.asyncDispose]: () => endpoint.close({ drainMs: 50 }) }
}

export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
  /** The body as JSON, or the messages of an event stream. */
  readonly json: Json
  readonly events: readonly Json[]
}

export interface Ask {
  readonly method?: string
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
  /** The socket to use; default: a new connection. */
  readonly agent?: http.Agent
}

/** One HTTP request on a connection of its own. */
export function send(
  port: number,
  { method = 'POST', path = '/mcp', headers = {}, body, agent }: Ask,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        agent: agent ?? false,
        headers: {
          ...(method === 'POST'
            ? { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
            : {}),
          ...headers,
        },
      },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (chunk: Buffer) => parts.push(chunk))
        response.on('error', reject)
        response.on('end', () => resolve(answerOf(response, Buffer.concat(parts).toString())))
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}

function answerOf(response: http.IncomingMessage, body: string): Answer {
  const events = response.headers['content-type'] === 'text/event-stream' ? eventsIn(body) : []
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: body,
    get json() {
      return (events.at(-1) ?? JSON.parse(body)) as Json
    },
    events,
  }
}

/** The messages of an event stream. */
export function eventsIn(body: string): Json[] {
  return body
    .split('\n\n')
    .flatMap((event) => event.split('\n').filter((line) => line.startsWith('data: ') && line.length > 6))
    .map((line) => JSON.parse(line.slice(6)) as Json)
}

/** The ids of an event stream, in order. */
export function eventIdsIn(body: string): string[] {
  return body
    .split('\n')
    .filter((line) => line.startsWith('id: '))
    .map((line) => line.slice(4))
}

/** Writes bytes as they are, and gives what comes back until the connection closes (or `until` is in it). */
export function raw(port: number, bytes: string | Buffer, until?: string, host = '127.0.0.1'): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, host)
    let seen = ''
    socket.on('data', (chunk: Buffer) => {
      seen += chunk.toString('latin1')
      if (until !== undefined && seen.includes(until)) socket.destroy()
    })
    socket.on('close', () => resolve(seen))
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? resolve(seen) : reject(error),
    )
    socket.write(bytes)
  })
}

export const rpc = (method: string, params: Json = {}, id: string | number = 1): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })

export interface OpenSession {
  readonly id: string
  call(name: string, args?: Json, id?: string | number, meta?: Json): Promise<Answer>
  post(body: string, headers?: Record<string, string>): Promise<Answer>
  readonly headers: Record<string, string>
}

/** A legacy session, by hand. */
export async function openSession(
  port: number,
  {
    version = '2025-11-25',
    name = 'raw',
    capabilities = {},
    headers = {},
  }: { version?: string; name?: string; capabilities?: Json; headers?: Record<string, string> } = {},
): Promise<OpenSession> {
  const hello = await send(port, {
    headers,
    body: rpc('initialize', { protocolVersion: version, capabilities, clientInfo: { name, version: '1' } }, 'init'),
  })
  const id = hello.headers['mcp-session-id']
  if (typeof id !== 'string') throw new Error(`no session: ${hello.status} ${hello.text}`)
  const all = { ...headers, 'mcp-session-id': id, 'mcp-protocol-version': version }
  const post = (body: string, more: Record<string, string> = {}): Promise<Answer> =>
    send(port, { headers: { ...all, ...more }, body })
  await post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
  return {
    id,
    headers: all,
    post,
    call: (tool, args = {}, requestId = 1, meta) =>
      post(
        rpc('tools/call', { name: tool, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) }, requestId),
      ),
  }
}

/** One request of the modern era, with the headers that belong to it. */
export function modern(
  port: number,
  method: string,
  params: Json = {},
  options: { id?: string | number; headers?: Record<string, string>; meta?: Json } = {},
): Promise<Answer> {
  const { id = 1, headers = {}, meta = {} } = options
  const named =
    method === 'tools/call' || method === 'prompts/get'
      ? params['name']
      : method === 'resources/read'
        ? params['uri']
        : undefined
  return send(port, {
    headers: {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof named === 'string' ? { 'mcp-name': named } : {}),
      ...headers,
    },
    body: rpc(method, { ...params, _meta: { ...modernMeta(), ...meta } }, id),
  })
}

export const modernMeta = (capabilities: Json = { elicitation: {}, sampling: {}, roots: {} }): Json => ({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': capabilities,
})

/** An open event stream, read as it comes. */
export class Stream {
  readonly request: http.ClientRequest
  status = 0
  text = ''
  isClosed = false
  readonly #waiting: { test: () => boolean; resolve: () => void }[] = []

  constructor(port: number, { method = 'POST', path = '/mcp', headers = {}, body }: Ask) {
    this.request = http.request(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        agent: false,
        headers: {
          accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
          ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
          ...headers,
        },
      },
      (response) => {
        this.status = response.statusCode ?? 0
        this.#changed()
        response.on('data', (chunk: Buffer) => {
          this.text += chunk.toString()
          this.#changed()
        })
        response.on('error', () => {})
        response.on('close', () => this.#closed())
      },
    )
    this.request.on('error', () => this.#closed())
    this.request.end(body)
  }

  #closed(): void {
    this.isClosed = true
    this.#changed()
  }

  #changed(): void {
    for (const { test, resolve } of [...this.#waiting]) if (test()) resolve()
  }

  get events(): Json[] {
    return eventsIn(this.text.slice(0, this.text.lastIndexOf('\n\n') + 2))
  }

  until(test: (stream: Stream) => boolean): Promise<void> {
    if (test(this)) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push({ test: () => test(this), resolve }))
  }

  /** Breaks the connection. */
  drop(): void {
    this.request.destroy()
  }
}
