// Streamable HTTP of both eras: one POST per message, an answer as JSON or as an event stream, the legacy session and its GET stream.
import { WireError } from './errors.ts'
import { type HttpClient, nodeClient, undiciClient } from './http-client.ts'
import { type HeaderParameter, headerParameters, mirrorHeaders } from './mirror.ts'
import { type Call, type Channel, type ChannelContext, methodNotFound, type Receiver } from './peer.ts'
import { type Era, type JsonObject, MODERN_VERSION, type Tool } from './protocol.ts'
import { EventReader } from './sse.ts'
import type { HttpTarget } from './target.ts'

export type { Authorization, HttpTarget } from './target.ts'

const RECONNECT_MS = 1_000,
  RECONNECTS_MAX = 5,
  AUTH_RETRIES_MAX = 3

export class HttpChannel implements Channel {
  readonly #url: URL
  readonly #target: HttpTarget
  readonly #messageBytesMax: number
  readonly #peer: () => Receiver
  #client: HttpClient
  #base: string[]
  #sessionId: string | undefined
  #listening: (() => void) | undefined
  #closed = false
  readonly multiplexed = false
  readonly #parameters = new Map<string, HeaderParameter[]>()
  version: string | undefined
  era: Era = 'legacy'
  /** A legacy session is gone (404). Resolves when a new one is there; then the call is sent again. */
  onSessionLost: () => Promise<void> = () =>
    Promise.reject(new WireError('session-lost', 'The server has forgotten the session'))

