// One server, whatever its transport and era. This is the only thing the rest of the host sees of the wire.
import type { RawAnswer, RequestOptions } from './call.ts'
import type { Channel } from './channel.ts'
import type { Connection, NotificationListener } from './connect.ts'
import type { CloseOutcome } from './errors.ts'
import type { Hello } from './handshake.ts'
import { type Listing, type ListOptions, list } from './listing.ts'
import type { Peer } from './peer.ts'
import {
  type Era,
  type EraVerdict,
  type JsonObject,
  type ListItems,
  type ListKind,
  MODERN_VERSION,
  type ToolResult,
} from './protocol.ts'
import { requestInRounds } from './rounds.ts'
import type { SessionOptions } from './session-options.ts'
import type { Subscription, SubscriptionFilter, SubscriptionOptions } from './subscriptions.ts'
import { checkToolResult } from './validate.ts'

/** One server. Ends with `close`, with `await using`, or when its connection does. */
export class Session implements AsyncDisposable {
  readonly #options: SessionOptions
  readonly #peer: Peer
  readonly #channel: Channel
  readonly #listeners = new Set<NotificationListener>()
  readonly #watched = new Map<string, number>()
  #hello: Hello
  #recovering: Promise<void> | undefined
  /** How many processes were started for this session: 2 only if the first died of the question for its era. 0 over HTTP. */
  readonly launches: number

  private constructor(options: SessionOptions, { peer, channel, hello, owner, launches }: Connection) {
    this.#options = options
    this.#peer = peer
    this.#channel = channel
    this.#hello = hello
    this.launches = launches
    owner.era = () => this.era
    owner.listeners = this.#listeners
    channel.onSessionLost = () =>
      (this.#recovering ??= this.#recover().finally(() => {
        this.#recovering = undefined
      }))
  }

  /**
   * Starts or reaches the server and shakes hands. An abort of `options.signal` ends the attempt.
   * @throws {WireError} and nothing is left running then.
   */
  static async connect(options: SessionOptions): Promise<Session> {
    const { connectTo } = await import('./connect.ts')
    const connection = await connectTo(options)
    return new Session(options, connection)
  }

  get era(): Era {
    return this.#hello.era
  }
  /** The version that this connection speaks. */
  get protocolVersion(): string {
    return this.#hello.version
  }
  /**
   * What to remember for the next start. It can differ from `era`: a server of both eras that was slow to start has been asked for both, and then this connection
   * is legacy while the next one will be modern.
   */
  get verdict(): EraVerdict {
    const { era, version, alsoModern } = this.#hello
    return alsoModern === true ? { era: 'modern', version: MODERN_VERSION } : { era, version }
  }
  get serverInfo(): JsonObject {
    return this.#hello.serverInfo
  }
  get capabilities(): JsonObject {
    return this.#hello.capabilities
  }
  get instructions(): string | undefined {
    return this.#hello.instructions
  }
  get pid(): number | undefined {
    return this.#channel.pid
  }
  /** The last lines on stderr (stdio), cleaned of control characters. */
  get stderrTail(): string {
    return this.#channel.stderrTail ?? ''
  }
  /** How much has come that is no message. */
  get noiseCount(): number {
    return this.#peer.noiseCount
  }
  /** The first of it, cut to 512 characters and cleaned; empty while there is none. */
  get firstNoise(): string {
    return this.#peer.firstNoise
  }
  /** The server has ever sent a request of its own (pings apart). */
  get hasAskedBack(): boolean {
    return this.#peer.hasAskedBack
  }
  /** How long requests have waited for credentials so far, in ms, the present waiting included. No limit runs meanwhile. */
  get waitedMs(): number {
    return this.#channel.waitedMs ?? 0
  }
  /** Resolves when the connection is over, and never rejects. */
  get closed(): Promise<CloseOutcome> {
    return this.#peer.closed
  }

  /** Any request. Modern servers may ask for input in between; the handlers answer. */
  request(method: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    return this.era === 'legacy'
      ? this.#peer.request(method, params, options)
      : requestInRounds(this.#peer, this.#options, { method, params, options })
  }

  /** Any request, the answer as bytes and unchecked: for a gateway, which also relays requests for input. */
  requestRaw(method: string, params: JsonObject, options: RequestOptions = {}): Promise<RawAnswer> {
    return this.#peer.requestRaw(method, params, options)
  }

  notify(method: string, params: JsonObject = {}): void {
    this.#peer.notify(method, params)
  }

  async callTool(name: string, args: JsonObject = {}, options: RequestOptions = {}): Promise<ToolResult> {
    return checkToolResult(await this.request('tools/call', { name, arguments: args }, options))
  }

  /**
   * All pages of a listing. Bad items are in `rejected`; one bad item never hides the others. Nothing is kept.
   * @throws {WireError} `pagination` with `details.limit`, or whatever the request for a page failed with.
   */
  list<Kind extends ListKind>(kind: Kind, options: ListOptions = {}): Promise<Listing<ListItems[Kind]>> {
    return list(
      {
        era: this.era,
        channel: this.#channel,
        nowMs: () => this.#peer.nowMs,
        request: (...page) => this.request(...page),
      },
      kind,
      options,
    )
  }

  /** Asks the server to tell about changes, in the way of its era. Ends with the session, or by `close` of what it returns. */
  async subscribe(filter: SubscriptionFilter, options: SubscriptionOptions = {}): Promise<Subscription> {
    const { subscribe } = await import('./subscriptions.ts')
    const source = {
      era: this.era,
      capabilities: this.capabilities,
      peer: this.#peer,
      watched: this.#watched,
      listen: (listener: NotificationListener) => {
        this.#listeners.add(listener)
        return () => this.#listeners.delete(listener)
      },
    }
    return subscribe(source, filter, options)
  }

  async #recover(): Promise<void> {
    const { recover } = await import('./connect.ts')
    const opened = { peer: this.#peer, channel: this.#channel, owner: {} }
    const { renewal } = this.#options
    tell(() => renewal?.onLost?.())
    try {
      this.#hello = await recover(opened, this.#options, this.#hello.version)
      await renewal?.onOpened?.()
    } catch (error) {
      tell(() => renewal?.onFailed?.(error as Error))
      throw error
    }
    if (this.#watched.size === 0) return
    const { watchAgain } = await import('./subscriptions.ts')
    void watchAgain({ peer: this.#peer, watched: this.#watched })
  }

  /** Ends the connection; calls in flight fail with `closed`. Idempotent; resolves when the process, if any, is gone. */
  close(): Promise<void> {
    return this.#channel.close()
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** A throwing listener does not keep a session from being renewed. */
function tell(listener: () => void): void {
  try {
    listener()
  } catch {
    /* its own business */
  }
}
