// Serves accounts over HTTP on the official SDK: options are the JSON in the last argument, `READY PORT` is printed. See ../src/apps-server.ts.
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node'
import { type AuthInfo, ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server'
import type { AppsCall, AppsListing, AppsServerOptions, AppsServerStats, AppsService } from '../src/apps-server.ts'
import { echoOf, listedPlugin, listedTool, rawName } from './apps-listing.ts'
import { endWithParent } from './end-with-parent.mjs'

type Knobs = Required<{ [Name in keyof Omit<AppsServerOptions, 'port'>]: NonNullable<AppsServerOptions[Name]> }>
type Service = 'toolListing' | 'toolCalls' | 'pluginListing'

const DEFAULTS: Knobs = {
  accounts: {},
  toolListing: 'serve',
  toolCalls: 'serve',
  pluginListing: 'serve',
  pageSize: Number.MAX_SAFE_INTEGER,
  failFromPage: Number.MAX_SAFE_INTEGER,
  repeatCursor: false,
}
const METHOD_NOT_FOUND = -32601
const INVALID_PARAMS = -32602
const INTERNAL_ERROR = -32603

class AppsServerProcess {
  #knobs = DEFAULTS
  readonly #sessions = new Map<string, { transport: NodeStreamableHTTPServerTransport; server: Server }>()
  readonly #held = new Map<() => void, Service>()
  readonly #calls: AppsCall[] = []
  readonly #listings: AppsListing[] = []
  readonly #rpc: Record<string, number> = {}
  #refused = 0

  async set(changes: Readonly<Record<string, unknown>>): Promise<void> {
    for (const name of Object.keys(changes)) if (!(name in DEFAULTS)) throw new Error(`There is no knob "${name}"`)
    const given = Object.entries(changes).map(([name, value]) => [name, value ?? DEFAULTS[name as keyof Knobs]])
    this.#knobs = { ...this.#knobs, ...(Object.fromEntries(given) as Partial<Knobs>) }
    for (const [go, service] of [...this.#held]) if (this.#knobs[service] !== 'pause') go()
    if ('accounts' in changes) await this.announceTools()
  }

  stats(): AppsServerStats {
    return {
      calls: this.#calls,
      listings: this.#listings,
      rpc: this.#rpc,
      refused: this.#refused,
      sessions: this.#sessions.size,
      waiting: this.#held.size,
    }
  }

  async announceTools(): Promise<void> {
    for (const { server } of this.#sessions.values()) await server.sendToolListChanged()
  }

  async forgetSessions(): Promise<void> {
    const forgotten = [...this.#sessions.values()]
    this.#sessions.clear()
    for (const { server } of forgotten) await server.close()
  }

  /** A request of the MCP endpoint. */
  async serve(request: IncomingMessage & { auth?: AuthInfo }, response: ServerResponse): Promise<void> {
    const [, token = ''] = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '') ?? []
    const account = this.#accountOf(token)
    if (account === undefined) {
      this.#refused += 1
      return void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    }
    // The SDK hands it on to whoever answers the request.
    request.auth = { token, clientId: account, scopes: [] }
    const id = request.headers['mcp-session-id']
    const known = typeof id === 'string' ? this.#sessions.get(id)?.transport : undefined
    if (id !== undefined && known === undefined) return void response.writeHead(404).end()
    return (known ?? (await this.#open())).handleRequest(request as never, response)
  }

  #accountOf(token: string): string | undefined {
    return Object.entries(this.#knobs.accounts).find(([id, { tokens = [`token-${id}`] }]) =>
      tokens.includes(token),
    )?.[0]
  }

  async #open(): Promise<NodeStreamableHTTPServerTransport> {
    const server = this.#build()
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void this.#sessions.set(id, { transport, server }),
      onsessionclosed: (id) => void this.#sessions.delete(id),
    })
    await server.connect(transport)
    return transport
  }

  #build(): Server {
    const server = new Server(
      { name: 'convoke-apps', version: '1.0.0' },
      { capabilities: { tools: { listChanged: true }, resources: {} } },
    )
    server.setRequestHandler('tools/list', async (_, context) => {
      const account = await this.#admit('toolListing', 'tools/list', context)
      return { tools: (this.#knobs.accounts[account]?.tools ?? []).map(listedTool) }
    })
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const { name, arguments: given = {}, _meta: meta = {} } = params
      const asked = accountIn(context)
      this.#calls.push({ account: asked, name, arguments: given, meta })
      const account = await this.#admit('toolCalls', 'tools/call', context)
      if (!this.#knobs.accounts[account]?.tools?.some((tool) => rawName(tool) === name))
        throw new ProtocolError(INVALID_PARAMS, `Account ${account} has no tool "${name}"`)
      const structuredContent = { account, tool: name, arguments: given, ...echoOf(meta) }
      return { content: [{ type: 'text', text: `${name} ran for ${account}` }], structuredContent }
    })
    server.setRequestHandler('resources/list', async ({ params }, context) => {
      const cursor = params?.cursor
      this.#listings.push({ account: accountIn(context), cursor: cursor ?? null })
      const account = await this.#admit('pluginListing', 'resources/list', context)
      return this.#page(account, cursor)
    })
    return server
  }

  #page(
    account: string,
    cursor: string | undefined,
  ): { resources: ReturnType<typeof listedPlugin>[]; nextCursor?: string } {
    const { pageSize, failFromPage, repeatCursor, accounts } = this.#knobs
    const number = cursor === undefined ? 1 : Number(cursor)
    if (!Number.isInteger(number) || number < 1) throw new ProtocolError(INVALID_PARAMS, `No page "${cursor}"`)
    if (number >= failFromPage) throw new ProtocolError(INTERNAL_ERROR, `Page ${number} is broken`)
    const all = (accounts[account]?.plugins ?? []).map(listedPlugin)
    const resources = all.slice((number - 1) * pageSize, number * pageSize)
    if (repeatCursor && number > 1) return { resources, nextCursor: String(number) }
    return all.length > number * pageSize ? { resources, nextCursor: String(number + 1) } : { resources }
  }

  /** Counts the request and lets it through when its service goes on. @returns who asks. */
  async #admit(service: Service, method: string, context: ServerContext): Promise<string> {
    this.#rpc[method] = (this.#rpc[method] ?? 0) + 1
    if (this.#knobs[service] === 'pause') await this.#hold(service, context.mcpReq.signal)
    const how: AppsService = this.#knobs[service]
    if (how === 'error') throw new ProtocolError(INTERNAL_ERROR, `${method} is out of order`)
    if (how === 'absent') throw new ProtocolError(METHOD_NOT_FOUND, 'Method not found')
    return accountIn(context)
  }

  /** Until it is served again, or whoever asked has gone. */
  #hold(service: Service, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        this.#held.delete(go)
        signal.removeEventListener('abort', go)
        resolve()
      }
      this.#held.set(go, service)
      signal.addEventListener('abort', go, { once: true })
    })
  }
}

