import type {
  EraVerdict,
  Listing,
  ListKind,
  Platform,
  RawAnswer,
  RequestOptions,
  Session,
  Subscription,
  SubscriptionFilter,
  SubscriptionOptions,
  ToolResult,
} from '@convoke/wire'
import { cleanJson, cleanText, cutText, HostError, type JsonObject, Lane, untilAborted } from '../base/index.ts'
import { hostErrorOf } from './faults.ts'
import { type ListRequest, listAll } from './listing.ts'

/** Requests during which a server may ask something back. */
const MAY_ASK: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read', 'completion/complete'])

const INSTRUCTIONS_CHARS_MAX = 65_536
/** Icons may come as data URLs. */
const INFO_CHARS_MAX = 256 * 1024

/** How a session ended; `local`: this side closed it. */
export interface SessionEnd {
  readonly cause: 'local' | 'process-exited' | 'connection-lost'
  readonly message: string
  readonly exitCode?: number
  readonly signal?: string
}

/** What makes a {@link ServerSession}. */
export interface ServerSessionInit {
  readonly server: string
  readonly transport: 'stdio' | 'http'
  readonly platform: Platform
  readonly session: Session
  readonly secrets: readonly string[]
  /** What a single request brings along to answer its questions goes through this first; absent: it answers by itself. */
  readonly judge?: HandlersJudge | undefined
}

/** Puts the policy of the host before handlers that did not come from it. */
export type HandlersJudge = (own: NonNullable<RequestOptions['handlers']>) => NonNullable<RequestOptions['handlers']>

/**
 * One live conversation with one server: the wire's session, with errors of this library, and with one rule on top. A process that has
 * ever asked something back gets such calls one at a time, because nothing on its pipe says for which call it asks.
 */
export class ServerSession implements AsyncDisposable {
  readonly server: string
  readonly transport: 'stdio' | 'http'
  /** Values that must not show up in texts about this server. */
  readonly secrets: readonly string[]
  readonly #session: Session
  readonly #platform: Platform
  readonly #judge: HandlersJudge | undefined
  readonly #lane = new Lane()
  #inFlight = 0
  #whenIdle: (() => void) | undefined
  #isClosed = false
  /** Made for the first listing: what is tried again stops when the session is over. */
  #over: AbortController | undefined
  #info: { told: JsonObject | undefined; shown: JsonObject } = { told: undefined, shown: {} }

