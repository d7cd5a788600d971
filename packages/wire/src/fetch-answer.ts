// One request to any origin with its whole answer in memory: for sign-in documents, catalogs and the like.
import { addressKind } from './address.ts'
import { ByteList } from './byte-list.ts'
import { WireError } from './errors.ts'
import type { ExchangeSink } from './http-port.ts'
import { Door, type DoorOptions } from './outbound.ts'
import { type RedirectPolicy, readUrl } from './outbound-rules.ts'
import type { DoorRequest } from './passage.ts'
import { nodePlatform } from './platform.ts'
import { bareHost } from './proxy.ts'

const ANSWER_BYTES_MAX = 1024 * 1024
const ANSWER_TIMEOUT_MS = 30_000

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
