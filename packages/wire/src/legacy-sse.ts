// The transport of 2024-11-05: one event stream, opened with GET, on which everything comes; its first event names where messages are posted.
import { WireError } from './errors.ts'
import { EventStream } from './event-stream.ts'
import type { Exchange, ExchangeSink } from './http-port.ts'
import { mediaType } from './outbound-rules.ts'
import type { Platform, TimerHandle } from './platform.ts'

/** What the stream needs of the channel. */
export interface OlderOffice {
  readonly platform: Platform
  readonly url: URL
  readonly messageBytesMax: number
  get(sink: ExchangeSink, started: (exchange: Exchange) => void): void
  message(bytes: Buffer, start: number, end: number): void
  oversized(head: Buffer, tail: Buffer, length: number): void
  /** The stream had been good and is gone: what waits for an answer will not get one. */
  lost(error: WireError): void
}

/** From the request to the `endpoint` event. */
const ENDPOINT_TIMEOUT_MS = 15_000
const ENDPOINT_BYTES_MAX = 8 * 1024

/** One stream; its life is one session. */
export class OlderStream implements ExchangeSink {
  readonly #office: OlderOffice
  readonly #events: EventStream
  #exchange: Exchange | undefined
  #timer: TimerHandle | undefined
  #opened: { resolve(path: string): void; reject(error: WireError): void } | undefined
  #over = false

  constructor(office: OlderOffice) {
    this.#office = office
    this.#events = new EventStream(
      {
        message: (bytes, start, end) => office.message(bytes, start, end),
        oversized: (head, tail, length) => office.oversized(head, tail, length),
        other: (type, bytes, start, end) => {
          if (type === 'endpoint') this.#endpoint(bytes, start, end)
        },
      },
      office.messageBytesMax,
    )
  }

  /**
   * Resolves with the path to post to, on the same origin.
   * @throws {WireError} `http`, `unauthorized`, `malformed` (no event stream, no endpoint), `refused` (an endpoint elsewhere), `timed-out`, `unreachable`, `closed`.
   */
  open(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#opened = { resolve, reject }
      this.#timer = this.#office.platform.setTimer(
        () =>
          this.#end(
            new WireError('timed-out', `The event stream named no endpoint within ${ENDPOINT_TIMEOUT_MS} ms`, {
              limit: 'startup',
              sent: false,
            }),
          ),
        ENDPOINT_TIMEOUT_MS,
      )
      this.#office.get(this, (exchange) => {
        this.#exchange = exchange
        if (this.#over) exchange.drop()
      })
    })
  }

  /** Nothing comes any more. */
  close(): void {
    this.#end(new WireError('closed', 'The session was closed', { sent: false }), 'quietly')
  }

  head(status: number, header: (name: string) => string | undefined): void {
    const server = this.#office.url.host
    if (status === 401 || status === 403) {
      const challenge = header('www-authenticate')
      this.#end(
        new WireError('unauthorized', `${server} wants a sign-in (HTTP ${status})`, {
          status,
          sent: false,
          ...(challenge === undefined ? {} : { challenge }),
        }),
      )
    } else if (status < 200 || status > 299)
      this.#end(
        new WireError('http', `${server} answered HTTP ${status} to the request for its event stream`, {
          status,
          sent: false,
        }),
      )
    else if (mediaType(header('content-type')) !== 'text/event-stream')
      this.#end(
        new WireError('malformed', `${server} answered the request for its event stream with something else`, {
          status,
          sent: false,
        }),
      )
  }

  data(chunk: Buffer): void {
    if (!this.#over) this.#events.push(chunk)
  }

  end(): void {
    this.#end(new WireError('closed', 'The event stream was closed by the server'))
  }

  fail(error: WireError): void {
    this.#end(error)
  }

  #endpoint(bytes: Buffer, start: number, end: number): void {
    const opened = this.#opened
    if (opened === undefined) return // it never moves
    const base = this.#office.url
    const text = end - start > ENDPOINT_BYTES_MAX ? '' : bytes.toString('utf8', start, end).trim()
    if (text === '' || !URL.canParse(text, base.href))
      return this.#end(
        new WireError('malformed', 'The endpoint that the event stream names is not a URL', { sent: false }),
      )
    const url = new URL(text, base.href)
    if (url.origin !== base.origin)
      return this.#end(
        new WireError(
          'refused',
          `The endpoint that the event stream names is at ${url.origin}, another origin than ${base.origin}`,
          { sent: false },
        ),
      )
    this.#opened = undefined
    this.#office.platform.clearTimer(this.#timer)
    opened.resolve(url.pathname + url.search)
  }

  #end(error: WireError, how: 'aloud' | 'quietly' = 'aloud'): void {
    if (this.#over) return
    this.#over = true
    this.#events.end()
    this.#office.platform.clearTimer(this.#timer)
    this.#exchange?.drop()
    const opened = this.#opened
    this.#opened = undefined
    if (opened !== undefined) opened.reject(error)
    else if (how === 'aloud') this.#office.lost(error)
  }
}
