// One server, whatever its transport and era. This is the only thing the rest of the host sees of the wire.
import { WireError } from './errors.ts'
import {
  assumeModern,
  type Era,
  type EraVerdict,
  type Hello,
  initialize,
  MODERN_VERSION,
  modernMeta,
  negotiateHttp,
  negotiateStdio,
} from './handshake.ts'
import type { HttpChannel, HttpTarget } from './http.ts'
import { type HeaderParameter, headerParameters, mirrorHeaders } from './mirror.ts'
import { type JsonObject, methodNotFound, Peer, type RawAnswer, type RequestOptions } from './peer.ts'
import type { StdioChannel, StdioTarget, WriteBurst } from './stdio.ts'
import { checkToolResult, type Rejected, type Tool, type ToolResult, toolFault } from './validate.ts'

export type ServerRequestHandler = (params: JsonObject, signal: AbortSignal) => Promise<JsonObject>

export interface SessionOptions {
  target: StdioTarget | HttpTarget
  clientInfo?: { name: string; version: string }
  capabilities?: JsonObject
  /** Default `auto`: ask the server, unless `remembered` knows. */
  era?: Era | 'auto'
  remembered?: EraVerdict
  /** For `elicitation/create`, `sampling/createMessage`, `roots/list`: pushed by legacy servers, embedded in results by modern ones. */
  handlers?: Record<string, ServerRequestHandler>
  onNotification?: (method: string, params: JsonObject) => void
  onNoise?: (text: string) => void
  /** Bytes of one message. Default 64 MiB. A longer one fails its call only. */
  messageBytesMax?: number
  startupTimeoutMs?: number
  /** Default `tick`; a gateway sets `turn`. */
  writeBurst?: WriteBurst
  signal?: AbortSignal
}

export interface ToolListing {
  tools: readonly Tool[]
  rejected: readonly Rejected[]
  fetchedAtMs: number
  freshUntilMs: number
}
export interface ListOptions extends RequestOptions {
  cache?: 'use' | 'refresh'
  pagesMax?: number
  itemsMax?: number
}

const MESSAGE_BYTES_MAX = 64 * 1024 * 1024
const STARTUP_TIMEOUT_MS = 30_000
const PAGES_MAX = 1_000,
  ITEMS_MAX = 100_000,
  ROUNDS_MAX = 10

export class Session implements AsyncDisposable {
  readonly #options: SessionOptions
  readonly #peer: Peer
  readonly #channel: StdioChannel | HttpChannel
  readonly #parameters = new Map<string, HeaderParameter[]>()
  #hello: Hello
  #listing: ToolListing | undefined
  #fetching: Promise<ToolListing> | undefined
  #catalogVersion = 0
  #recovering: Promise<void> | undefined

  private constructor(options: SessionOptions, opened: Opened, hello: Hello) {
    this.#options = options
    this.#peer = opened.peer
    this.#channel = opened.channel
    this.#hello = hello
    opened.owner.session = this
    if (!('era' in this.#channel)) return
    this.#channel.mirror = (call, text) =>
      mirrorHeaders(MODERN_VERSION, call, text, (tool) => this.#parameters.get(tool) ?? [])
    this.#channel.onSessionLost = () =>
      (this.#recovering ??= this.#recover().finally(() => {
        this.#recovering = undefined
      }))
  }

  /** Starts or reaches the server and shakes hands. @throws WireError; nothing is left running then. */
  static async connect(options: SessionOptions): Promise<Session> {
    const wanted = options.remembered?.era ?? options.era ?? 'auto'
    try {
      return await Session.#connectOnce(options, wanted)
    } catch (error) {
      // A legacy stdio server may die of a question it does not know: start it once more, and do not ask.
      const died = error instanceof WireError && error.code === 'closed'
      if (died && wanted === 'auto' && 'command' in options.target && options.signal?.aborted !== true)
        return Session.#connectOnce(options, 'legacy')
      throw error
    }
  }

  static async #connectOnce(options: SessionOptions, era: Era | 'auto'): Promise<Session> {
    const opened = await open(options)
    try {
      const hello = await shakeHands(options, opened, era)
      const session = new Session(options, opened, hello)
      if (hello.era === 'legacy') session.#greet()
      return session
    } catch (error) {
      await opened.channel.close()
      throw error
    }
  }

