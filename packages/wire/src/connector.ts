// Opens connections to one origin: name, address rule, TCP, proxy tunnel, TLS, all within one time limit. Both HTTP clients use it, so the rules
// and the messages are the same. Modules of Node are loaded when the first connection is opened.
import type * as Crypto from 'node:crypto'
import type * as Dns from 'node:dns'
import type * as Http from 'node:http'
import type * as Net from 'node:net'
import type * as Tls from 'node:tls'
import { type AddressRule, addressKind, isAllowed } from './address.ts'
import { describeConnectFailure } from './connect-failure.ts'
import { WireError } from './errors.ts'
import type { ProxyChoice } from './proxy.ts'

export interface ConnectOptions {
  readonly secure: boolean
  /** Name or address, without brackets. */
  readonly host: string
  readonly port: number
  /** Certificates to trust besides the usual ones, PEM. */
  readonly ca?: string | undefined
  readonly proxy?: ProxyChoice | undefined
  /** Checked on the address that is connected to, at that moment. Default `any`. Through a proxy only an address in the URL can be checked. */
  readonly addresses?: AddressRule | undefined
  /** For name, TCP, proxy and TLS together. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined
}

export type Connected = (error: WireError | null, socket: Net.Socket | null) => void

const CONNECT_TIMEOUT_MS = 10_000
const TCP_KEEP_ALIVE_MS = 30_000
const PROXY_HEADER_BYTES_MAX = 16 * 1024

/** Opens connections to one origin. Owns a connection until it hands it over. */
export class Connector {
  readonly #options: ConnectOptions
  readonly #attempts = new Set<Attempt>()
  #context: Tls.SecureContext | undefined
  #tlsSession: Buffer | undefined
  #closed = false

  /** @throws {WireError} `refused`: the `ca` is no PEM. */
  constructor(options: ConnectOptions) {
    this.#options = options
    if (options.secure && options.ca !== undefined) this.#context = secureContext(options.ca)
  }

  get options(): ConnectOptions {
    return this.#options
  }

  /** Calls back exactly once, later: with a connection that is ready for HTTP, or with `unreachable` or `refused`. After `close` with `unreachable`. */
  connect(done: Connected): void {
    const attempt = new Attempt(this, (error, socket) => {
      this.#attempts.delete(attempt)
      done(error, socket)
    })
    this.#attempts.add(attempt)
    if (this.#closed) attempt.fail(new WireError('unreachable', 'The client is closed', { sent: false }))
    else attempt.start()
  }

  /** Ends the attempts that are under way. Idempotent. */
  close(): void {
    this.#closed = true
    for (const attempt of this.#attempts)
      attempt.fail(new WireError('unreachable', 'The client was closed', { sent: false }))
  }

  /** @internal The parts of TLS that connections of one origin share. */
  tls(): { secureContext: Tls.SecureContext; session: Buffer | undefined } {
    return { secureContext: (this.#context ??= secureContext(this.#options.ca)), session: this.#tlsSession }
  }

  /** @internal Makes the next handshake shorter. */
  keepTlsSession(session: Buffer): void {
    this.#tlsSession = session
  }
}

/** One connection on its way. */
class Attempt {
  readonly #connector: Connector
  readonly #options: ConnectOptions
  readonly #done: Connected
  #timer: NodeJS.Timeout | undefined
  /** The outermost layer so far; destroying it destroys those beneath. */
  #socket: Net.Socket | undefined
  #over = false

  constructor(connector: Connector, done: Connected) {
    this.#connector = connector
    this.#options = connector.options
    this.#done = done
  }

  start(): void {
    const { connectTimeoutMs = CONNECT_TIMEOUT_MS, host, port, proxy } = this.#options
    this.#timer = setTimeout(
      () =>
        this.fail(
          unreachable(
            `No connection to ${host}:${port} within ${connectTimeoutMs} ms${proxy === undefined ? '' : ` through the proxy ${proxy.name}`}`,
          ),
        ),
      connectTimeoutMs,
    )
    const refusal = this.#refusedAddress()
    if (refusal !== undefined) return void setImmediate(() => this.fail(refusal))
    if (proxy === undefined) this.#tcp(host, port, () => this.#secure())
    else this.#tcp(proxy.host, proxy.port, () => this.#throughProxy(proxy))
  }

  fail(error: WireError): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    this.#socket?.destroy()
    this.#done(error, null)
  }

  /** An address in the URL itself needs no look-up. */
  #refusedAddress(): WireError | undefined {
    const { host, addresses = 'any' } = this.#options
    if (addressKind(host) === 'not-an-address' || isAllowed(host, addresses)) return undefined
    return refusedAddress(host, host)
  }

  #tcp(host: string, port: number, next: () => void): void {
    const net = process.getBuiltinModule('node:net') as typeof Net
    const { addresses = 'any', proxy } = this.#options
    const socket = net.connect({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      ...(addresses === 'any' || proxy !== undefined ? {} : { lookup: checkedLookup(addresses) }),
    })
    this.#own(socket)
    socket.once('connect', next)
  }

