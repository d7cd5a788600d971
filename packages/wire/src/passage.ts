// One request on its way through the door: its redirects, its repetitions, and the decoding of its answer.
import { WireError } from './errors.ts'
import type { Exchange, ExchangeSink, FailureFacts, HttpClient } from './http-port.ts'
import { Inflate } from './inflate.ts'
import { ACCEPT_ENCODING, checkHeaders, contentCoding, planRedirect, type RedirectPolicy } from './outbound-rules.ts'

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

/** What a passage needs of its door. */
export interface Doorway {
  readonly url: URL
  readonly isClosed: boolean
  /** A passage that had been started is over. */
  leave(): void
}

/** How often a request is sent again over another connection because an idle one turned out to be closed. */
const REPEATS_MAX = 2

/** One request on its way through the door, with its redirects and repetitions. */
export class Passage implements Exchange, ExchangeSink {
  readonly #door: Doorway
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

  constructor(door: Doorway, request: DoorRequest, sink: ExchangeSink) {
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
    if (status === 407) return this.#stop(proxyRefused(), false)
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
    if (this.#door.isClosed) this.#leave()
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
  #stop(error: WireError, sent = true): void {
    if (this.#over) return
    this.#exchange?.drop()
    this.#fail(error, { sent, reused: false })
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

function proxyRefused(): WireError {
  return new WireError('unreachable', 'The proxy answered 407: it wants a user name and password in the proxy URL', {
    status: 407,
    sent: false,
  })
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 64)
}