  get era(): Era {
    return this.#hello.era
  }
  get verdict(): EraVerdict {
    return { era: this.#hello.era, version: this.#hello.version }
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
  get stderrTail(): string {
    return 'stderrTail' in this.#channel ? this.#channel.stderrTail : ''
  }
  get pid(): number | undefined {
    return 'pid' in this.#channel ? this.#channel.pid : undefined
  }

  /** Any request. Modern servers may ask for input in between; the handlers answer. */
  request(method: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    return this.era === 'legacy' ? this.#peer.request(method, params, options) : this.#rounds(method, params, options)
  }

  /** Any request, the answer as bytes and unchecked: for a gateway, which also relays requests for input. */
  requestRaw(method: string, params: JsonObject, options: RequestOptions = {}): Promise<RawAnswer> {
    return this.#peer.requestRaw(method, params, options)
  }

  async callTool(name: string, args: JsonObject = {}, options: RequestOptions = {}): Promise<ToolResult> {
    return checkToolResult(await this.request('tools/call', { name, arguments: args }, options))
  }

  /** The tools, from memory while nothing says that they changed. Bad ones are in `rejected`; one bad tool never hides the others. */
  listTools(options: ListOptions = {}): Promise<ToolListing> {
    const known = this.#listing
    if (options.cache !== 'refresh' && known !== undefined && performance.now() < known.freshUntilMs)
      return Promise.resolve(known)
    if (options.cache === 'refresh') this.#fetching = undefined
    const mine = (this.#fetching ??= this.#fetchTools(options).finally(() => {
      if (this.#fetching === mine) this.#fetching = undefined
    }))
    return mine
  }

  async #fetchTools({
    pagesMax = PAGES_MAX,
    itemsMax = ITEMS_MAX,
    cache: _,
    ...options
  }: ListOptions): Promise<ToolListing> {
    const catalogVersion = this.#catalogVersion
    const tools: Tool[] = [],
      rejected: Rejected[] = [],
      seen = new Set<string>()
    let cursor: string | undefined
    let ttlMs = Infinity
    for (let page = 0; ; page++) {
      const result = await this.request('tools/list', cursor === undefined ? {} : { cursor }, options)
      if (!Array.isArray(result['tools'])) throw new WireError('malformed', 'The answer to "tools/list" has no tools')
      this.#sort(result['tools'], tools, rejected)
      if (this.era === 'modern') ttlMs = Math.min(ttlMs, typeof result['ttlMs'] === 'number' ? result['ttlMs'] : 0)
      const { nextCursor } = result
      if (typeof nextCursor !== 'string' || nextCursor === '') break
      if (seen.has(nextCursor) || page + 1 >= pagesMax || tools.length > itemsMax)
        throw new WireError('pagination', `The tool list does not end (page ${page + 1}, ${tools.length} tools)`)
      seen.add((cursor = nextCursor))
    }
    const fetchedAtMs = performance.now()
    const listing: ToolListing = { tools, rejected, fetchedAtMs, freshUntilMs: fetchedAtMs + ttlMs }
    if (this.#catalogVersion === catalogVersion) this.#listing = listing // else: changed while we asked
    return listing
  }

  #sort(items: unknown[], tools: Tool[], rejected: Rejected[]): void {
    const mirrored = this.era === 'modern' && 'era' in this.#channel
    for (const item of items) {
      const fault = toolFault(item)
      const tool = item as Tool
      if (fault !== undefined) {
        rejected.push({ name: String((item as JsonObject | null)?.['name'] ?? '?'), reason: fault })
        continue
      }
      const parameters = mirrored ? headerParameters(tool) : []
      if ('invalid' in parameters) {
        rejected.push({ name: tool.name, reason: parameters.invalid })
        continue
      }
      if (parameters.length > 0) this.#parameters.set(tool.name, parameters)
      tools.push(tool)
    }
  }

  async #rounds(method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject> {
    let asked = params
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const result = await this.#peer.request(method, asked, options)
      const type = result['resultType']
      if (type === undefined || type === 'complete') return result
      if (type !== 'input_required')
        throw new WireError('malformed', `The answer to "${method}" is of the unknown type "${String(type)}"`)
      const { inputRequests = {}, requestState } = result as {
        inputRequests?: Record<string, { method: string; params?: JsonObject }>
        requestState?: unknown
      }
      const answers = await Promise.all(
        Object.entries(inputRequests).map(
          async ([key, { method: wanted, params: details }]) =>
            [
              key,
              await answerServer(this.#options, wanted, details ?? {}, options.signal ?? new AbortController().signal),
            ] as const,
        ),
      )
      asked = {
        ...params,
        ...(answers.length > 0 ? { inputResponses: Object.fromEntries(answers) } : {}),
        ...(requestState === undefined ? {} : { requestState }),
      }
    }
    throw new WireError('too-many-rounds', `"${method}" asked for input ${ROUNDS_MAX} times`)
  }

  /** Legacy only: the last word of the handshake, and the stream for what no call asks for. */
  #greet(): void {
    this.#peer.notify('notifications/initialized')
    if ('era' in this.#channel && (this.#channel.sessionId !== undefined || pushes(this.capabilities)))
      this.#channel.listen()
  }

  async #recover(): Promise<void> {
    this.#hello = await initialize(this.#peer, introductionOf(this.#options), {})
    this.#forgetTools()
    this.#greet()
  }

  #forgetTools(): void {
    this.#catalogVersion++
    this.#listing = undefined
  }

  /** @internal */ notified(method: string): void {
    if (method === 'notifications/tools/list_changed') this.#forgetTools()
  }

  close(): Promise<void> {
    return this.#channel.close()
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

interface Opened {
  peer: Peer
  channel: StdioChannel | HttpChannel
  owner: { session?: Session }
}

async function open(options: SessionOptions): Promise<Opened> {
  const owner: Opened['owner'] = {}
  const bytesMax = options.messageBytesMax ?? MESSAGE_BYTES_MAX
  let peer: Peer | undefined
  const late = (): Peer => peer as Peer
  // Only what is used is loaded: a host of stdio servers never reads the HTTP code, and the other way round.
  const { target } = options
  const channel =
    'command' in target
      ? new (await import('./stdio.ts')).StdioChannel(target, bytesMax, late, options.writeBurst ?? 'tick')
      : await (await import('./http.ts')).HttpChannel.open(target, bytesMax, late)
  peer = new Peer(channel, {
    onRequest: (method, params, signal) =>
      owner.session?.era === 'modern'
        ? Promise.reject(methodNotFound(method))
        : answerServer(options, method, params, signal),
    onNotification: (method, params) => {
      owner.session?.notified(method)
      options.onNotification?.(method, params)
    },
    onNoise: (text) => options.onNoise?.(text),
  })
  return { peer, channel, owner }
}

async function shakeHands(options: SessionOptions, { peer, channel }: Opened, era: Era | 'auto'): Promise<Hello> {
  const introduction = introductionOf(options)
  const request: RequestOptions = {
    idleTimeoutMs: options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  }
  const setEra = (era: Era): void => {
    peer.requestMeta = era === 'modern' ? modernMeta(introduction) : ''
    if (!('era' in channel)) return
    channel.era = era
    channel.mirror = (call, text) => mirrorHeaders(MODERN_VERSION, call, text, () => [])
  }
  const hello = await (() => {
    if (era === 'auto')
      return 'era' in channel
        ? negotiateHttp(peer, introduction, setEra, request)
        : negotiateStdio(peer, introduction, setEra, request)
    setEra(era)
    return era === 'modern' ? assumeModern(peer, request) : initialize(peer, introduction, request)
  })()
  if ('era' in channel && hello.era === 'legacy') channel.version = hello.version
  return hello
}

async function answerServer(
  { handlers }: SessionOptions,
  method: string,
  params: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  if (method === 'ping') return {}
  const handler = handlers?.[method]
  if (handler === undefined) throw methodNotFound(method)
  return handler(params, signal)
}

function introductionOf({ clientInfo = { name: 'convoke', version: '0.0.0' }, capabilities = {} }: SessionOptions): {
  clientInfo: JsonObject
  capabilities: JsonObject
} {
  return { clientInfo, capabilities }
}

function pushes(capabilities: JsonObject): boolean {
  return (
    Object.values(capabilities).some(
      (one) => typeof one === 'object' && one !== null && ('listChanged' in one || 'subscribe' in one),
    ) || 'logging' in capabilities
  )
}
