// A server of the session era whose sessions, tools and answers the test holds in its hand. It notes what came, in order.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** How a request in a session that is not known is answered. */
export type Forgotten = '404' | '400' | '200'

/** One thing that came. */
export interface Seen {
  /** The JSON-RPC method, or the verb of a request without a message. */
  readonly what: string
  readonly session: string | undefined
  /** Name of the tool of a call. */
  readonly tool?: string
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly name?: string; readonly _meta?: object }
}

export class SessionServer implements AsyncDisposable {
  readonly seen: Seen[] = []
  /** Names of tools that are listed. */
  tools: readonly string[] = ['echo', 'hold']
  /** Arguments of every tool. */
  schema: object = { type: 'object' }
  /** Tools that were really run, in order. */
  readonly ran: string[] = []
  /** `_meta` of each call that ran. */
  readonly metas: unknown[] = []
  forgotten: Forgotten = '404'
  /** The status of `initialize`, where it is refused. */
  refusesWith: number | undefined
  /** Calls of `hold` are answered when this resolves. */
  release: Promise<void> = Promise.resolve()
  /** Answers to `tools/list` wait for it. */
  listed: Promise<void> = Promise.resolve()
  #sessions = new Set<string>()
  #count = 0
  readonly #web = createServer((request, response) => void this.#handle(request, response))

  static async start(): Promise<SessionServer> {
    const server = new SessionServer()
    await new Promise<void>((resolve) => server.#web.listen(0, '127.0.0.1', resolve))
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#web.address() as { port: number }).port}/mcp`
  }

  /** As a server that was started anew behind its address. */
  forget(): void {
    this.#sessions.clear()
  }

  count(what: string): number {
    return this.seen.filter((one) => one.what === what).length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#web.closeAllConnections()
    await new Promise((resolve) => this.#web.close(resolve))
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const session = request.headers['mcp-session-id'] as string | undefined
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (request.method !== 'POST') {
      if (request.method === 'DELETE') this.seen.push({ what: 'DELETE', session })
      return void response.writeHead(request.method === 'DELETE' ? 204 : 405).end()
    }
    const message = JSON.parse(Buffer.concat(chunks).toString()) as Message
    const { method = 'response', params } = message
    this.seen.push({ what: method, session, ...(params?.name === undefined ? {} : { tool: params.name }) })
    await this.#answer(message, session, response)
  }

  async #answer(message: Message, session: string | undefined, response: ServerResponse): Promise<void> {
    const { method, params } = message
    if (method === 'server/discover') return send(response, message, { error: { code: -32601, message: 'no' } })
    if (method === 'initialize') return this.#initialize(message, response)
    if (session === undefined || !this.#sessions.has(session)) return this.#refuse(message, response)
    if (message.id === undefined) return void response.writeHead(202).end()
    if (method === 'tools/list') {
      await this.listed
      const tools = this.tools.map((name) => ({ name, inputSchema: this.schema }))
      return send(response, message, { result: { tools } })
    }
    if (params?.name === 'hold') await this.release
    this.ran.push(String(params?.name))
    this.metas.push(params?._meta)
    send(response, message, { result: { content: [{ type: 'text', text: session }] } })
  }

  #initialize(message: Message, response: ServerResponse): void {
    if (this.refusesWith !== undefined) return void response.writeHead(this.refusesWith).end()
    this.#count += 1
    const id = `s${this.#count}`
    this.#sessions.add(id)
    response.setHeader('mcp-session-id', id)
    send(response, message, {
      result: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'sessions', version: String(this.#count) },
      },
    })
  }

  #refuse(message: Message, response: ServerResponse): void {
    if (this.forgotten === '404') return void response.writeHead(404).end()
    const text = this.forgotten === '400' ? 'Bad Request: No valid session ID provided' : 'Server not initialized'
    if (this.forgotten === '400') response.statusCode = 400
    send(response, message, { error: { code: -32000, message: text } })
  }
}

function send(response: ServerResponse, { id }: Message, body: object): void {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
}
