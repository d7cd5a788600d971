// One server, passed through as it is: no names of ours, no text changed, and for each session a connection of its own with exactly its capabilities.
import { cleanLine, type Host, HostError, type JsonObject, type Subscription } from '@convoke/host'
import {
  type Application,
  type Client,
  type Exchange,
  INVALID_PARAMS,
  type Listener,
  type ListenFilter,
  METHOD_NOT_FOUND,
  type Reply,
  rpcFailure,
  type ServerDescription,
} from '@convoke/wire/server'
import { isObject, type Unanswered } from './asks.ts'
import { Dedicated, type DedicatedPort, filterTools, ToolRules } from './dedicated.ts'
import { clientError } from './errors.ts'
import { upstreamMeta } from './params.ts'
import { type Carriage, carry } from './upstream-call.ts'

export interface TransparentOptions {
  readonly host: Host
  readonly server: string
  /** For its limits, and the tools that are not allowed. */
  readonly unanswered: Unanswered
}

/** What modern clients share: their capabilities travel with each request. */
const ANY_CLIENT: Client = {
  era: 'modern',
  version: '',
  capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
  info: {},
  principal: '',
  logLevel: undefined,
  notify: () => false,
  ask: (method) => Promise.reject(rpcFailure(METHOD_NOT_FOUND, `"${method}" belongs to no request of a client`)),
}

const UPDATED = 'notifications/resources/updated'
/** What a legacy client says to a modern server has no place there. */
const OF_THE_SESSION = new Set(['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'])

/** What one client has at the server. */
interface Mirror {
  readonly dedicated: Dedicated
  /** Legacy clients of a modern server: what it is asked to tell, by URI; the empty one for the lists. */
  readonly subscriptions: Map<string, Subscription>
}

export class TransparentApplication implements Application, AsyncDisposable {
  readonly #options: TransparentOptions
  readonly #mirrors = new Map<Client, Mirror>()
  readonly #closing = new Set<Promise<void>>()
  /** Input schemas by tool, from the last list that went through. */
  #schemas: Map<string, JsonObject> | undefined

  constructor(options: TransparentOptions) {
    this.#options = options
  }

