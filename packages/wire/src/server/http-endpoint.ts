// An MCP endpoint over HTTP: listens, lets in what the door admits, drains when it closes.
import type * as Http from 'node:http'
import { nodePlatform, type Platform, type TimerHandle } from '../platform.ts'
import { checkAddresses, isLoopback, servedHosts, servedOrigins, urlHost } from './addresses.ts'
import type { Application } from './application.ts'
import { BodyBudget, refuse } from './body.ts'
import { Dispatcher } from './dispatcher.ts'
import { admit, type DoorPolicy, type Route } from './door.ts'
import { EndpointError } from './endpoint-errors.ts'
import { ReplayBudget } from './event-log.ts'
import { type EndpointLimits, limitsFrom } from './limits.ts'
import { McpRoute, type Visit } from './mcp-route.ts'
import { OutputBudget } from './output-budget.ts'
import { ParkedCalls } from './parked-calls.ts'
import { SessionStore } from './session-store.ts'
import { StateSealer } from './state-sealer.ts'
import { type AccessToken, FailureCount, TokenCheck, tokenFault } from './tokens.ts'

const http = process.getBuiltinModule('node:http') as typeof Http

/** What an endpoint reaches the world through. */
export type EndpointPlatform = Pick<Platform, 'now' | 'dateMs' | 'setTimer' | 'clearTimer' | 'randomBytes'>

export interface HttpEndpointOptions {
  readonly application: Application
  /** Default `127.0.0.1`. Any address that is not loopback needs a token. */
  readonly hostname?: string
  /** Default 0: a free one. */
  readonly port?: number
  /** Default `/mcp`. */
  readonly path?: string
  /** Without one, everybody who reaches the address may come in. */
  readonly tokens?: readonly AccessToken[]
  /** Further values of the Host header, such as `tools.example` or `tools.example:8443`: behind a proxy, or bound to all addresses. */
  readonly allowedHosts?: readonly string[]
  /** Web origins whose pages may call, such as `https://app.example`. */
  readonly allowedOrigins?: readonly string[]
  readonly limits?: Partial<EndpointLimits>
  readonly platform?: EndpointPlatform
}

/** Numbers of a running endpoint. */
export interface EndpointCounts {
  readonly sessions: number
  readonly calls: number
  readonly parkedCalls: number
  readonly listeners: number
}

/** A running endpoint. */
export interface HttpEndpoint extends AsyncDisposable {
  /** `http://HOST:PORT/mcp` */
  readonly url: string
  readonly port: number
  readonly counts: EndpointCounts
  /** Stops taking connections, lets open requests finish for `drainMs` (default 10,000), then ends everything. Idempotent. */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

const DRAIN_MS = 10_000
const FAILURES_PER_MINUTE_MAX = 100
const SWEEP_MS_MIN = 10
const SWEEP_MS_MAX = 1_000
const SESSION_ID_BYTES = 24

/**
 * Opens an endpoint.
 * @throws {EndpointError} `token-required`, `token-weak`, `address-in-use`, `address-unavailable`, `invalid-options`
 */
export async function serveHttp(options: HttpEndpointOptions): Promise<HttpEndpoint> {
  const { hostname = '127.0.0.1', tokens = [] } = options
  if (!isLoopback(hostname) && tokens.length === 0)
    throw new EndpointError('token-required', `"${hostname}" can be reached by others: serving there needs a token`)
  for (const { name, token } of tokens) {
    const fault = tokenFault(token)
    if (fault !== undefined) throw new EndpointError('token-weak', `The token "${name}" is refused: ${fault}`)
  }
  const { port = 0, allowedHosts = [], allowedOrigins = [] } = options
  checkAddresses({ port, allowedHosts, allowedOrigins })
  const endpoint = new RunningEndpoint(options, limitsFrom(options.limits))
  await endpoint.listen(hostname, port)
  return endpoint
}

class RunningEndpoint implements HttpEndpoint {
  readonly #options: HttpEndpointOptions
  readonly #limits: EndpointLimits
  readonly #platform: EndpointPlatform
  readonly #server: Http.Server
  readonly #sessions: SessionStore
  readonly #parked: ParkedCalls
  readonly #dispatcher: Dispatcher
  readonly #route: McpRoute
  readonly #tokens: TokenCheck
  readonly #failures: FailureCount
  #policy: DoorPolicy | undefined
  #port = 0
  #sweeping: TimerHandle | undefined
  #commentedAtMs = 0
  #closing: Promise<void> | undefined

