// The one door out. Every HTTP request of this package, and of what uses it for sign-in or catalogs, leaves here. Scheme, headers, redirects, encodings, sizes,
// addresses and safe repetition are decided in this file, passage.ts and outbound-rules.ts, and nowhere else.
import type { AddressRule } from './address.ts'
import type { ConnectOptions } from './connector.ts'
import { WireError } from './errors.ts'
import type { Exchange, ExchangeSink, HttpClient } from './http-port.ts'
import { readUrl } from './outbound-rules.ts'
import { type DoorRequest, type Doorway, Passage } from './passage.ts'
import { nodePlatform, type Platform } from './platform.ts'
import { bareHost, chooseProxy, portOf } from './proxy.ts'

export type { DoorRequest } from './passage.ts'

/** Exchanges with one origin at the same time. Each holds one connection. */
export const SOCKETS_MAX = 128
/** Requests to one origin that wait for a connection; the next one fails. */
export const WAITING_REQUESTS_MAX = 10_000

export interface DoorOptions {
  /** Default `node`. */
  readonly client?: 'node' | 'undici' | undefined
  /** Certificates to trust besides the usual ones, PEM. */
  readonly ca?: string | undefined
  /** Default `environment`. */
  readonly proxy?: 'environment' | 'none' | (string & {}) | undefined
  /** Which addresses may be connected to. Default `any`: for URLs that the user has written. */
  readonly addresses?: AddressRule | undefined
  /** Default 10,000. */
  readonly connectTimeoutMs?: number | undefined
  /** Default: the real one. */
  readonly platform?: Platform | undefined
  /** Stands in for the network. */
  readonly httpClient?: HttpClient | undefined
}

/** Requests to one origin. */
export class Door implements Doorway {
  readonly #url: URL
  readonly #client: HttpClient
  #active = 0
  /** In the order of their coming; settled ones are skipped when their turn comes. */
  #waiting: Passage[] = []
  #closed = false

  private constructor(url: URL, client: HttpClient) {
    this.#url = url
    this.#client = client
  }

  /**
   * Opens nothing yet; connections are made when they are needed.
   * @throws {WireError} `refused`: the scheme, the proxy setting or the `ca` cannot be used, or the client is not installed.
   */
  static async open(url: URL, options: DoorOptions = {}): Promise<Door> {
    const checked = readUrl(url.href)
    return new Door(checked, options.httpClient ?? (await openClient(checked, options)))
  }

  get url(): URL {
    return this.#url
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /**
   * Sends a request. The sink hears its final answer, decoded, with redirects followed; or one failure: `refused` (also at once, before anything was
   * sent), `unreachable`, `closed`, `malformed`, `too-large`.
   */
  send(request: DoorRequest, sink: ExchangeSink): Exchange {
    const passage = new Passage(this, request, sink)
    if (this.#closed) passage.refuse(new WireError('closed', 'The client is closed', { sent: false }))
    else if (this.#active < SOCKETS_MAX) this.#start(passage)
    else if (this.#waiting.length < WAITING_REQUESTS_MAX) this.#waiting.push(passage)
    else
      passage.refuse(
        new WireError('refused', `${WAITING_REQUESTS_MAX} requests to ${this.#url.host} wait already`, { sent: false }),
      )
    return passage
  }

  /** Ends every exchange and closes every connection. Sinks hear nothing more. Idempotent. */
  close(): void {
    this.#closed = true
    this.#waiting = []
    this.#client.close()
  }

  #start(passage: Passage): void {
    this.#active++
    passage.start(this.#client)
  }

  /** @internal A passage that had been started is over. */
  leave(): void {
    this.#active--
    if (this.#waiting.length > 0) process.nextTick(letIn, this)
  }

  static letIn(door: Door): void {
    while (door.#active < SOCKETS_MAX && !door.#closed) {
      const next = door.#waiting.shift()
      if (next === undefined) return
      if (!next.isOver) door.#start(next)
    }
  }
}

const letIn = Door.letIn

async function openClient(url: URL, options: DoorOptions): Promise<HttpClient> {
  const { ca, addresses, connectTimeoutMs, platform = nodePlatform } = options
  const connect: ConnectOptions = {
    secure: url.protocol === 'https:',
    host: bareHost(url.hostname),
    port: portOf(url),
    proxy: chooseProxy(url, options.proxy ?? 'environment', platform.env),
    ca,
    addresses,
    connectTimeoutMs,
  }
  // Only the client that is used is loaded.
  if (options.client === 'undici') return (await import('./undici-client.ts')).undiciClient(url, connect, SOCKETS_MAX)
  return (await import('./http-client.ts')).nodeClient(url, connect)
}