  #own(socket: Net.Socket): void {
    this.#socket = socket
    socket.on('error', this.#broken)
  }

  readonly #broken = (error: Error): void => {
    if (error instanceof WireError) return this.fail(error)
    const { host, port, proxy, ca } = this.#options
    const message = describeConnectFailure(error, { host, port, proxy: proxy?.name, hasCa: ca !== undefined })
    this.fail(unreachable(message, error))
  }

  #throughProxy(proxy: ProxyChoice): void {
    if (proxy.secure) return this.#handshake(proxy.host, () => this.#tunnel(proxy))
    this.#tunnel(proxy)
  }

  /** https goes through a tunnel; http is asked of the proxy itself, by requests that name the whole URL. */
  #tunnel(proxy: ProxyChoice): void {
    if (!this.#options.secure) return this.#finish()
    const { host, port } = this.#options
    const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
    const http = process.getBuiltinModule('node:http') as typeof Http
    const socket = this.#socket as Net.Socket
    const request = http.request({
      method: 'CONNECT',
      path: target,
      headers: {
        host: target,
        ...(proxy.authorization === undefined ? {} : { 'proxy-authorization': proxy.authorization }),
      },
      createConnection: () => socket,
      maxHeaderSize: PROXY_HEADER_BYTES_MAX,
    })
    request.on('error', this.#broken)
    request.once('connect', (response, _socket, head) => {
      const { statusCode = 0 } = response
      if (statusCode < 200 || statusCode > 299) return this.fail(refusedByProxy(proxy, target, statusCode))
      if (head.length > 0) socket.unshift(head)
      this.#secure()
    })
    request.end()
  }

  #secure(): void {
    if (!this.#options.secure) return this.#finish()
    this.#handshake(this.#options.host, () => this.#finish())
  }

  #handshake(host: string, next: () => void): void {
    if (this.#over || this.#socket === undefined) return
    const tls = process.getBuiltinModule('node:tls') as typeof Tls
    const forServer = host === this.#options.host
    const { secureContext, session } = this.#connector.tls()
    const socket = tls.connect({
      socket: this.#socket,
      host,
      ...(addressKind(host) === 'not-an-address' ? { servername: host } : {}),
      ALPNProtocols: ['http/1.1'],
      secureContext,
      // Said outright: a variable of the environment must not switch the check off.
      rejectUnauthorized: true,
      ...(forServer && session !== undefined ? { session } : {}),
    })
    this.#own(socket)
    if (forServer) socket.on('session', (fresh) => this.#connector.keepTlsSession(fresh))
    socket.once('secureConnect', next)
  }

  #finish(): void {
    const socket = this.#socket
    if (this.#over || socket === undefined) return
    this.#over = true
    clearTimeout(this.#timer)
    socket.off('error', this.#broken)
    socket.on('error', ignore) // its user listens too, but perhaps not from this very moment on
    this.#done(null, socket)
  }
}

function ignore(): void {}

/** Resolves a name and looks at every address before any of them is used; what is returned is what is connected to. */
function checkedLookup(rule: AddressRule): Net.LookupFunction {
  const dns = process.getBuiltinModule('node:dns') as typeof Dns
  return (hostname, options, callback) => {
    dns.lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, [])
      const bad = found.find(({ address }) => !isAllowed(address, rule))
      const [first] = found
      if (bad !== undefined || first === undefined)
        return callback(refusedAddress(hostname, bad?.address ?? 'nothing'), [])
      if (options.all === true) callback(null, found)
      else callback(null, first.address, first.family)
    })
  }
}

function secureContext(ca: string | undefined): Tls.SecureContext {
  const tls = process.getBuiltinModule('node:tls') as typeof Tls
  if (ca === undefined) return tls.createSecureContext({ minVersion: 'TLSv1.2' })
  // Node takes anything, and trusts nothing more then.
  const { X509Certificate } = process.getBuiltinModule('node:crypto') as typeof Crypto
  try {
    const blocks = ca.match(/-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]*-----END (?:TRUSTED )?CERTIFICATE-----/g) ?? [
      '',
    ]
    for (const block of blocks) new X509Certificate(block)
    return tls.createSecureContext({ minVersion: 'TLSv1.2', ca: [...tls.getCACertificates('default'), ...blocks] })
  } catch (cause) {
    throw new WireError('refused', 'The "ca" of this server holds no certificate in PEM form', { cause, sent: false })
  }
}

function refusedAddress(host: string, address: string): WireError {
  const leads = host === address ? `${host} is` : `"${host}" leads to ${address}, which is`
  return new WireError('refused', `${leads} not a public address, and this request may not go to another one`, {
    sent: false,
  })
}

function refusedByProxy(proxy: ProxyChoice, target: string, status: number): WireError {
  const way = status === 407 ? ': it wants a user name and password in the proxy URL' : ''
  return unreachable(`The proxy ${proxy.name} answered ${status} instead of a tunnel to ${target}${way}`)
}

function unreachable(message: string, cause?: unknown): WireError {
  return new WireError('unreachable', message, { sent: false, ...(cause === undefined ? {} : { cause }) })
}