  /** As the server is configured now. */
  get #rules(): ToolRules {
    const { host, server } = this.#options
    return new ToolRules(host.definitions.find(({ name }) => name === server))
  }

  /** Connections that are open. */
  get counts(): { readonly subscriptions: number; readonly dedicated: number } {
    let subscriptions = 0
    for (const mirror of this.#mirrors.values()) subscriptions += mirror.subscriptions.size
    return { subscriptions, dedicated: this.#mirrors.size }
  }

  async describe(client: Client): Promise<ServerDescription> {
    const mirror = this.#mirror(client)
    try {
      const port = await mirror.dedicated.port()
      if (client.era === 'legacy' && port.era === 'modern') await this.#hearLists(client, mirror, port)
      const { tasks: _, ...capabilities } = port.capabilities
      return {
        serverInfo: port.serverInfo,
        capabilities: client.era === port.era ? port.capabilities : capabilities,
        ...(port.instructions === undefined ? {} : { instructions: port.instructions }),
      }
    } catch (error) {
      const { code, message, data } = clientError(error, client.era)
      throw rpcFailure(code, message, data)
    }
  }

  #mirror(client: Client): Mirror {
    const key = client.era === 'modern' ? ANY_CLIENT : client
    const known = this.#mirrors.get(key)
    if (known !== undefined) return known
    const mirror: Mirror = {
      subscriptions: new Map(),
      dedicated: new Dedicated({
        host: this.#options.host,
        server: this.#options.server,
        client: key,
        capabilities: key.capabilities,
        voice: 'verbatim',
        unanswered: this.#options.unanswered,
        onNotification: (method, params) => void key.notify(method, params),
      }),
    }
    this.#mirrors.set(key, mirror)
    return mirror
  }

  /** A modern server tells of changes only when it is asked to. */
  async #hearLists(client: Client, { subscriptions }: Mirror, port: DedicatedPort): Promise<void> {
    const changes = (name: string): boolean =>
      (port.capabilities[name] as JsonObject | undefined)?.['listChanged'] === true
    const filter = {
      ...(changes('tools') ? { toolsListChanged: true } : {}),
      ...(changes('prompts') ? { promptsListChanged: true } : {}),
      ...(changes('resources') ? { resourcesListChanged: true } : {}),
    }
    if (Object.keys(filter).length === 0) return
    const subscription = await port.subscribe(filter, { onNotification: (method) => void client.notify(method, {}) })
    this.#keep(client, subscriptions, '', subscription)
  }

  #keep(client: Client, subscriptions: Map<string, Subscription>, uri: string, subscription: Subscription): void {
    if (this.#mirrors.get(client)?.subscriptions !== subscriptions) return void subscription.close()
    subscriptions.set(uri, subscription)
    void subscription.closed.then(() => {
      if (subscriptions.get(uri) === subscription) subscriptions.delete(uri)
    })
  }

  clientClosed(client: Client): void {
    const mirror = this.#mirrors.get(client)
    this.#mirrors.delete(client)
    if (mirror === undefined) return
    const closing = mirror.dedicated[Symbol.asyncDispose]().finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }

  inputSchema(tool: string): JsonObject | undefined {
    return this.#schemas?.get(tool)
  }

  async request(exchange: Exchange): Promise<Reply> {
    const { client, method, params } = exchange
    const mirror = this.#mirror(client)
    try {
      const refused = this.#refuse(method, params)
      if (refused !== undefined) return refused
      const port = await mirror.dedicated.port()
      if (client.era === 'legacy' && port.era === 'modern' && OF_THE_SESSION.has(method))
        return await this.#ofTheSession(exchange, mirror, port)
      const reply = await carry(exchange, this.#upstream(method, port), params, this.#carriage(mirror))
      if (method === 'tools/list') this.#note(reply)
      return reply
    } catch (error) {
      return { kind: 'error', error: clientError(error, client.era) }
    }
  }

  #refuse(method: string, params: JsonObject): Reply | undefined {
    const name = String(params['name'])
    if (method !== 'tools/call' || this.#rules.allows(name)) return undefined
    return {
      kind: 'error',
      error: { code: INVALID_PARAMS, message: `The configuration does not allow the tool ${cleanLine(name, 200)}` },
    }
  }

  #upstream(method: string, port: DedicatedPort): Parameters<typeof carry>[1] {
    const { server } = this.#options
    return {
      server,
      era: port.era,
      send: async (params, options) => {
        const limits = this.#rules.limits(method === 'tools/call' ? String(params['name']) : undefined)
        const answer = await port.requestRaw(method, params, { ...options, ...limits })
        return method === 'tools/list' ? filterTools(answer, this.#rules) : answer
      },
    }
  }

  #carriage({ dedicated }: Mirror): Carriage {
    return {
      voice: 'verbatim',
      trust: this.#options.host,
      unanswered: this.#options.unanswered,
      onLog: (exchange, _server, params) => {
        dedicated.tellOnce(params)
        exchange.notify('notifications/message', params)
      },
    }
  }

  /** The headers of modern calls repeat arguments that the schema names. */
  #note(reply: Reply): void {
    if (reply.kind !== 'result-bytes') return
    const { tools } = JSON.parse(reply.body.toString('utf8')) as { tools?: unknown }
    if (!Array.isArray(tools)) return
    this.#schemas = new Map(
      tools.flatMap((tool: unknown) =>
        isObject(tool) && typeof tool['name'] === 'string' && isObject(tool['inputSchema'])
          ? [[tool['name'], tool['inputSchema']]]
          : [],
      ),
    )
  }

  /** What an older client says to its session, at a server that has none. */
  async #ofTheSession(
    { method, params, client }: Exchange,
    { subscriptions }: Mirror,
    port: DedicatedPort,
  ): Promise<Reply> {
    const { uri } = params
    if (method === 'resources/unsubscribe') await subscriptions.get(String(uri))?.close()
    if (method === 'resources/subscribe' && !subscriptions.has(String(uri))) {
      if (typeof uri !== 'string' || uri === '')
        return { kind: 'error', error: { code: INVALID_PARAMS, message: '"uri" must be a string' } }
      const subscription = await port.subscribe(
        { resourceSubscriptions: [uri] },
        { onNotification: (_method, told) => void client.notify(UPDATED, { uri: told['uri'] ?? uri }) },
      )
      this.#keep(client, subscriptions, uri, subscription)
    }
    return { kind: 'result', result: {} }
  }

  notification(client: Client, method: string, params: JsonObject): void {
    if (method === 'notifications/initialized') return // the connection has said it for itself
    const { _meta: meta } = params
    const passed = isObject(meta) ? { ...params, _meta: upstreamMeta(meta) } : params
    void this.#mirrors
      .get(client)
      ?.dedicated.port()
      .then(
        (port) => port.notify(method, passed),
        () => {},
      )
  }

  async listen(listener: Listener): Promise<ListenFilter> {
    const port = await this.#mirror(listener.client).dedicated.port()
    let subscription: Subscription | undefined
    let isClosed = false
    listener.whenClosed(() => {
      isClosed = true
      void subscription?.close()
    })
    try {
      subscription = await port.subscribe(listener.wanted, {
        onNotification: (method, { _meta: meta, ...params }) =>
          void listener.notify(method, isObject(meta) ? { ...params, _meta: upstreamMeta(meta) } : params),
      })
    } catch (error) {
      if (!HostError.is(error)) throw error
      const { code, message, data } = clientError(error, 'modern')
      throw rpcFailure(code, message, data)
    }
    if (isClosed) void subscription.close()
    void subscription.closed.then(() => listener.end())
    return subscription.honored
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of [...this.#mirrors.keys()]) this.clientClosed(client)
    await Promise.all(this.#closing)
  }
}
