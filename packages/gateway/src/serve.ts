// Opens a gateway: a host on one side, an endpoint on the other.
import type { Readable, Writable } from 'node:stream'
import type { Host, JsonObject } from '@convoke/host'
import {
  checkLimit,
  EndpointError,
  type EndpointErrorCode,
  type EndpointLimits,
  type HttpEndpoint,
  isLoopback,
  type StdioEndpoint,
  serveHttp,
  serveStdio,
  tokenFault,
} from '@convoke/wire/server'
import { GatewayError, type GatewayErrorCode } from './errors.ts'
import { SharedApplication } from './shared-application.ts'
import { takeStdout } from './stdout-guard.ts'
import { TransparentApplication } from './transparent-application.ts'

/** Where a gateway listens. */
export interface GatewayHttpOptions {
  /** Default `127.0.0.1`. Any address that is not loopback needs a token. */
  readonly hostname?: string
  /** Default 0: a free one. */
  readonly port?: number
  /** At least 32 characters. Clients send it as `Authorization: Bearer TOKEN`. `createToken()` makes one. */
  readonly token?: string
  /** Refuses to start without a token, also on loopback. Default false. */
  readonly requireToken?: boolean
  /** Further values of the Host header, such as `tools.example`: behind a proxy, or bound to all addresses. */
  readonly allowedHosts?: readonly string[]
  /** Web origins whose pages may call, such as `https://app.example`. */
  readonly allowedOrigins?: readonly string[]
}

/** One client at the other end of two streams. */
export interface GatewayStdioOptions {
  /** Default: stdin of the process. */
  readonly input?: Readable
  /** Default: stdout of the process; whatever else is written there goes to stderr until the gateway closes. */
  readonly output?: Writable
}

/** What {@link serveGateway} takes. Without `stdio` it listens over HTTP. */
export interface GatewayOptions {
  readonly http?: GatewayHttpOptions
  readonly stdio?: GatewayStdioOptions | true
  /** Serve this server alone, without renaming, each session on a connection of its own. */
  readonly transparent?: string
  /** Default: name `convoke`. */
  readonly serverInfo?: { readonly name: string; readonly version: string; readonly title?: string }
  readonly limits?: Partial<GatewayLimits>
  /**
   * What becomes of an elicitation whose client cannot be asked: it is declined at once, or stays open for `Host.answer` (then make the host with
   * `parkingHandlers`). Default `decline`.
   */
  readonly questions?: 'decline' | 'park'
}

/** Limits of a gateway: those of its endpoint, and two waits. */
export interface GatewayLimits extends EndpointLimits {
  /** The first lists wait so long for servers that are starting, in ms; they count from the opening of the gateway. Default 5,000. */
  readonly listWaitMs: number
  /** A call to a server that is not ready waits so long for it, in ms. Default 30,000. */
  readonly callWaitMs: number
}

