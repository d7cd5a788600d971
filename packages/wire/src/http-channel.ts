// The connection to an HTTP server: which transport and era it speaks, its session, and what is in flight. The rules of single messages are in http-post.ts.
import type { Call } from './call.ts'
import type { Channel, ChannelContext, Receiver } from './channel.ts'
import { WireError } from './errors.ts'
import { type Attached, Credentials, type CredentialsHost } from './http-credentials.ts'
import { LegacySession, type SessionHost } from './http-legacy-session.ts'
import { Listener, resumeCall, type StreamOffice, type StreamRequest } from './http-listen.ts'
import { type OlderHost, OlderTransport } from './http-older.ts'
import type { Exchange, ExchangeSink } from './http-port.ts'
import { Post, type PostOffice } from './http-post.ts'
import type { Asked } from './http-refusal.ts'
import type { Challenge, Renewals } from './http-renewal.ts'
import { Waiting, type WaitingHost } from './http-waiting.ts'
import { Mirror, writeOwn } from './mirror.ts'
import { Door } from './outbound.ts'
import { type RedirectPolicy, readUrl } from './outbound-rules.ts'
import type { Platform, TimerHandle } from './platform.ts'
import type { Era, JsonObject, Tool } from './protocol.ts'
import type { HttpTarget } from './target.ts'

/** How long closing waits for notifications on their way. */
const CLOSE_MS = 1_000
/** After its answer a stream may go on for so long. */
const LINGER_MS = 2_000
/** Notifications and answers: from the first byte to the end of what comes back. */
const NOTE_MS = 30_000
/** Doing these twice does no harm. Everything else, tool calls above all, is sent again only if it has certainly not arrived. */
const REPEATABLE = new Set([
  'completion/complete',
  'initialize',
  'logging/setLevel',
  'ping',
  'prompts/get',
  'prompts/list',
  'resources/list',
  'resources/read',
  'resources/subscribe',
  'resources/templates/list',
  'resources/unsubscribe',
  'server/discover',
  'subscriptions/listen',
  'tools/list',
])