  constructor(options: HttpEndpointOptions, limits: EndpointLimits) {
    const { application, platform = nodePlatform, tokens = [] } = options
    this.#options = options
    this.#limits = limits
    this.#platform = platform
    const now = (): number => platform.now()
    this.#parked = new ParkedCalls(
      new StateSealer(
        (count) => platform.randomBytes(count),
        () => platform.dateMs(),
      ),
      limits,
      platform,
    )
    this.#dispatcher = new Dispatcher(application, this.#parked, limits)
    this.#sessions = new SessionStore(limits, (session) => application.clientClosed?.(session))
    this.#tokens = new TokenCheck(tokens)
    this.#failures = new FailureCount(now, FAILURES_PER_MINUTE_MAX)
    this.#route = new McpRoute({
      dispatcher: this.#dispatcher,
      sessions: this.#sessions,
      bodies: new BodyBudget(limits),
      replay: new ReplayBudget(limits.replayBytesTotalMax),
      output: new OutputBudget(limits.outputBytesTotalMax),
      now,
      newSessionId: () => platform.randomBytes(SESSION_ID_BYTES).toString('base64url'),
    })
    this.#server = makeServer(limits, (request, response) => this.#visit(request, response))
  }

  get url(): string {
    return `http://${urlHost(this.#options.hostname ?? '127.0.0.1')}:${this.#port}${this.#options.path ?? '/mcp'}`
  }

  get port(): number {
    return this.#port
  }

  get counts(): EndpointCounts {
    return {
      sessions: this.#sessions.size,
      calls: this.#route.callCount,
      parkedCalls: this.#parked.size,
      listeners: this.#dispatcher.listenerCount,
    }
  }

  async listen(hostname: string, port: number): Promise<void> {
    this.#port = await listen(this.#server, hostname, port)
    this.#policy = policyOf(this.#options, this.#limits, { hostname, port: this.#port })
    this.#sweepLater()
  }

  #visit(request: Http.IncomingMessage, response: Http.ServerResponse): void {
    response.on('error', ignore)
    const policy = this.#policy
    if (policy === undefined || this.#closing !== undefined)
      return refuse(request, response, { status: 503, message: 'The endpoint is closing' })
    const { method = '', url: target = '', headers, rawHeaders } = request
    if (method === 'OPTIONS' && isPreflight(headers, policy)) return answerPreflight(headers.origin as string, response)
    const admission = admit({ method, target, headers, rawHeaders }, policy, this.#tokens.owner)
    if (admission.kind === 'refused') {
      const flooded = admission.refusal.status === 401 && this.#failures.note(request.socket.remoteAddress ?? '')
      return refuse(
        request,
        response,
        flooded ? { status: 429, message: 'Too many wrong tokens from this address' } : admission.refusal,
      )
    }
    if (target === HEALTH_PATH) return answerHealth(method, response)
    if (headers.expect !== undefined) response.writeContinue()
    const visit: Visit = {
      request,
      response,
      principal: admission.principal,
      extraHeaders: corsHeaders(headers.origin, policy),
    }
    if (method === 'POST') this.#route.post(visit)
    else if (method === 'GET') this.#route.get(visit)
    else this.#route.delete(visit)
  }

  #sweepLater(): void {
    const { resumeWindowMs, askTimeoutMs, sessionIdleMs, keepAliveCommentMs } = this.#limits
    const wantedMs = Math.min(resumeWindowMs, askTimeoutMs, sessionIdleMs, keepAliveCommentMs) / 4
    const sweepMs = Math.min(SWEEP_MS_MAX, Math.max(SWEEP_MS_MIN, wantedMs))
    this.#sweeping = this.#platform.setTimer(() => this.#sweep(), sweepMs, 'background')
  }

  #sweep(): void {
    const nowMs = this.#platform.now()
    this.#sessions.sweep(nowMs)
    this.#parked.sweep(nowMs)
    const readers = nowMs - this.#commentedAtMs >= this.#limits.keepAliveCommentMs
    if (readers) this.#commentedAtMs = nowMs
    this.#route.keepAlive(nowMs, readers)
    this.#sweepLater()
  }

  close({ drainMs = DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<void> {
    return (this.#closing ??= this.#close(drainMs))
  }

  async #close(drainMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    this.#dispatcher.endListeners()
    this.#route.endReaders()
    await this.#drained(drainMs)
    this.#platform.clearTimer(this.#sweeping)
    this.#parked.close('The endpoint is closing')
    this.#sessions.closeAll('The endpoint is closing')
    this.#server.closeIdleConnections()
    // What is left has had its time. Answers written in this turn still leave.
    await new Promise<void>((resolve) => setImmediate(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  async #drained(drainMs: number): Promise<void> {
    let timer: TimerHandle | undefined
    const late = new Promise<void>((resolve) => {
      timer = this.#platform.setTimer(resolve, drainMs)
    })
    await Promise.race([this.#route.whenIdle(), late])
    this.#platform.clearTimer(timer)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

const HEALTH_PATH = '/health'

function ignore(): void {
  // A connection that breaks is told by `close`.
}

function policyOf(
  options: HttpEndpointOptions,
  limits: EndpointLimits,
  bound: { hostname: string; port: number },
): DoorPolicy {
  const { path = '/mcp', allowedHosts = [], allowedOrigins = [] } = options
  const hosts = servedHosts(bound, allowedHosts)
  return {
    hosts,
    origins: servedOrigins(hosts, allowedOrigins),
    foreignOrigins: new Set(allowedOrigins),
    routes: new Map<string, Route>([
      [path, { access: 'token', methods: ['POST', 'GET', 'DELETE'] }],
      [HEALTH_PATH, { access: 'public', methods: ['GET', 'HEAD'] }],
    ]),
    bodyBytesMax: limits.bodyBytesMax,
    headerCountMax: limits.headerCountMax,
  }
}

function makeServer(
  limits: EndpointLimits,
  visit: (request: Http.IncomingMessage, response: Http.ServerResponse) => void,
): Http.Server {
  const server = http.createServer(
    {
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: Math.max(limits.bodyTimeoutMs, limits.headersTimeoutMs),
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, limits.headersTimeoutMs, limits.bodyTimeoutMs),
    },
    visit,
  )
  server.maxHeadersCount = 0 // Node would drop further lines silently; the door counts them
  server.maxConnections = limits.connectionsMax
  server.on('checkContinue', visit)
  // A quiet connection is fine; one whose reader takes nothing of what waits for it is not.
  server.setTimeout(limits.outputStallMs, (socket) => {
    if (socket.writableLength > 0) socket.destroy()
  })
  return server
}

function listen(server: Http.Server, hostname: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const code = cause.code === 'EADDRINUSE' ? 'address-in-use' : 'address-unavailable'
      const why =
        code === 'address-in-use' ? 'is in use by another process' : `cannot be used (${cause.code ?? cause.message})`
      reject(new EndpointError(code, `The address ${urlHost(hostname)}:${port} ${why}`, cause))
    })
    server.listen({ host: hostname.replace(/^\[|\]$/g, ''), port }, () => {
      server.removeAllListeners('error')
      // One connection that could not be accepted is no reason to end.
      server.on('error', ignore)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

function isPreflight({ origin, ...headers }: Http.IncomingHttpHeaders, policy: DoorPolicy): boolean {
  return (
    origin !== undefined &&
    policy.foreignOrigins.has(origin) &&
    headers.host !== undefined &&
    policy.hosts.has(headers.host)
  )
}

/** A page of an origin that was allowed by name asks whether it may call. Nothing is said to anybody else. */
function answerPreflight(origin: string, response: Http.ServerResponse): void {
  response.writeHead(204, [
    ...['access-control-allow-origin', origin, 'vary', 'origin', 'access-control-max-age', '600'],
    ...['access-control-allow-methods', 'POST, GET, DELETE'],
    'access-control-allow-headers',
    'authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name',
  ])
  response.end()
}

const NO_HEADERS: readonly string[] = []

function corsHeaders(origin: string | undefined, policy: DoorPolicy): readonly string[] {
  if (origin === undefined || !policy.foreignOrigins.has(origin)) return NO_HEADERS
  return ['access-control-allow-origin', origin, 'vary', 'origin', 'access-control-expose-headers', 'mcp-session-id']
}

function answerHealth(method: string, response: Http.ServerResponse): void {
  response.writeHead(200, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': 2,
    'x-content-type-options': 'nosniff',
  })
  response.end(method === 'HEAD' ? undefined : 'ok')
}