/** A gateway that serves. */
export interface Gateway extends AsyncDisposable {
  /** `http://HOST:PORT/mcp`; undefined over stdio. */
  readonly url: string | undefined
  /** Resolves when it has been closed, or its only client has gone (stdio). Never rejects. */
  readonly closed: Promise<void>
  /** Numbers of now. */
  readonly counts: GatewayCounts
  /** Lets open requests finish for `drainMs` (default 10,000), then ends everything but the host. Idempotent. */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

/** Numbers of a running gateway. */
export interface GatewayCounts {
  readonly sessions: number
  readonly calls: number
  readonly parkedCalls: number
  readonly listeners: number
  /** Subscriptions at servers. */
  readonly subscriptions: number
  /** Connections of single sessions to servers. */
  readonly dedicated: number
}

const LIST_WAIT_MS = 5_000
const CALL_WAIT_MS = 30_000
const VERSION = '0.1.0'

/**
 * Serves a host as one MCP server, and follows it when it is configured anew: sessions stay, clients are told what changed. The host stays the
 * caller's: it is not closed with the gateway.
 *
 * @example
 * const gateway = await serveGateway(host, { http: { port: 8080 } })
 * console.log(gateway.url)
 * await gateway.close()
 *
 * @throws {GatewayError} `GATEWAY_TOKEN_REQUIRED`, `GATEWAY_TOKEN_WEAK`, `GATEWAY_ADDRESS_IN_USE`, `GATEWAY_ADDRESS_UNAVAILABLE`,
 * `GATEWAY_SERVER_UNKNOWN`, `GATEWAY_OPTIONS_INVALID`
 */
export async function serveGateway(host: Host, options: GatewayOptions = {}): Promise<Gateway> {
  checkOptions(host, options)
  const application = await openApplication(host, options)
  try {
    return options.stdio === undefined ? await overHttp(application, options) : overStdio(application, options)
  } catch (error) {
    await application[Symbol.asyncDispose]()
    throw asGatewayError(error)
  }
}

function asGatewayError(error: unknown): unknown {
  return error instanceof EndpointError ? new GatewayError(CODES[error.code], error.message, error) : error
}

const CODES: Readonly<Record<EndpointErrorCode, GatewayErrorCode>> = {
  'token-required': 'GATEWAY_TOKEN_REQUIRED',
  'token-weak': 'GATEWAY_TOKEN_WEAK',
  'address-in-use': 'GATEWAY_ADDRESS_IN_USE',
  'address-unavailable': 'GATEWAY_ADDRESS_UNAVAILABLE',
  'invalid-options': 'GATEWAY_OPTIONS_INVALID',
}

function checkOptions(host: Host, { http, stdio, transparent, limits = {} }: GatewayOptions): void {
  if (http !== undefined && stdio !== undefined)
    throw new GatewayError('GATEWAY_OPTIONS_INVALID', '"http" and "stdio" exclude each other')
  checkLimits(limits)
  if (transparent !== undefined && !host.statuses.some(({ name }) => name === transparent)) {
    const known = host.statuses.map(({ name }) => `"${name}"`).join(', ')
    throw new GatewayError(
      'GATEWAY_SERVER_UNKNOWN',
      `There is no server "${transparent}" to pass through. Configured: ${known || 'none'}`,
    )
  }
  if (stdio !== undefined) return
  const { hostname = '127.0.0.1', token, requireToken = false } = http ?? {}
  if (token !== undefined) {
    const fault = tokenFault(token)
    if (fault !== undefined) throw new GatewayError('GATEWAY_TOKEN_WEAK', `The token is refused: ${fault}`)
  } else if (requireToken) throw new GatewayError('GATEWAY_TOKEN_REQUIRED', 'A token is required, and none was given')
  else if (!isLoopback(hostname))
    throw new GatewayError(
      'GATEWAY_TOKEN_REQUIRED',
      `"${hostname}" can be reached by others: serving there needs a token`,
    )
}

function checkLimits(limits: Partial<GatewayLimits>): void {
  try {
    for (const [name, value] of Object.entries(limits)) checkLimit(name, value)
  } catch (error) {
    throw asGatewayError(error)
  }
}

type ServedApplication = SharedApplication | TransparentApplication

async function openApplication(host: Host, options: GatewayOptions): Promise<ServedApplication> {
  const { transparent, limits = {} } = options
  if (transparent !== undefined)
    return new TransparentApplication({
      host,
      server: transparent,
      unanswered: options.questions ?? 'decline',
    })
  return SharedApplication.open({
    host,
    serverInfo: {
      ...(options.serverInfo ?? { name: 'convoke', title: 'Convoke', version: VERSION }),
    } satisfies JsonObject,
    listWaitMs: limits.listWaitMs ?? LIST_WAIT_MS,
    callWaitMs: limits.callWaitMs ?? CALL_WAIT_MS,
    unanswered: options.questions ?? 'decline',
  })
}

function endpointLimits({ limits = {} }: GatewayOptions): Partial<EndpointLimits> {
  const { listWaitMs: _, callWaitMs: __, ...rest } = limits
  return rest
}

async function overHttp(application: ServedApplication, options: GatewayOptions): Promise<Gateway> {
  const { token, requireToken: _, ...http } = options.http ?? {}
  const endpoint = await serveHttp({
    application,
    ...http,
    ...(token === undefined ? {} : { tokens: [{ name: 'token', token }] }),
    limits: endpointLimits(options),
  })
  return new RunningGateway(application, endpoint, () => {})
}

function overStdio(application: ServedApplication, options: GatewayOptions): Gateway {
  const { input, output } = options.stdio === true || options.stdio === undefined ? {} : options.stdio
  const taken = output === undefined ? takeStdout() : { output, release: () => {} }
  const endpoint = serveStdio({
    application,
    input: input ?? process.stdin,
    output: taken.output,
    limits: endpointLimits(options),
  })
  return new RunningGateway(application, endpoint, taken.release)
}

class RunningGateway implements Gateway {
  readonly url: string | undefined
  readonly closed: Promise<void>
  readonly #application: ServedApplication
  readonly #endpoint: HttpEndpoint | StdioEndpoint
  readonly #release: () => void
  #closing: Promise<void> | undefined
  #resolveClosed: () => void = () => {}

  constructor(application: ServedApplication, endpoint: HttpEndpoint | StdioEndpoint, release: () => void) {
    this.#application = application
    this.#endpoint = endpoint
    this.#release = release
    this.url = 'url' in endpoint ? endpoint.url : undefined
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve
    })
    if ('closed' in endpoint) void endpoint.closed.then(() => this.close())
  }

  get counts(): GatewayCounts {
    return { ...this.#endpoint.counts, ...this.#application.counts }
  }

  close(options?: { readonly drainMs?: number }): Promise<void> {
    this.#closing ??= this.#close(options)
    return this.#closing
  }

  async #close(options: { readonly drainMs?: number } | undefined): Promise<void> {
    await this.#endpoint.close(options)
    await this.#application[Symbol.asyncDispose]()
    this.#release()
    this.#resolveClosed()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