  private constructor(target: HttpTarget, client: HttpClient, messageBytesMax: number, peer: () => Receiver) {
    this.#url = new URL(target.url)
    this.#target = target
    this.#client = client
    this.#messageBytesMax = messageBytesMax
    this.#peer = peer
    this.#base = [
      'accept',
      'application/json, text/event-stream',
      'content-type',
      'application/json',
      ...Object.entries(target.headers ?? {}).flat(),
    ]
  }

  static async open(target: HttpTarget, context: ChannelContext): Promise<HttpChannel> {
    const url = new URL(target.url)
    const client =
      (await context.platform.http?.(url, target)) ??
      (target.client === 'undici' ? await undiciClient(url) : nodeClient(url))
    return new HttpChannel(target, client, context.messageBytesMax, context.receiver)
  }

  speak(era: Era, version: string | undefined): void {
    this.era = era
    if (era === 'legacy') this.version = version
  }

  hasSent(call: Call): boolean {
    return call.sent
  }

  acceptTool(tool: Tool): string | undefined {
    if (this.era === 'legacy') return undefined
    const parameters = headerParameters(tool)
    if ('invalid' in parameters) return parameters.invalid
    if (parameters.length > 0) this.#parameters.set(tool.name, parameters)
    return undefined
  }

  get sessionId(): string | undefined {
    return this.#sessionId
  }

  send(text: string, call: Call | undefined): void {
    this.#post(text, call, { auth: 0, session: 0 })
  }

  #post(text: string, call: Call | undefined, tries: { auth: number; session: number }): void {
    const headers = this.#headers(call, text)
    const { authorization } = this.#target
    if (authorization === undefined) return this.#exchange(headers, text, call, tries)
    const value = authorization.header()
    if (value === undefined || typeof value === 'string')
      return this.#exchange(value === undefined ? headers : ['authorization', value, ...headers], text, call, tries)
    value.then(
      (late) => this.#exchange(late === undefined ? headers : ['authorization', late, ...headers], text, call, tries),
      (cause: unknown) => this.#fail(call, new WireError('unauthorized', 'No credentials', { cause })),
    )
  }

  #headers(call: Call | undefined, text: string): string[] {
    if (this.era === 'modern')
      return [
        ...this.#base,
        ...mirrorHeaders(MODERN_VERSION, call, text, (tool) => this.#parameters.get(tool) ?? []),
        ...Object.entries(call?.options.headers ?? {}).flat(),
      ]
    const headers = [...this.#base]
    if (call?.method === 'initialize') return headers
    if (this.#sessionId !== undefined) headers.push('mcp-session-id', this.#sessionId)
    if (this.version !== undefined) headers.push('mcp-protocol-version', this.version)
    return headers
  }

  #exchange(headers: string[], text: string, call: Call | undefined, tries: { auth: number; session: number }): void {
    if (this.#closed || (call !== undefined && !this.#peer().isPending(call))) return
    const answer = new Answer({
      channel: this,
      peer: this.#peer(),
      call,
      bytesMax: this.#messageBytesMax,
      refused: (status, header, body) => {
        if (
          (status === 401 || status === 403) &&
          this.#target.authorization !== undefined &&
          tries.auth < AUTH_RETRIES_MAX
        ) {
          this.#target.authorization.challenge(status, header('www-authenticate')).then(
            (again) =>
              again
                ? this.#post(text, call, { ...tries, auth: tries.auth + 1 })
                : this.#refuse(call, status, header, body),
            (cause: unknown) =>
              this.#fail(call, new WireError('unauthorized', 'Authorization failed', { status, cause })),
          )
        } else if (
          status === 404 &&
          this.#sessionId !== undefined &&
          this.era === 'legacy' &&
          call?.method !== 'initialize' &&
          tries.session === 0
        ) {
          this.onSessionLost().then(
            () => this.#post(text, call, { ...tries, session: 1 }),
            (error: unknown) =>
              this.#fail(call, error instanceof WireError ? error : new WireError('session-lost', String(error))),
          )
        } else this.#refuse(call, status, header, body)
      },
    })
    if (call !== undefined) call.sent = true
    const abort = this.#client.exchange('POST', headers, text, answer)
    if (call !== undefined) call.abortExchange = abort
  }

  sawSession(id: string | undefined, call: Call | undefined): void {
    if (id !== undefined && call?.method === 'initialize') this.#sessionId = id
  }

  #refuse(call: Call | undefined, status: number, header: (name: string) => string | undefined, body: Buffer): void {
    if (call === undefined) return // a lost notification is not an error of anybody's call
    const rpc = rpcErrorIn(body)
    if (rpc !== undefined) return this.#fail(call, new WireError('remote', rpc.message, { rpc, status }))
    const challenge = header('www-authenticate')
    if (status === 401 || status === 403)
      return this.#fail(
        call,
        new WireError('unauthorized', `HTTP ${status}`, { status, ...(challenge === undefined ? {} : { challenge }) }),
      )
    this.#fail(
      call,
      status === 404 && this.era === 'modern'
        ? methodNotFound(call.method)
        : new WireError('http', `HTTP ${status}`, { status }),
    )
  }

  #fail(call: Call | undefined, error: WireError): void {
    if (call !== undefined) this.#peer().fail(call, error)
  }

  /** The stream broke before the answer came: legacy servers may replay it from an event id. */
  resume(call: Call, lastEventId: string, retryMs: number, attempt = 0): void {
    if (attempt >= RECONNECTS_MAX)
      return this.#fail(call, new WireError('closed', 'The event stream could not be resumed'))
    const timer = setTimeout(() => {
      if (this.#closed || !this.#peer().isPending(call)) return
      const again = (id: string | undefined, ms: number): void => this.resume(call, id ?? lastEventId, ms, attempt + 1)
      const answer = new Answer({
        channel: this,
        peer: this.#peer(),
        call,
        bytesMax: this.#messageBytesMax,
        refused: (status) => this.#fail(call, new WireError('http', `HTTP ${status} while resuming`, { status })),
        stream: { lastEventId, retryMs, again },
      })
      call.abortExchange = this.#client.exchange(
        'GET',
        [...this.#headers(undefined, ''), 'last-event-id', lastEventId],
        '',
        answer,
      )
    }, retryMs)
    call.abortExchange = () => clearTimeout(timer)
  }

  /** The stream on which a legacy server sends what no call asked for. Many servers answer 405: fine. */
  listen(capabilities: JsonObject): void {
    if (this.#sessionId !== undefined || pushes(capabilities)) this.#listen(undefined, RECONNECT_MS)
  }

  #listen(lastEventId: string | undefined, delayMs: number): void {
    if (this.#closed) return
    const headers = this.#headers(undefined, '')
    if (lastEventId !== undefined) headers.push('last-event-id', lastEventId)
    const again = (id: string | undefined, ms: number): void => {
      if (!this.#closed) setTimeout(() => this.#listen(id, ms), ms).unref()
    }
    const answer = new Answer({
      channel: this,
      peer: this.#peer(),
      call: undefined,
      bytesMax: this.#messageBytesMax,
      refused: () => {},
      stream: { lastEventId, retryMs: delayMs, again },
    })
    this.#listening = this.#client.exchange('GET', headers, '', answer)
  }

  cancel(call: Call, reason: string): void {
    if (this.era === 'legacy')
      this.send(
        `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${call.id},"reason":${JSON.stringify(reason)}}}`,
        undefined,
      )
    call.abortExchange?.() // in the modern era this is the cancellation
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#listening?.()
    if (this.#sessionId !== undefined && this.era === 'legacy') await this.#delete()
    this.#peer().end(new WireError('closed', 'The session was closed'))
    this.#client.close()
  }

  #delete(): Promise<void> {
    return new Promise((resolve) => {
      const drop = this.#client.exchange('DELETE', this.#headers(undefined, ''), '', {
        head: () => {},
        data: () => {},
        end: resolve,
        fail: () => resolve(),
      })
      setTimeout(() => {
        drop()
        resolve()
      }, 1_000).unref()
    })
  }
}

