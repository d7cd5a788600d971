// Servers with `isolation: "session"`: each session has a connection of its own to them, opened with its first call and closed with the session.
import type { CatalogTool, Host, ServerDefinition } from '@convoke/host'
import type { Client, Exchange, Reply } from '@convoke/wire/server'
import { Dedicated, ToolRules } from './dedicated.ts'
import { clientError } from './errors.ts'
import type { LogGate } from './log-gate.ts'
import { type Carriage, carry } from './upstream-call.ts'

export interface IsolationOptions {
  readonly host: Host
  readonly carriage: Carriage
  readonly logs: LogGate
}

export class Isolation implements AsyncDisposable {
  readonly #options: IsolationOptions
  /** The isolated servers of the definitions that were published when they were last asked for. */
  #isolated: { readonly of: readonly ServerDefinition[]; readonly byName: ReadonlyMap<string, ServerDefinition> } = {
    of: [],
    byName: new Map(),
  }
  readonly #byClient = new Map<Client, Map<string, Dedicated>>()
  readonly #closing = new Set<Promise<void>>()

  constructor(options: IsolationOptions) {
    this.#options = options
  }

  #definition(server: string): ServerDefinition | undefined {
    const { definitions } = this.#options.host
    if (this.#isolated.of !== definitions) {
      const isolated = definitions.filter(({ isolation }) => isolation === 'session')
      this.#isolated = { of: definitions, byName: new Map(isolated.map((one) => [one.name, one])) }
    }
    return this.#isolated.byName.get(server)
  }

  /** Connections that are open. */
  get size(): number {
    let size = 0
    for (const servers of this.#byClient.values()) size += servers.size
    return size
  }

  /** Only sessions have something of their own: a modern client is a new one with each request. */
  covers(client: Client, server: string): boolean {
    return client.era === 'legacy' && this.#definition(server) !== undefined
  }

  /** Never rejects. */
  async callTool(exchange: Exchange, { server, rawName }: CatalogTool): Promise<Reply> {
    const { carriage } = this.#options
    const rules = new ToolRules(this.#definition(server))
    const dedicated = this.#dedicated(exchange.client, server)
    try {
      const port = await dedicated.port()
      return await carry(
        exchange,
        {
          server,
          era: port.era,
          send: (params, options) => port.requestRaw('tools/call', params, { ...options, ...rules.limits(rawName) }),
        },
        { ...exchange.params, name: rawName },
        {
          ...carriage,
          onLog: (owner, name, params) => {
            dedicated.tellOnce(params)
            carriage.onLog(owner, name, params)
          },
        },
      )
    } catch (error) {
      return { kind: 'error', error: clientError(error, exchange.client.era) }
    }
  }

  #dedicated(client: Client, server: string): Dedicated {
    const servers = this.#byClient.get(client) ?? new Map<string, Dedicated>()
    this.#byClient.set(client, servers)
    const known = servers.get(server)
    if (known !== undefined) return known
    const { host, logs } = this.#options
    const { elicitation, sampling, roots } = client.capabilities
    const dedicated = new Dedicated({
      host,
      server,
      client,
      capabilities: Object.fromEntries(
        Object.entries({ elicitation, sampling, roots }).filter(([, value]) => value !== undefined),
      ),
      voice: 'named',
      unanswered: this.#options.carriage.unanswered,
      onNotification: (method, params) => {
        if (method === 'notifications/message')
          logs.pass(client, server, params, (shown) => client.notify(method, shown))
      },
    })
    servers.set(server, dedicated)
    return dedicated
  }

  /** The session is over. */
  drop(client: Client): void {
    const servers = this.#byClient.get(client)
    this.#byClient.delete(client)
    for (const dedicated of servers?.values() ?? []) {
      const closing = dedicated[Symbol.asyncDispose]().finally(() => this.#closing.delete(closing))
      this.#closing.add(closing)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of [...this.#byClient.keys()]) this.drop(client)
    await Promise.all(this.#closing)
  }
}
