// Many servers as one: every client shares their connections, and each answer finds the client that asked.
import {
  type CallOptions,
  type CatalogTool,
  cleanLine,
  type Host,
  HostError,
  type HostErrorCode,
  type HostEvent,
  type JsonObject,
} from '@convoke/host'
import {
  type Application,
  type Client,
  type Exchange,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  type Listener,
  type ListenFilter,
  METHOD_NOT_FOUND,
  type Reply,
  type ServerDescription,
  unknownState,
} from '@convoke/wire/server'
import { isObject, type Unanswered } from './asks.ts'
import { Audience } from './audience.ts'
import { CurrentView, type ViewChange } from './current-view.ts'
import { describe } from './description.ts'
import { clientError } from './errors.ts'
import { InFlight } from './in-flight.ts'
import { Isolation } from './isolation.ts'
import { LogGate } from './log-gate.ts'
import { ensureLogLevel } from './log-levels.ts'
import { type OfferMethod, Offers } from './offers.ts'
import { ownerOf } from './owners.ts'
import { upstreamMeta } from './params.ts'
import { ResourceWatch } from './resource-watch.ts'
import { type Carriage, carry, requestOptions, signalOf, type Upstream } from './upstream-call.ts'
import type { View } from './view.ts'
import { Watching } from './watching.ts'

export interface SharedOptions {
  readonly host: Host
  readonly serverInfo: JsonObject
  /** The first lists wait so long for servers that are starting, in ms. */
  readonly listWaitMs: number
  /** A call to a server that is not ready waits so long for it, in ms. */
  readonly callWaitMs: number
  readonly unanswered: Unanswered
}

/** Longest further wait for the first server, when none is ready after `listWaitMs`. */
const EMPTY_LIST_WAIT_MS = 20_000
const DEBOUNCE_MS = 50
const RETRY_PAUSE_MS_MAX = 2_000

export class SharedApplication implements Application, AsyncDisposable {
  readonly #options: SharedOptions
  readonly #current: CurrentView
  readonly #audience = new Audience()
  readonly #offers = new Offers()
  readonly #inFlight = new InFlight()
  readonly #resources = new ResourceWatch()
  readonly #watching = new Watching(this.#resources)
  readonly #logs = new LogGate(() => performance.now())
  readonly #isolation: Isolation
  readonly #carriage: Carriage
  readonly #unsubscribe: () => void
  /** Servers that have asked something back: the host sends them one call at a time. */
  readonly #askers = new Set<string>()
  readonly #pauses = new Set<() => void>()
  /** A log message that a call has been told: the host tells it once more. */
  #told: unknown = NOTHING
  #settling: Promise<void> | undefined