export class HttpChannel
  implements Channel, PostOffice, StreamOffice, OlderHost, SessionHost, CredentialsHost, WaitingHost
{
  readonly platform: Platform
  readonly messageBytesMax: number
  readonly receiver: () => Receiver
  /** Set by the session. */
  onSessionLost: () => Promise<void> = () =>
    Promise.reject(new WireError('session-lost', 'The server has forgotten the session', { sent: false }))
  readonly waiting: Waiting
  readonly onCredentials: (phase: 'waiting' | 'over') => void
  readonly #target: HttpTarget
  readonly #door: Door
  readonly #path: string
  readonly #credentials: Credentials
  readonly #mirror = new Mirror()
  readonly #older: OlderTransport
  #era: Era = 'legacy'
  #version: string | undefined
  #greeted = false
  readonly #session: LegacySession
  #listener: Listener | undefined
  /** What ends by itself in time, and when. */
  readonly #bounded = new Map<Post, number>()
  #sweep: TimerHandle | undefined
  #drained: (() => void) | undefined
  #notes = 0
  #closing: Promise<void> | undefined
  #closed = false

  private constructor(target: HttpTarget, context: ChannelContext, door: Door) {
    this.platform = context.platform
    this.messageBytesMax = context.messageBytesMax
    this.receiver = context.receiver
    this.#target = target
    this.#door = door
    this.#path = door.url.pathname + door.url.search
    this.onCredentials = (phase) => context.onCredentials?.(phase)
    this.waiting = new Waiting(this)
    this.#credentials = new Credentials(target, door.url, this)
    this.#session = new LegacySession(this)
    this.#older = new OlderTransport(this)
    if (target.transport === 'sse') this.#older.choose()
  }

  /**
   * Nothing is connected yet: the first message does that.
   * @throws {WireError} `refused`: the URL, a header, the proxy or the `ca` of the target cannot be used.
   */
  static async open(target: HttpTarget, context: ChannelContext): Promise<HttpChannel> {
    const url = readUrl(target.url)
    const httpClient = await context.platform.http?.(url, target)
    const door = await Door.open(url, {
      client: target.client,
      ca: target.ca,
      proxy: target.proxy,
      platform: context.platform,
      httpClient,
    })
    try {
      return new HttpChannel(target, context, door)
    } catch (error) {
      door.close()
      throw error
    }
  }

  /** Over the older transport all calls share one stream. */
  get multiplexed(): boolean {
    return this.#older.isChosen
  }
  get isClosed(): boolean {
    return this.#closed
  }
  get isClosing(): boolean {
    return this.#closing !== undefined
  }
  get url(): URL {
    return this.#door.url
  }
  get era(): Era {
    return this.#era
  }
  get greeted(): boolean {
    return this.#greeted
  }
  get sessionGeneration(): number {
    return this.#session.generation
  }
  get hasSession(): boolean {
    return this.#session.id !== undefined || this.#older.isChosen
  }
  get isOlder(): boolean {
    return this.#older.isChosen
  }
  get waitedMs(): number {
    return this.waiting.totalMs
  }
  get answersElsewhere(): boolean {
    return this.#listener?.isActive === true
  }

  speak(era: Era, version: string | undefined): void {
    this.#era = era
    this.#version = era === 'legacy' ? version : undefined
    if (version === undefined) return
    this.#greeted = true
    this.#session.isOpening = this.#session.isMissing
  }

  hasSent(call: Call): boolean {
    return call.exchange?.sent ?? call.sent
  }

  acceptTool(tool: Tool): string | undefined {
    return this.#era === 'legacy' ? undefined : this.#mirror.accept(tool)
  }

  send(text: string, call: Call | undefined): void {
    if (this.#closed) return
    if (call === undefined) this.#notes++
    const post = new Post(this, text, call)
    if (!this.#session.isMissing || call === undefined || this.#mayOpen(call.method)) return this.again(post)
    this.waiting.behind(call, this.#session.there()).then(
      () => this.move(post),
      (cause: unknown) => post.refuse(noSession(cause)),
    )
  }

  /** What makes a session goes out before there is one. */
  #mayOpen(method: string): boolean {
    return method === 'initialize' || (this.#session.isOpening && method.endsWith('/list'))
  }

  isMaking(call: Call): boolean {
    return call.method === 'initialize' || (this.#session.isMissing && this.#mayOpen(call.method))
  }

  isWanted(call: Call | undefined): boolean {
    return !this.isClosing && (call === undefined || this.receiver().isPending(call))
  }

  move(post: Post): void {
    if (post.call?.options.mayMove?.() === false)
      post.refuse(new WireError('session-lost', 'The request was not sent in the new session', { sent: false }))
    else this.again(post)
  }

  again(post: Post): void {
    if (this.#older.isChosen) this.#older.send(post)
    else post.start()
  }

  attach(method: 'GET' | 'POST', call: Call | undefined, ready?: Attached): Attached | Promise<Attached> {
    const path = method === 'POST' ? (this.#older.path ?? this.#path) : this.#path
    return this.#credentials.attach(method, path, call, ready)
  }

  async renew(
    refused: Attached,
    challenge: Challenge,
    renewals: Renewals,
    call: Call | undefined,
  ): Promise<Attached | undefined> {
    return this.isClosing ? undefined : this.#credentials.renew(refused, challenge, renewals, call)
  }

  accepted(attached: Attached): void {
    this.#listener?.accepted(attached)
  }

  isRepeatable(call: Call | undefined): boolean {
    return call === undefined || REPEATABLE.has(call.method)
  }

  /** A proof is for one URL, and what a helper gives for one server. */
  #redirects({ proof }: Attached): RedirectPolicy {
    return proof !== undefined || this.#credentials.isProvided ? 'none' : 'same-origin'
  }

  dispatch(post: Post, attached: Attached): Exchange {
    const { call, text } = post
    const exchange = this.#door.send(
      {
        method: 'POST',
        path: this.#older.path ?? this.#path,
        headers: this.#headers(call, text, attached),
        body: text,
        redirects: this.#era === 'modern' ? 'none' : this.#redirects(attached),
        repeatable: attached.proof === undefined && this.isRepeatable(call),
      },
      this.#credentials.hearing(post),
    )
    if (call === undefined) this.#bound(post, NOTE_MS)
    return exchange
  }

  #headers(call: Call | undefined, text: string, attached: Attached): string[] {
    const headers = [
      'accept',
      'application/json, text/event-stream',
      'content-type',
      'application/json',
      ...attached.headers,
    ]
    if (this.#era === 'modern') {
      this.#mirror.write(headers, call, text)
      return headers
    }
    if (call?.options.headers !== undefined) writeOwn(headers, call.options.headers)
    if (call?.method === 'initialize') return headers
    if (this.#session.id !== undefined) headers.push('mcp-session-id', this.#session.id)
    if (this.#version !== undefined) headers.push('mcp-protocol-version', this.#version)
    return headers
  }

  get(
    { lastEventId, call, ready }: StreamRequest,
    sink: ExchangeSink,
    started: (exchange: Exchange, attached: Attached) => void,
  ): void {
    const go = (attached: Attached): void => {
      if (this.#closed) return
      const headers = ['accept', 'text/event-stream', ...attached.headers]
      if (this.#session.id !== undefined) headers.push('mcp-session-id', this.#session.id)
      if (this.#version !== undefined) headers.push('mcp-protocol-version', this.#version)
      if (lastEventId !== undefined) headers.push('last-event-id', lastEventId)
      const request = { method: 'GET', path: this.#path, headers, redirects: this.#redirects(attached) } as const
      const repeatable = attached.proof === undefined
      started(this.#door.send({ ...request, repeatable }, this.#credentials.hearing(sink)), attached)
    }
    const fail = (error: WireError): void => sink.fail(error, { sent: false, reused: false })
    try {
      const attached = ready?.proof === undefined ? this.attach('GET', call, ready) : ready
      if (attached instanceof Promise) attached.then(go, fail)
      else go(attached)
    } catch (error) {
      fail(error as WireError)
    }
  }

  asked(call: Call | undefined, hadSession: boolean, attached?: Attached): Asked {
    return {
      method: call?.method,
      era: this.#era,
      hadSession,
      greeted: this.#greeted,
      mayFallBack: (this.#target.transport ?? 'auto') === 'auto' && !this.#older.isChosen && !this.#greeted,
      server: this.#door.url.host,
      secrets: [...this.#credentials.secrets, attached?.proof ?? '', this.#session.id ?? ''],
    }
  }

  sawSession(id: string | undefined): WireError | undefined {
    return this.#session.saw(id)
  }

  fallBack(call: Call | undefined): Promise<boolean> {
    return this.#older.fallBack(call)
  }

  resume(call: Call, lastEventId: string, retryMs: number | undefined): void {
    resumeCall(this, call, { lastEventId, retryMs })
  }

  sessionGone(): void {
    this.#session.isMissing = true
  }

  sessionAfter(generation: number, call?: Call): Promise<void> {
    return this.waiting.behind(call, this.#session.after(generation))
  }

  checkSession(): Promise<void> {
    return this.#session.check()
  }

  shakeHandsAnew(): Promise<void> {
    this.#listener?.stop()
    this.#listener = undefined
    this.#older.reset()
    return this.onSessionLost()
  }

  sendAside(
    method: 'POST' | 'DELETE',
    body: string | undefined,
    sessionId: string,
  ): (sink: ExchangeSink) => Promise<Exchange> {
    return async (sink: ExchangeSink): Promise<Exchange> => {
      const attached = await this.#credentials.attach(method, this.#path, undefined)
      const headers = [
        'accept',
        'application/json, text/event-stream',
        ...attached.headers,
        'mcp-session-id',
        sessionId,
      ]
      if (body !== undefined) headers.push('content-type', 'application/json')
      if (this.#version !== undefined) headers.push('mcp-protocol-version', this.#version)
      const request = { method, path: this.#path, headers, body, redirects: 'none' } as const
      const repeatable = attached.proof === undefined
      return this.#door.send({ ...request, repeatable }, this.#credentials.hearing(sink))
    }
  }

  listen(capabilities: JsonObject): void {
    if (this.#older.isChosen || this.#listener !== undefined || this.isClosing || this.#era === 'modern') return
    if (this.#session.id === undefined && !pushes(capabilities)) return
    this.#listener = new Listener(this)
    this.#listener.start()
  }

  cancel(call: Call, reason: string): void {
    // What the server has never seen need not be taken back.
    if (this.#era === 'legacy' && this.hasSent(call))
      this.send(
        `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${call.id},"reason":${JSON.stringify(reason)}}}`,
        undefined,
      )
    call.exchange?.drop() // in the modern era this is the cancellation
  }

  linger(post: Post): void {
    if (!this.#bounded.has(post)) this.#bound(post, LINGER_MS)
  }

  over(post: Post): void {
    this.#bounded.delete(post)
    if (post.call === undefined && --this.#notes === 0) this.#drained?.()
  }

  /** Ends what the server does not end. One timer for all of them. */
  #bound(post: Post, ms: number): void {
    this.#bounded.set(post, this.platform.now() + ms)
    this.#sweep ??= this.platform.setTimer(() => this.#sweepBounded(), LINGER_MS, 'background')
  }

  #sweepBounded(): void {
    this.#sweep = undefined
    const nowMs = this.platform.now()
    for (const [post, dueMs] of this.#bounded) if (dueMs <= nowMs) post.drop()
    if (this.#bounded.size > 0)
      this.#sweep = this.platform.setTimer(() => this.#sweepBounded(), LINGER_MS, 'background')
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    this.#listener?.stop()
    this.receiver().end(new WireError('closed', 'The session was closed'), {
      cause: 'local',
      message: 'The session was closed',
    })
    await Promise.all([this.#whenDrained(), this.#session.end()])
    this.#closed = true
    this.waiting.close()
    this.#older.close()
    this.platform.clearTimer(this.#sweep)
    this.#door.close()
  }

  /** Notifications that are on their way shall arrive. */
  #whenDrained(): Promise<void> {
    if (this.#notes === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.platform.setTimer(resolve, CLOSE_MS)
      this.#drained = () => {
        this.platform.clearTimer(timer)
        resolve()
      }
    })
  }
}

function noSession(cause: unknown): WireError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new WireError('session-lost', `The session is gone, and a new one could not be made: ${reason}`, {
    sent: false,
    cause,
  })
}

/** Do these capabilities say that the server tells something on its own? */
function pushes(capabilities: JsonObject): boolean {
  if ('logging' in capabilities) return true
  return Object.values(capabilities).some(
    (one) => typeof one === 'object' && one !== null && ('listChanged' in one || 'subscribe' in one),
  )
}
