// The one door out. Every HTTP request of this package, and of what uses it for sign-in or catalogs, leaves here: scheme, headers, redirects, encodings,
// sizes, times, addresses and safe repetition are decided in this file and in outbound-rules.ts, and nowhere else.
import { type AddressRule, addressKind } from './address.ts'
import { ByteList } from './byte-list.ts'
import type { ConnectOptions } from './connector.ts'
import { WireError } from './errors.ts'
import type { Exchange, ExchangeSink, FailureFacts, HttpClient } from './http-port.ts'
import { Inflate } from './inflate.ts'
import {
  ACCEPT_ENCODING,
  checkHeaders,
  contentCoding,
  planRedirect,
  type RedirectPolicy,
  readUrl,
} from './outbound-rules.ts'
import { nodePlatform, type Platform } from './platform.ts'
import { bareHost, chooseProxy, portOf } from './proxy.ts'

/** Exchanges with one origin at the same time. Each holds one connection. */
export const SOCKETS_MAX = 128
/** Requests to one origin that wait for a connection; the next one fails. */
export const WAITING_REQUESTS_MAX = 10_000
/** How often a request is sent again over another connection because an idle one turned out to be closed. */
const REPEATS_MAX = 2
const ANSWER_BYTES_MAX = 1024 * 1024
const ANSWER_TIMEOUT_MS = 30_000

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

export interface DoorRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query on the origin of the door. */
  readonly path: string
  /** Flat, names in lower case. */
  readonly headers: readonly string[]
  readonly body?: string | undefined
  readonly redirects: RedirectPolicy
  /**
   * Doing it twice does no harm: it is sent again when a connection that had been idle breaks before the first byte of the answer. Without it, only
   * what has certainly not arrived is sent again.
   */
  readonly repeatable: boolean
}

/** Requests to one origin. */
export class Door {
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

/** One request on its way through the door, with its redirects and repetitions. */
class Passage implements Exchange, ExchangeSink {
  readonly #door: Door
  readonly #sink: ExchangeSink
  #request: DoorRequest
  #client: HttpClient | undefined
  #isAscii = true
  #exchange: Exchange | undefined
  #inflate: Inflate | undefined
  #hops = 0
  #repeats = 0
  #answering = false
  #over = false

  constructor(door: Door, request: DoorRequest, sink: ExchangeSink) {
    this.#door = door
    this.#request = request
    this.#sink = sink
  }

  get isOver(): boolean {
    return this.#over
  }

  get sent(): boolean {
    return this.#exchange?.sent ?? false
  }

  start(client: HttpClient): void {
    this.#client = client
    try {
      this.#isAscii = checkHeaders(this.#request.headers)
    } catch (error) {
      return this.refuse(error as WireError)
    }
    this.#go(client)
  }

  #go(client: HttpClient): void {
    const { method, path, headers, body } = this.#request
    this.#exchange = client.exchange(
      { method, path, headers: ['accept-encoding', ACCEPT_ENCODING, ...headers], body, isAscii: this.#isAscii },
      this,
    )
  }