  private constructor(options: SharedOptions, current: CurrentView) {
    this.#options = options
    this.#current = current
    this.#carriage = {
      voice: 'named',
      trust: options.host,
      unanswered: options.unanswered,
      onLog: (exchange, server, params) => {
        this.#told = params['data']
        this.#logs.pass(exchange, server, params, (shown) => exchange.notify('notifications/message', shown))
      },
      onAsked: (server) => void this.#askers.add(server),
      isQueued: (server) => this.#askers.has(server),
    }
    this.#isolation = new Isolation({ ...options, carriage: this.#carriage, logs: this.#logs })
    this.#unsubscribe = options.host.subscribe((event) => this.#heard(event))
    this.#settling = options.host.whenSettled({ waitMs: options.listWaitMs }).then(
      () => this.#settled(),
      () => this.#settled(),
    )
  }

  /** @throws {HostError} `HOST_CLOSED` */
  static async open(options: SharedOptions): Promise<SharedApplication> {
    let application: SharedApplication | undefined
    const current = await CurrentView.open({
      host: options.host,
      debounceMs: DEBOUNCE_MS,
      onChanged: (change) => application?.changed(change),
      isWatched: () => application?.isWatched === true,
    })
    application = new SharedApplication(options, current)
    return application
  }

  async #settled(): Promise<void> {
    await this.#whenSomebodyIsReady()
    await this.#current.refresh()
    this.#settling = undefined
  }

  /** An empty list helps nobody, and some clients ask only once: then the first server is waited for, while any still starts. */
  async #whenSomebodyIsReady(): Promise<void> {
    const { host } = this.#options
    // What is known of servers that sleep is a list, too.
    if (host.statuses.some(({ state }) => state === 'ready') || this.#current.view.binding.tools.length > 0) return
    const waiting = new AbortController()
    const unsubscribe = host.subscribe((event) => {
      if (event.kind === 'server.state-changed' && event.status.state === 'ready') waiting.abort()
    })
    try {
      await host.whenSettled({ waitMs: EMPTY_LIST_WAIT_MS, signal: waiting.signal })
    } catch {
      // somebody is ready, or the host is closed: either way there is nothing to wait for
    } finally {
      unsubscribe()
    }
  }

  /** There is a session or a listener. */
  get isWatched(): boolean {
    return this.#audience.size > 0
  }

  /** The host offers something else than before. */
  changed(change: ViewChange): void {
    this.#offers.forget()
    this.#resources.renew(this.#current.view)
    this.#audience.tell(change)
  }

  #heard(event: HostEvent): void {
    if (event.kind !== 'server.log') return
    const repeated = this.#told === event.data
    this.#told = NOTHING
    if (!repeated) this.#log(event)
  }

  /** A message of no call in particular. It goes to the one whom it can only concern, or to nobody. */
  #log({ server, level, logger, data }: HostEvent & { kind: 'server.log' }): void {
    const params = { level, data, ...(logger === undefined ? {} : { logger }) }
    const at = this.#inFlight.at(server)
    if (at.kind === 'one')
      return void this.#logs.pass(at.exchange, server, params, (shown) =>
        at.exchange.notify('notifications/message', shown),
      )
    const client = at.kind === 'client' ? at.client : at.kind === 'none' ? this.#audience.onlyClient : undefined
    if (client !== undefined)
      this.#logs.pass(client, server, params, (shown) => client.notify('notifications/message', shown))
  }

  async describe(client: Client): Promise<ServerDescription> {
    await this.#settling
    if (client.era === 'legacy') this.#audience.add(client)
    return describe(this.#current.view, this.#options.serverInfo)
  }

  clientClosed(client: Client): void {
    this.#audience.remove(client)
    this.#watching.drop(client)
    this.#isolation.drop(client)
  }

  inputSchema(tool: string): JsonObject | undefined {
    return this.#tool(this.#current.view, tool)?.inputSchema
  }

  #tool(view: View, name: unknown): CatalogTool | undefined {
    const tool = typeof name === 'string' ? view.binding.tool(name) : undefined
    return tool !== undefined && view.hides(tool.server) ? undefined : tool
  }

  request(exchange: Exchange): Reply | Promise<Reply> {
    if (exchange.client.era === 'modern') this.#audience.sawStranger()
    switch (exchange.method) {
      case 'tools/call':
        return this.#callTool(exchange)
      case 'tools/list':
        return this.#settling === undefined
          ? this.#listTools(exchange)
          : this.#settling.then(() => this.#listTools(exchange))
      case 'resources/list':
      case 'resources/templates/list':
      case 'prompts/list':
        return this.#listOffers(exchange, exchange.method)
      case 'resources/read':
      case 'prompts/get':
      case 'completion/complete':
        return this.#guarded(exchange, (view, options) => this.#ask(exchange, view, options))
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return exchange.client.era === 'legacy'
          ? this.#guarded(exchange, (view) => this.#subscription(exchange, view))
          : methodNotFound(exchange)
      case 'logging/setLevel':
        return exchange.client.era === 'legacy' ? { kind: 'result', result: {} } : methodNotFound(exchange)
      default:
        return methodNotFound(exchange)
    }
  }

  #listTools({ client, params }: Exchange): Reply {
    if (params['cursor'] !== undefined) return invalid('There is one page, and no cursor')
    this.#current.lookAgain()
    return this.#current.view.tools[client.era]
  }

  async #listOffers(exchange: Exchange, method: OfferMethod): Promise<Reply> {
    if (exchange.params['cursor'] !== undefined) return invalid('There is one page, and no cursor')
    await this.#settling
    await this.#wakeFor(CAPABILITY[method])
    const { view } = this.#current
    view.enter()
    try {
      return await this.#offers.list(view, method, exchange.client.era)
    } catch (error) {
      return { kind: 'error', error: clientError(error, exchange.client.era) }
    } finally {
      view.leave()
    }
  }

  #callTool(exchange: Exchange): Promise<Reply> {
    const { view } = this.#current
    const tool = this.#tool(view, exchange.params['name'])
    if (tool === undefined) return this.#callMissing(exchange)
    return tool.state === 'cached' ? this.#wakeAndCall(exchange, tool) : this.#carryTool(exchange, view, tool, 'first')
  }

  /** A tool that is known from before: its server is started, and asked what it has now. */
  async #wakeAndCall(exchange: Exchange, { name, server, rawName }: CatalogTool): Promise<Reply> {
    await this.#whenReady(server)
    const { view } = this.#current
    const tool = this.#tool(view, name)
    const isThere = tool?.state === 'live' && tool.server === server && tool.rawName === rawName
    return isThere && !exchange.isOver ? this.#carryTool(exchange, view, tool, 'second') : this.#callMissing(exchange)
  }

  /** Never rejects. */
  async #carryTool(exchange: Exchange, view: View, tool: CatalogTool, attempt: 'first' | 'second'): Promise<Reply> {
    const { server, rawName } = tool
    const fault = exchange.parameterFault?.(tool.inputSchema)
    if (fault !== undefined) return { kind: 'error', error: fault }
    if (this.#isolation.covers(exchange.client, server)) return this.#isolation.callTool(exchange, tool)
    let failure: unknown
    view.enter()
    this.#inFlight.enter(server, exchange)
    try {
      const port = view.port(server)
      const { logLevel } = exchange
      if (logLevel !== undefined && port !== undefined) await ensureLogLevel(view, port, logLevel)
      const upstream: Upstream = {
        server,
        era: port?.era ?? 'legacy',
        send: (params, options) => view.binding.callRaw(tool, params, options),
      }
      return await carry(exchange, upstream, { ...exchange.params, name: rawName }, this.#carriage)
    } catch (error) {
      failure = error
    } finally {
      this.#inFlight.leave(server, exchange)
      view.leave()
    }
    return attempt === 'first' && wasNeverSent(failure)
      ? this.#carryAgain(exchange, tool, failure)
      : { kind: 'error', error: clientError(failure, exchange.client.era) }
  }

  /** The connection was gone, or the tool listed anew, before the server saw anything of the call: once more, as it is now. */
  async #carryAgain(exchange: Exchange, { name, server, rawName }: CatalogTool, failure: unknown): Promise<Reply> {
    await this.#whenReady(server)
    const { view } = this.#current
    const tool = this.#tool(view, name)
    const isSame = tool?.server === server && tool.rawName === rawName
    return !isSame || exchange.isOver
      ? { kind: 'error', error: clientError(failure, exchange.client.era) }
      : this.#carryTool(exchange, view, tool, 'second')
  }

  /** Starts the server, if it sleeps or has failed not long ago, and waits for it within the limit. Never rejects. */
  async #whenReady(server: string): Promise<void> {
    const { host, callWaitMs } = this.#options
    const { nextRetryAtMs = 0 } = host.statuses.find(({ name }) => name === server) ?? {}
    const pauseMs = nextRetryAtMs - Date.now()
    // One that has just crashed is soon back. One that keeps failing is not waited for.
    if (pauseMs > 0 && pauseMs <= Math.min(RETRY_PAUSE_MS_MAX, callWaitMs)) await this.#pause(pauseMs)
    await host.whenSettled({ servers: [server], waitMs: callWaitMs }).catch(() => {})
    await this.#current.refresh()
  }

  /** Starts those that sleep and may offer it: only the live server can say what it has. Never rejects. */
  async #wakeFor(capability: string, server?: string): Promise<void> {
    const { host, callWaitMs } = this.#options
    const asleep = host.statuses.filter(({ name, state }) => state === 'dormant' && (server ?? name) === name)
    const servers = asleep.filter(({ name }) => mayOffer(host, name, capability)).map(({ name }) => name)
    if (servers.length === 0) return
    await host.whenSettled({ servers, waitMs: callWaitMs }).catch(() => {})
    await this.#current.refresh()
  }

  /** Ends early when the gateway closes. */
  #pause(pauseMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#pauses.delete(end)
        resolve()
      }
      const timer = setTimeout(end, pauseMs)
      this.#pauses.add(end)
    })
  }

  /** A tool of a server that is starting, sleeping or down is waited for; any other unknown name is refused with its neighbours. */
  async #callMissing(exchange: Exchange): Promise<Reply> {
    const name = String(exchange.params['name'])
    const first = this.#current.view.binding.resolveTool(name)
    if (first.kind === 'server-not-ready' && first.server !== undefined && !this.#current.view.hides(first.server)) {
      await this.#whenReady(first.server)
      const tool = this.#tool(this.#current.view, name)
      if (tool !== undefined && !exchange.isOver) return this.#carryTool(exchange, this.#current.view, tool, 'second')
    }
    const { kind, near, server, status } = {
      near: [],
      server: undefined,
      status: undefined,
      ...this.#current.view.binding.resolveTool(name),
    }
    if (kind === 'server-not-ready')
      return notReady(String(server), status?.reason?.message ?? `it is ${status?.state}`)
    const callable = near.filter((one) => this.#tool(this.#current.view, one) !== undefined)
    const hint = callable.length === 0 ? '' : `. Did you mean ${callable.map((one) => `"${one}"`).join(', ')}?`
    return invalid(`Unknown tool: ${name.slice(0, 200)}${hint}`)
  }

  /** Errors of the host become answers; the view stays open meanwhile. */
  async #guarded(exchange: Exchange, work: (view: View, options: CallOptions) => Promise<Reply>): Promise<Reply> {
    const { _meta: meta, requestState } = exchange.params
    await this.#wakeFor(neededBy(exchange), isObject(meta) ? serverKey(meta)[SERVER_KEY] : undefined)
    const { view } = this.#current
    if (requestState !== undefined && exchange.client.era === 'modern') return unknownState()
    view.enter()
    this.#inFlight.enterSomewhere()
    try {
      const own = isObject(meta) ? { ...upstreamMeta(meta), ...serverKey(meta) } : {}
      const signal = signalOf(exchange)
      // Which server it is turns out on the way. Only modern ones look at the capabilities.
      const options = requestOptions(
        exchange,
        { server: '', era: 'modern' },
        { ...this.#carriage, who: whoAnswers(exchange) },
      )
      return await work(view, { ...options, signal, ...(Object.keys(own).length === 0 ? {} : { meta: own }) })
    } catch (error) {
      return { kind: 'error', error: clientError(error, exchange.client.era) }
    } finally {
      this.#inFlight.leaveSomewhere()
      view.leave()
    }
  }

  async #ask({ method, params }: Exchange, { binding }: View, options: CallOptions): Promise<Reply> {
    if (method === 'completion/complete') {
      const { _meta: _, ...rest } = params
      return { kind: 'result', result: await binding.complete(rest, options) }
    }
    if (method === 'resources/read') {
      if (typeof params['uri'] !== 'string') return invalid('"uri" must be a string')
      return { kind: 'result', result: await binding.readResource(params['uri'], options) }
    }
    if (typeof params['name'] !== 'string') return invalid('"name" must be a string')
    const args = isObject(params['arguments']) ? params['arguments'] : {}
    return { kind: 'result', result: await binding.getPrompt(params['name'], args, options) }
  }

  async #subscription({ method, params, client }: Exchange, view: View): Promise<Reply> {
    const { uri, _meta: meta } = params
    if (typeof uri !== 'string') return invalid('"uri" must be a string')
    if (method === 'resources/unsubscribe') this.#watching.unsubscribe(client, uri)
    else await this.#watching.subscribe(view, client, await ownerOf(view, uri, isObject(meta) ? meta : undefined), uri)
    return { kind: 'result', result: {} }
  }

  async listen(listener: Listener): Promise<ListenFilter> {
    const { resourceSubscriptions = [], ...lists } = listener.wanted
    this.#audience.addListener(listener)
    if (resourceSubscriptions.length === 0) return lists
    await this.#wakeFor('resources')
    const { view } = this.#current
    const owned = await Promise.all(
      resourceSubscriptions.map(async (uri) => {
        const server = await ownerOf(view, uri, listener.meta).catch(() => undefined)
        return server === undefined ? [] : [{ server, uri }]
      }),
    )
    const granted = await this.#watching.listen(view, listener, owned.flat())
    return granted.length === 0 ? lists : { ...lists, resourceSubscriptions: granted }
  }

  /** Numbers for tests and status. */
  get counts(): { readonly subscriptions: number; readonly dedicated: number } {
    return { subscriptions: this.#resources.count, dedicated: this.#isolation.size }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unsubscribe()
    for (const end of this.#pauses) end()
    await this.#isolation[Symbol.asyncDispose]()
    await this.#resources.close()
    await this.#current[Symbol.asyncDispose]()
  }
}

const NOTHING = Symbol('nothing')
const SERVER_KEY = 'convoke/server'

/** The one key of ours that a client may send: which server it means. */
function serverKey(meta: JsonObject): { readonly [SERVER_KEY]?: string } {
  const server = meta[SERVER_KEY]
  return typeof server === 'string' ? { [SERVER_KEY]: server } : {}
}

const RETRIED: ReadonlySet<HostErrorCode> = new Set(['CONNECTION_LOST', 'CATALOG_CHANGED', 'TOOL_CHANGED'])

function wasNeverSent(error: unknown): boolean {
  return HostError.is(error) && RETRIED.has(error.code) && error.details['sent'] === false
}

/** What a server has to have for a list to need it. */
const CAPABILITY: Readonly<Record<OfferMethod, string>> = {
  'resources/list': 'resources',
  'resources/templates/list': 'resources',
  'prompts/list': 'prompts',
}

function neededBy({ method, params }: Exchange): string {
  const { ref } = params
  if (method === 'completion/complete') return isObject(ref) && ref['type'] === 'ref/prompt' ? 'prompts' : 'resources'
  return method === 'prompts/get' ? 'prompts' : 'resources'
}

/** By what it said of itself when it was last there; one that said nothing may. */
function mayOffer(host: Host, server: string, capability: string): boolean {
  const cache = host.serverLife(server)?.cache
  return cache?.kind !== 'kept' || cache.capabilities[capability] !== undefined
}

function whoAnswers({ method, params }: Exchange): string {
  return `The server behind ${method} ${cleanLine(String(params['name'] ?? params['uri'] ?? ''), 200)}`.trim()
}

function invalid(message: string): Reply {
  return { kind: 'error', error: { code: INVALID_PARAMS, message } }
}

function notReady(server: string, why: string): Reply {
  return {
    kind: 'error',
    error: {
      code: INTERNAL_ERROR,
      message: `Server "${server}" is not ready: ${why}`,
      data: { code: 'SERVER_NOT_READY', server },
    },
  }
}

function methodNotFound({ method }: Exchange): Reply {
  return { kind: 'error', error: { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` } }
}