  constructor({ server, transport, platform, session, secrets, judge }: ServerSessionInit) {
    this.server = server
    this.transport = transport
    this.secrets = secrets
    this.#session = session
    this.#platform = platform
    this.#judge = judge
    void session.closed.then(() => this.#end())
  }

  get era(): 'legacy' | 'modern' {
    return this.#session.era
  }
  get verdict(): EraVerdict {
    return this.#session.verdict
  }
  /** Cleaned. A server that does not introduce itself has its configured name and an empty version. */
  get serverInfo(): JsonObject {
    const told = this.#session.serverInfo
    if (this.#info.told !== told) this.#info = { told, shown: shownInfo(told, this.server) }
    return this.#info.shown
  }
  get capabilities(): JsonObject {
    return this.#session.capabilities
  }
  /** Cleaned, and cut after 65,536 characters. */
  get instructions(): string | undefined {
    const told = this.#session.instructions
    return told === undefined ? undefined : cutText(cleanText(told).text, INSTRUCTIONS_CHARS_MAX)
  }
  get pid(): number | undefined {
    return this.#session.pid
  }
  get stderrTail(): string {
    return this.#session.stderrTail
  }
  /** What came on stdout that is no message. */
  get noiseCount(): number {
    return this.#session.noiseCount
  }
  /** How many processes were started for it. */
  get launches(): number {
    return this.#session.launches
  }
  get isClosed(): boolean {
    return this.#isClosed
  }
  /** Resolves when it is over; never rejects. */
  get closed(): Promise<SessionEnd> {
    return this.#session.closed
  }

  /** Any request. @throws {HostError} */
  request(method: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    return this.#through(method, options, (limits) => this.#session.request(method, params, limits))
  }

  /** Any request, the answer as unchecked bytes. @throws {HostError} */
  requestRaw(method: string, params: JsonObject, options: RequestOptions = {}): Promise<RawAnswer> {
    return this.#through(method, options, (limits) => this.#session.requestRaw(method, params, limits))
  }

  /** `tools/call` with a result whose content has been looked at. @throws {HostError} */
  async callTool(params: JsonObject, options: RequestOptions): Promise<ToolResult> {
    const result = await this.request('tools/call', params, options)
    return toolResult(result, this.server)
  }

  notify(method: string, params: JsonObject = {}): void {
    this.#session.notify(method, params)
  }

  /** Every item of a kind. @throws {HostError} */
  list(kind: ListKind, request: ListRequest = {}): Promise<Listing> {
    const { server, transport, secrets } = this
    this.#over ??= new AbortController()
    if (this.#isClosed) this.#over.abort()
    const source = {
      server,
      transport,
      secrets,
      session: this.#session,
      platform: this.#platform,
      over: this.#over.signal,
    }
    return listAll(source, kind, request)
  }

  /** @throws {HostError} */
  async subscribe(filter: SubscriptionFilter, options: SubscriptionOptions = {}): Promise<Subscription> {
    try {
      return await this.#session.subscribe(filter, options)
    } catch (error) {
      throw hostErrorOf(error, this.server, this.secrets)
    }
  }

  /** Ends it; requests in flight fail. Resolves when nothing is left of it. */
  async close(): Promise<void> {
    this.#end()
    await this.#session.close()
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #end(): void {
    this.#isClosed = true
    this.#over?.abort()
  }

  async #through<Answer>(
    method: string,
    options: RequestOptions,
    send: (limits: RequestOptions) => Promise<Answer>,
  ): Promise<Answer> {
    const judged = this.#judged(options)
    const mayAsk = this.transport === 'stdio' && MAY_ASK.has(method)
    if (mayAsk && this.#session.hasAskedBack) return this.#alone(judged, send)
    if (mayAsk) this.#inFlight += 1
    try {
      return await send(judged)
    } catch (error) {
      throw hostErrorOf(error, this.server, this.secrets)
    } finally {
      if (mayAsk) this.#leave()
    }
  }

  #judged(options: RequestOptions): RequestOptions {
    if (this.#judge === undefined || options.handlers === undefined) return options
    return { ...options, handlers: this.#judge(options.handlers) }
  }

  #leave(): void {
    this.#inFlight -= 1
    if (this.#inFlight === 0) this.#whenIdle?.()
  }

  /** Waits for every call before it; the wait counts against the total limit. */
  async #alone<Answer>(options: RequestOptions, send: (limits: RequestOptions) => Promise<Answer>): Promise<Answer> {
    const { totalTimeoutMs } = options
    const beganAtMs = this.#platform.now()
    const leave = await this.#lane.enter(options.signal)
    try {
      await this.#othersGone(options.signal)
      const waitedMs = this.#platform.now() - beganAtMs
      if (totalTimeoutMs !== undefined && waitedMs >= totalTimeoutMs) throw this.#neverSent(totalTimeoutMs)
      return await send(
        totalTimeoutMs === undefined ? options : { ...options, totalTimeoutMs: totalTimeoutMs - waitedMs },
      )
    } catch (error) {
      throw hostErrorOf(error, this.server, this.secrets)
    } finally {
      leave()
    }
  }

  /** Calls that were already on their way when the server first asked back. */
  #othersGone(signal: AbortSignal | undefined): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve
    })
    return untilAborted(idle, signal)
  }

  #neverSent(limitMs: number): HostError {
    return new HostError(
      'CALL_TOTAL_TIMEOUT',
      `Server "${this.server}" was still busy with another call after ${limitMs} ms; this one was not sent`,
      { details: { limitMs, sent: false } },
    )
  }
}

function shownInfo(told: JsonObject, server: string): JsonObject {
  try {
    return introduced(cleanJson(told, { charsMax: INFO_CHARS_MAX }).value, server)
  } catch {
    return introduced({}, server)
  }
}

function introduced(info: JsonObject, server: string): JsonObject {
  const { name, version } = info
  const isNamed = typeof name === 'string' && name !== ''
  return { ...info, name: isNamed ? name : server, version: typeof version === 'string' ? version : '' }
}

/** @throws {HostError} `PROTOCOL_ERROR` for a result without a usable content list. */
function toolResult(result: JsonObject, server: string): ToolResult {
  const { content } = result
  if (content === undefined) return { ...result, content: [] } // structured only, or from a lax server
  const isList = Array.isArray(content)
  if (isList && content.every((block) => typeof (block as JsonObject | null)?.['type'] === 'string'))
    return result as ToolResult
  const what = isList ? 'a content block without a type' : 'no content list'
  throw new HostError('PROTOCOL_ERROR', `Server "${server}": the tool result has ${what}`)
}
