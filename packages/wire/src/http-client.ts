// One HTTP exchange at a time over node:http: starts in 7 ms, and is there. Decides nothing; see outbound.ts.
import type * as Http from 'node:http'
import { describeExchangeFailure } from './connect-failure.ts'
import { type ConnectOptions, Connector } from './connector.ts'
import { WireError } from './errors.ts'
import type { Exchange, ExchangeRequest, ExchangeSink, FailureFacts, HttpClient } from './http-port.ts'
import type { ProxyChoice } from './proxy.ts'

/** Idle connections that are kept open to one origin. */
export const IDLE_SOCKETS_MAX = 64
/** Bytes of all headers of one answer. */
export const RESPONSE_HEADER_BYTES_MAX: number = 32 * 1024
/**
 * How long an idle connection is kept when the server does not say how long it keeps it. Common servers close after 5 s without saying so, and a request
 * that meets the close cannot safely be sent again.
 */
export const IDLE_SOCKET_MS = 4_000
/** What is kept at most when the server says. */
export const IDLE_SOCKET_MS_MAX = 120_000
/** How long before the server's own limit an idle connection is given up. */
export const IDLE_MARGIN_MS = 1_000

/** What `host` and the request line say, with or without a proxy. */
export interface Route {
  /** Value of the `host` header. */
  readonly host: string
  /** Before the path: empty, or the origin when the request names a whole URL to a proxy. */
  readonly prefix: string
  readonly proxyAuthorization: string | undefined
}

/** How requests to this origin are written. */
export function routeOf(url: URL, proxy: ProxyChoice | undefined): Route {
  const asksProxy = proxy !== undefined && url.protocol === 'http:'
  return {
    host: url.host,
    prefix: asksProxy ? url.origin : '',
    proxyAuthorization: asksProxy ? proxy.authorization : undefined,
  }
}

/** `import http from 'node:http'` would read every export, and on Node 24 load the built-in undici with it (100 ms). */
export function nodeClient(url: URL, connect: ConnectOptions): HttpClient {
  const http = process.getBuiltinModule('node:http') as typeof Http
  const connector = new Connector(connect)
  const agent = new http.Agent({ keepAlive: true, scheduling: 'lifo', maxFreeSockets: IDLE_SOCKETS_MAX })
  // Asynchronous, so that a request has a socket only once the connection is there: what fails before was certainly not sent.
  agent.createConnection = (_options, done) => {
    connector.connect((error, socket) => done?.(error, socket as never))
    return undefined as never
  }
  agent.keepSocketAlive = keepForAWhile
  return new NodeClient(http, agent, connector, routeOf(url, connect.proxy))
}

interface AgentSocket
  extends Pick<Http.ClientRequest['socket'] & object, 'setKeepAlive' | 'unref' | 'setTimeout' | 'timeout'> {
  _httpMessage?: { res?: Http.IncomingMessage }
}

/** Node's own rule shortens its default by the server's hint; ours also lets the hint lengthen it. */
function keepForAWhile(idle: unknown): boolean {
  const socket = idle as AgentSocket
  const hint = socket._httpMessage?.res?.headers['keep-alive'] as string | undefined
  const seconds = hint === undefined ? undefined : /(?:^|[\s,])timeout=(\d{1,6})/i.exec(hint)?.[1]
  const ms =
    seconds === undefined ? IDLE_SOCKET_MS : Math.min(Number(seconds) * 1_000 - IDLE_MARGIN_MS, IDLE_SOCKET_MS_MAX)
  if (ms <= 0) return false
  socket.unref()
  if (socket.timeout !== ms) socket.setTimeout(ms)
  return true
}

class NodeClient implements HttpClient {
  readonly #http: typeof Http
  readonly #agent: Http.Agent
  readonly #connector: Connector
  readonly #route: Route

  constructor(http: typeof Http, agent: Http.Agent, connector: Connector, route: Route) {
    this.#http = http
    this.#agent = agent
    this.#connector = connector
    this.#route = route
  }

  exchange({ method, path, headers, body, isAscii }: ExchangeRequest, sink: ExchangeSink): Exchange {
    const { host, prefix, proxyAuthorization } = this.#route
    const flat = ['host', host, ...headers]
    if (proxyAuthorization !== undefined) flat.push('proxy-authorization', proxyAuthorization)
    if (body !== undefined) flat.push('content-length', String(Buffer.byteLength(body)))
    const { host: server, port } = this.#connector.options
    const request = this.#http.request({
      host: server,
      port,
      path: prefix + path,
      method,
      headers: flat,
      agent: this.#agent,
      maxHeaderSize: RESPONSE_HEADER_BYTES_MAX,
    })
    const exchange = new NodeExchange(request, sink, this.#connector)
    // A text is written together with the headers, and in its encoding.
    request.end(isAscii || body === undefined ? body : Buffer.from(body))
    return exchange
  }

  close(): void {
    this.#connector.close()
    this.#agent.destroy()
  }
}

class NodeExchange implements Exchange {
  readonly #request: Http.ClientRequest
  readonly #sink: ExchangeSink
  readonly #connector: Connector
  #response: Http.IncomingMessage | undefined
  #over = false

  constructor(request: Http.ClientRequest, sink: ExchangeSink, connector: Connector) {
    this.#request = request
    this.#sink = sink
    this.#connector = connector
    request.on('response', (response) => this.#begin(response))
    request.on('error', (error) => this.#fail(error))
    request.on('close', () => {
      if (!this.#over) this.#fail(new Error('the connection was closed before the answer was complete'))
    })
  }

  get sent(): boolean {
    return this.#request.socket !== null && this.#request.socket !== undefined
  }

  #begin(response: Http.IncomingMessage): void {
    this.#response = response
    this.#sink.head(response.statusCode ?? 0, (name) => {
      const value = response.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    })
    if (this.#over) return // dropped because of what the head said
    response.on('data', (chunk: Buffer) => {
      if (!this.#over) this.#sink.data(chunk)
    })
    response.on('end', () => {
      if (this.#over || !response.complete) return
      this.#over = true
      this.#sink.end()
    })
    response.on('error', (error) => this.#fail(error))
  }

  #fail(error: Error): void {
    if (this.#over) return
    this.#over = true
    this.#request.destroy()
    const facts = { sent: this.sent && mayBeSent(error), reused: this.#request.reusedSocket }
    this.#sink.fail(toWireError(error, this.#connector.options, facts), facts)
  }

  drop(): void {
    if (this.#over) return
    this.#over = true
    this.#request.destroy()
  }

  pause(): void {
    this.#response?.pause()
  }

  resume(): void {
    this.#response?.resume()
  }
}

/**
 * A connection that could not be opened has carried nothing. A write that failed has not carried the whole request, since a request is one write; and
 * no server acts on a part of one, whose length it knows.
 */
export function mayBeSent(error: unknown): boolean {
  if (error instanceof WireError) return error.details.sent !== false
  return (error as { syscall?: unknown } | undefined)?.syscall !== 'write'
}

/** The failure as this package reports it. */
export function toWireError(error: unknown, { host, port }: ConnectOptions, { sent }: FailureFacts): WireError {
  if (error instanceof WireError) return error
  return new WireError('closed', describeExchangeFailure(error, { host, port }), { cause: error, sent })
}