  /** Fails later, never during the call that sends. */
  refuse(error: WireError): void {
    process.nextTick(() => this.#fail(error, { sent: false, reused: false }))
  }

  head(status: number, header: (name: string) => string | undefined): void {
    if (status >= 300 && status < 400 && this.#redirected(status, header('location'))) return
    const encoding = header('content-encoding')
    const coding = encoding === undefined ? 'identity' : contentCoding(encoding)
    if (coding === undefined)
      return this.#stop(
        new WireError(
          'refused',
          `The answer has the content encoding "${printable(encoding ?? '')}", which was not asked for`,
          {
            status,
            sent: true,
          },
        ),
      )
    if (coding !== 'identity') this.#inflate = new Inflate(coding, this.#decoded())
    this.#answering = true
    this.#sink.head(status, header)
  }

  /** True: this answer goes no further. */
  #redirected(status: number, location: string | undefined): boolean {
    const { method, path, redirects: policy } = this.#request
    const from = new URL(path, this.#door.url)
    const plan = planRedirect({ status, location, from, method, policy, hops: this.#hops })
    if (plan.kind === 'take') return false
    if (plan.kind === 'refuse') this.#stop(new WireError('refused', plan.message, { status, sent: true }))
    else this.#follow(plan.path, plan.method)
    return true
  }

  #follow(path: string, method: 'keep' | 'get'): void {
    const client = this.#client
    this.#exchange?.drop()
    if (client === undefined || this.#over) return
    this.#hops++
    this.#request =
      method === 'keep'
        ? { ...this.#request, path }
        : { ...this.#request, path, method: 'GET', body: undefined, headers: withoutContent(this.#request.headers) }
    // Not from within the client's own callback.
    setImmediate(() => {
      if (!this.#over) this.#go(client)
    })
  }

  data(chunk: Buffer): void {
    if (this.#over || !this.#answering) return
    if (this.#inflate === undefined) this.#sink.data(chunk)
    else this.#inflate.push(chunk)
  }

  end(): void {
    if (this.#over) return
    if (this.#inflate === undefined) this.#finish()
    else this.#inflate.end()
  }

  #finish(): void {
    if (!this.#leave()) return
    this.#sink.end()
  }

  fail(error: WireError, facts: FailureFacts): void {
    if (this.#over) return
    const client = this.#client
    const again = facts.reused && !this.#answering && (!facts.sent || this.#request.repeatable)
    if (!again || client === undefined || this.#repeats >= REPEATS_MAX) return this.#fail(error, facts)
    this.#repeats++
    // After the events of this round: other idle connections that the server has closed are out of the pool then.
    setImmediate(() => {
      if (!this.#over) this.#go(client)
    })
  }

  #fail(error: WireError, facts: FailureFacts): void {
    if (this.#leave()) this.#sink.fail(error, facts)
  }

  /** This side ends the exchange because of what came. */
  #stop(error: WireError): void {
    if (this.#over) return
    this.#exchange?.drop()
    this.#fail(error, { sent: true, reused: false })
  }

  #decoded(): ConstructorParameters<typeof Inflate>[1] {
    return {
      data: (chunk) => {
        if (!this.#over) this.#sink.data(chunk)
      },
      end: () => this.#finish(),
      fail: (error) => this.#stop(error),
      pause: () => this.#exchange?.pause(),
      resume: () => this.#exchange?.resume(),
    }
  }

  drop(): void {
    if (!this.#leave()) return
    this.#exchange?.drop()
  }

  pause(): void {
    this.#exchange?.pause()
  }

  resume(): void {
    this.#exchange?.resume()
  }

  /** False when it was over already. */
  #leave(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#inflate?.drop()
    if (this.#client !== undefined) this.#door.leave()
    return true
  }
}

function withoutContent(headers: readonly string[]): string[] {
  return headers.filter((_, at) => !(headers[at - (at % 2)] ?? '').startsWith('content-'))
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 64)
}

export interface FetchOptions extends DoorOptions {
  /** Default `GET`. */
  readonly method?: 'GET' | 'POST' | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
  /** Default `none`. */
  readonly redirects?: RedirectPolicy | undefined
  /** Bytes of the decoded answer. Default 1 MiB. */
  readonly answerBytesMax?: number | undefined
  /** From the call to the last byte. Default 30,000. */
  readonly timeoutMs?: number | undefined
  /** May the scheme be `http`? Default `loopback`: only to this machine. */
  readonly plainHttp?: 'any' | 'loopback' | 'never' | undefined
  readonly signal?: AbortSignal | undefined
}

export interface FetchedAnswer {
  readonly status: number
  /** One header by its name in lower case. */
  header(name: string): string | undefined
  readonly body: Buffer
}

/**
 * One request to any origin, its whole answer in memory: for sign-in documents, catalogs and the like. Nothing is kept: headers are sent to this origin only,
 * and its connection is closed afterwards. Any status is an answer.
 * @throws {WireError} `refused`, `unreachable`, `closed`, `too-large`, `timed-out`; `cancelled` soon after `signal` aborts. Messages never show a body.
 */
export async function fetchAnswer(url: string, options: FetchOptions = {}): Promise<FetchedAnswer> {
  const { platform = nodePlatform, timeoutMs = ANSWER_TIMEOUT_MS, signal } = options
  const target = readUrl(url)
  refusePlainHttp(target, options.plainHttp ?? 'loopback')
  if (signal?.aborted === true)
    throw new WireError('cancelled', 'The request was cancelled', { cause: signal.reason, sent: false })
  const door = await Door.open(target, options)
  try {
    return await new Promise((resolve, reject) => {
      const sink = new Collector(options.answerBytesMax ?? ANSWER_BYTES_MAX, resolve, reject)
      const exchange = door.send(requestOf(target, options), sink)
      const timer = platform.setTimer(
        () =>
          sink.fail(
            new WireError('timed-out', `${target.host} did not answer within ${timeoutMs} ms`, {
              limit: 'total',
              sent: exchange.sent,
            }),
          ),
        timeoutMs,
      )
      const abort = (): void =>
        sink.fail(
          new WireError('cancelled', 'The request was cancelled', { cause: signal?.reason, sent: exchange.sent }),
        )
      signal?.addEventListener('abort', abort, { once: true })
      sink.settled = () => {
        platform.clearTimer(timer)
        signal?.removeEventListener('abort', abort)
        exchange.drop()
      }
    })
  } finally {
    door.close()
  }
}

function refusePlainHttp(url: URL, rule: 'any' | 'loopback' | 'never'): void {
  if (url.protocol === 'https:' || rule === 'any') return
  const host = bareHost(url.hostname)
  if (rule === 'loopback' && (host === 'localhost' || addressKind(host) === 'loopback')) return
  throw new WireError('refused', `http://${url.host} is not encrypted: only https can be used here`, { sent: false })
}

function requestOf(url: URL, { method = 'GET', headers = {}, body, redirects = 'none' }: FetchOptions): DoorRequest {
  return {
    method,
    path: url.pathname + url.search,
    headers: Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), value]),
    body,
    redirects,
    repeatable: method === 'GET',
  }
}

class Collector implements ExchangeSink {
  settled: () => void = () => {}
  readonly #bytesMax: number
  readonly #resolve: (answer: FetchedAnswer) => void
  readonly #reject: (error: WireError) => void
  readonly #body: ByteList = new ByteList()
  #status = 0
  #header: (name: string) => string | undefined = () => undefined

  constructor(bytesMax: number, resolve: (answer: FetchedAnswer) => void, reject: (error: WireError) => void) {
    this.#bytesMax = bytesMax
    this.#resolve = resolve
    this.#reject = reject
  }

  head(status: number, header: (name: string) => string | undefined): void {
    this.#status = status
    this.#header = header
  }

  data(chunk: Buffer): void {
    if (this.#body.length + chunk.length > this.#bytesMax)
      return this.fail(new WireError('too-large', `The answer has more than ${this.#bytesMax} bytes`, { sent: true }))
    this.#body.add(chunk)
  }

  end(): void {
    this.settled()
    this.#resolve({ status: this.#status, header: this.#header, body: this.#body.join() })
  }

  fail(error: WireError): void {
    this.settled()
    this.#reject(error)
  }
}
