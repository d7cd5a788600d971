// Small servers for the HTTP tests: a handler behind node:http that has read the message, and a bare TCP server that answers with bytes.
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { Session, type SessionOptions } from '@convoke/wire'
import type { JsonObject } from '../src/protocol.ts'
import type { HttpTarget } from '../src/target.ts'

export interface Message {
  id?: number
  method?: string
  params?: {
    name?: string
    arguments?: JsonObject
    _meta?: JsonObject
    requestId?: number
    protocolVersion?: string
    uri?: string
  }
  result?: unknown
  error?: unknown
}

export interface Seen {
  verb: string
  path: string
  method: string | undefined
  message: Message | undefined
  headers: IncomingHttpHeaders
  /** Aborts when the client leaves before the answer is complete. */
  left: Promise<void>
}

export interface TestServer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly seen: Seen[]
  /** The methods of what was posted, and the verbs of what was not. */
  readonly log: string[]
  /** Connections opened so far. */
  readonly connections: number
  /** Connections open now. */
  readonly openConnections: number
  closeConnections(): void
}

export type Handler = (message: Message, response: ServerResponse, request: Seen & { raw: IncomingMessage }) => unknown

/** GET and DELETE get here with an empty message; by default they are answered 405. */
export async function startHttp(
  handle: Handler,
  onOther: Handler = (_message, response) => response.writeHead(405).end(),
): Promise<TestServer> {
  const seen: Seen[] = []
  const server = createServer((request, response) => void answer(request, response))
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readAll(request)
    const message = body === '' ? undefined : (JSON.parse(body) as Message)
    const left = new Promise<void>((resolve) => response.once('close', () => response.writableFinished || resolve()))
    const entry = {
      verb: request.method ?? '',
      path: request.url ?? '',
      method: message?.method,
      message,
      headers: request.headers,
      left,
    }
    seen.push(entry)
    await (entry.verb === 'POST' ? handle : onOther)(message ?? {}, response, { ...entry, raw: request })
  }
  return serve(server, seen)
}

async function readAll(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}

/** Any server that is made of a request listener; what it sees is up to it. */
export function startListener(listener: RequestListener): Promise<TestServer> {
  return serve(createServer(listener), [])
}

/** Answers every connection with whatever `talk` writes. */
export function startTcp(talk: (socket: Socket, connection: number) => void): Promise<TestServer> {
  let connection = 0
  return serve(
    createTcpServer((socket) => {
      socket.on('error', () => {})
      talk(socket, ++connection)
    }),
    [],
  )
}

export async function serve(server: Server, seen: Seen[], scheme = 'http'): Promise<TestServer> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${scheme}://127.0.0.1:${port}/mcp`,
    port,
    seen,
    get log() {
      return seen.map(({ verb, method }) => method ?? verb)
    },
    get connections() {
      return connections
    },
    get openConnections() {
      return sockets.size
    },
    closeConnections: () => {
      for (const socket of sockets) socket.destroy()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export function json(
  response: ServerResponse,
  { id }: Message,
  result: unknown,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(200, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
}

export function rpcError(
  response: ServerResponse,
  status: number,
  id: number | undefined,
  error: { code: number; message: string; data?: unknown },
): void {
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error }))
}

/** 202, as notifications and answers are taken. */
export function accept(response: ServerResponse): void {
  response.writeHead(202).end()
}

export function openStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
}

export function event(message: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: message\ndata: ${JSON.stringify(message)}\n\n`
}

export const textResult = (text: string): JsonObject => ({ content: [{ type: 'text', text }] })

/** A legacy server without sessions that knows the handshake; the rest is the test's. */
export function legacy(rest: Handler, hello: JsonObject = {}, headers: Record<string, string> = {}): Handler {
  return (message, response, request) => {
    switch (message.method) {
      case 'server/discover':
        return rpcError(response, 400, message.id, { code: -32601, message: 'Method not found' })
      case 'initialize':
        return json(
          response,
          message,
          {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 'test', version: '1' },
            ...hello,
          },
          headers,
        )
      case 'ping':
        return json(response, message, {})
    }
    if (message.id === undefined || message.method === undefined) {
      if (message.method === 'notifications/initialized') return response.writeHead(202).end()
    }
    return rest(message, response, request)
  }
}

/** A modern server; the rest is the test's. */
export function modern(rest: Handler): Handler {
  return (message, response, request) =>
    message.method === 'server/discover'
      ? json(response, message, {
          resultType: 'complete',
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {}, resources: { subscribe: true } },
          serverInfo: { name: 'modern', version: '1' },
          ttlMs: 0,
          cacheScope: 'private',
        })
      : rest(message, response, request)
}

/** Both clients run the same tests. */
export const CLIENTS = ['node', 'undici'] as const
export type Client = (typeof CLIENTS)[number]

export function connect(
  url: string,
  target: Partial<HttpTarget> = {},
  options: Partial<SessionOptions> = {},
): Promise<Session> {
  return Session.connect({ target: { kind: 'http', url, proxy: 'none', ...target }, ...options })
}

/** The text of a result's first content block. */
export function textOf(result: { content: readonly JsonObject[] }): unknown {
  return result.content[0]?.['text']
}

/** Waits until a condition holds; fails after 10 s. */
export async function until(condition: () => boolean, what = String(condition)): Promise<void> {
  const endsAtMs = performance.now() + 10_000
  while (!condition()) {
    if (performance.now() > endsAtMs) throw new Error(`Never came true: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The error a promise rejects with, for a look at more than its code. */
export async function failure(promise: Promise<unknown>): Promise<Error & { code: string; details: JsonObject }> {
  try {
    await promise
  } catch (error) {
    return error as Error & { code: string; details: JsonObject }
  }
  throw new Error('It did not fail')
}