/** Whose token the request carried. */
function accountIn(context: ServerContext): string {
  return context.http?.authInfo?.clientId ?? ''
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const parts: Buffer[] = []
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
  const text = Buffer.concat(parts).toString()
  return text === '' ? {} : JSON.parse(text)
}

const { port = 0, ...knobs } = JSON.parse(process.argv.at(-1) ?? '{}') as AppsServerOptions
const apps = new AppsServerProcess()
await apps.set({ ...knobs })

const ACTIONS: Readonly<Record<string, (body: Record<string, unknown>) => unknown>> = {
  set: (body) => apps.set(body),
  stats: () => apps.stats(),
  'announce-tools': () => apps.announceTools(),
  'forget-sessions': () => apps.forgetSessions(),
}

async function control(action: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const result = await ACTIONS[action]?.(await bodyOf(request))
    response
      .writeHead(200, { 'content-type': 'application/json', connection: 'close' })
      .end(JSON.stringify(result ?? null))
  } catch (error) {
    response.writeHead(400, { connection: 'close' }).end(String(error))
  }
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1')
  if (pathname.startsWith('/control/')) return control(pathname.slice('/control/'.length), request, response)
  if (pathname !== '/mcp') return void response.writeHead(404).end()
  return apps.serve(request, response)
}

const server = createServer((request, response) => {
  receive(request, response).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`)
    if (!response.headersSent) response.writeHead(500)
    response.end()
  })
})
server.listen(port, '127.0.0.1', () => {
  process.stdout.write(`READY ${(server.address() as AddressInfo).port}\n`)
})
endWithParent()