type Refused = (status: number, header: (name: string) => string | undefined, body: Buffer) => void
interface Resumable {
  lastEventId: string | undefined
  retryMs: number
  again: (lastEventId: string | undefined, retryMs: number) => void
}

/** Takes one HTTP answer apart. */
class Answer {
  #events: EventReader | undefined
  #parts: Buffer[] = []
  #length = 0
  #status = 0
  #header: (name: string) => string | undefined = () => undefined
  #lastEventId: string | undefined
  #retryMs: number

  readonly channel: HttpChannel
  readonly peer: Receiver
  readonly call: Call | undefined
  readonly bytesMax: number
  readonly refused: Refused
  readonly stream: Resumable | undefined

  constructor(init: {
    channel: HttpChannel
    peer: Receiver
    call: Call | undefined
    bytesMax: number
    refused: Refused
    stream?: Resumable
  }) {
    this.channel = init.channel
    this.peer = init.peer
    this.call = init.call
    this.bytesMax = init.bytesMax
    this.refused = init.refused
    this.stream = init.stream
    this.#lastEventId = init.stream?.lastEventId
    this.#retryMs = init.stream?.retryMs ?? RECONNECT_MS
  }

  head(status: number, header: (name: string) => string | undefined): void {
    this.#status = status
    this.#header = header
    if (status >= 400) return
    this.channel.sawSession(header('mcp-session-id'), this.call)
    if (header('content-type')?.startsWith('text/event-stream') !== true) return
    this.#events = new EventReader(
      {
        event: (bytes, start, end) => {
          if (end > start) this.peer.receive(bytes, start, end, this.call)
        },
        oversized: (head, tail, length) => this.#tooLarge(head, tail, length),
        id: (id) => {
          this.#lastEventId = id
        },
        retry: (ms) => {
          this.#retryMs = ms
        },
      },
      this.bytesMax,
    )
  }

  data(chunk: Buffer): void {
    if (this.#events !== undefined) return this.#events.push(chunk)
    this.#length += chunk.length
    if (this.#length <= this.bytesMax) this.#parts.push(chunk)
    else {
      this.#parts = []
      if (this.call !== undefined) {
        this.#tooLarge(Buffer.alloc(0), Buffer.alloc(0), this.#length)
        this.call.abortExchange?.()
      }
    }
  }

  #tooLarge(head: Buffer, tail: Buffer, length: number): void {
    if (this.call === undefined) this.peer.receiveOversized(head, tail, length)
    else
      this.peer.fail(
        this.call,
        new WireError(
          'too-large',
          `The answer to "${this.call.method}" has ${length} bytes or more, more than allowed`,
        ),
      )
  }

  end(): void {
    const only = this.#parts[0]
    const body = this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts)
    if (this.#status >= 400) return this.refused(this.#status, this.#header, body)
    if (this.#events !== undefined) {
      this.#events.end()
      return this.#streamOver(new WireError('closed', 'The event stream ended before the answer'))
    }
    if (body.length > 0) this.peer.receive(body, 0, body.length, this.call)
    // Asked first: an Error that nobody needs costs a stack trace per call.
    if (this.call !== undefined && this.peer.isPending(this.call))
      this.peer.fail(
        this.call,
        new WireError('malformed', `HTTP ${this.#status} without an answer to "${this.call.method}"`),
      )
  }

  fail(cause: Error): void {
    this.#streamOver(new WireError('closed', `The HTTP exchange failed: ${cause.message}`, { cause }))
  }

  #streamOver(error: WireError): void {
    const id = this.#lastEventId
    if (this.call === undefined) {
      if (this.stream !== undefined && this.#events !== undefined) this.stream.again(id, this.#retryMs)
      return
    }
    if (!this.peer.isPending(this.call)) return
    if (this.channel.era === 'modern' || id === undefined) return this.peer.fail(this.call, error)
    if (this.stream !== undefined) this.stream.again(id, this.#retryMs)
    else this.channel.resume(this.call, id, this.#retryMs)
  }
}

function pushes(capabilities: JsonObject): boolean {
  return (
    Object.values(capabilities).some(
      (one) => typeof one === 'object' && one !== null && ('listChanged' in one || 'subscribe' in one),
    ) || 'logging' in capabilities
  )
}

function rpcErrorIn(body: Buffer): { code: number; message: string; data?: unknown } | undefined {
  try {
    const { error } = JSON.parse(body.toString('utf8')) as {
      error?: { code?: unknown; message?: unknown; data?: unknown }
    }
    return typeof error?.code === 'number'
      ? { code: error.code, message: String(error.message), ...(error.data === undefined ? {} : { data: error.data }) }
      : undefined
  } catch {
    return undefined
  }
}
