// From a judged request to its answer: what the protocol itself answers is answered here, the rest goes to the application.
import type { JsonObject } from '../protocol.ts'
import { isObject } from '../validate.ts'
import type { Application, ServerDescription } from './application.ts'
import { Exchange, type ExchangeInit, withCleanMeta } from './exchange.ts'
import { rpcErrorOf } from './failures.ts'
import type { LegacyClient } from './legacy-session.ts'
import type { EndpointLimits } from './limits.ts'
import { Listener, readFilter } from './listener.ts'
import { type ParkedCalls, UNKNOWN_STATE } from './parked-calls.ts'
import type { Reply } from './reply.ts'
import { INVALID_PARAMS, METHOD_NOT_FOUND, REMOVED_METHODS, SERVED_MODERN_VERSIONS, SERVER_INFO_KEY } from './rules.ts'

/** What starts a request. */
export type Start = Omit<ExchangeInit, 'services'>

const URIS_PER_LISTENER_MAX = 1_024

export class Dispatcher {
  readonly application: Application
  readonly parked: ParkedCalls
  readonly limits: EndpointLimits
  readonly #listeners = new Set<Listener>()
  /** How many clients listen at present. */
  get listenerCount(): number {
    return this.#listeners.size
  }

  constructor(application: Application, parked: ParkedCalls, limits: EndpointLimits) {
    this.application = application
    this.parked = parked
    this.limits = limits
  }

  /** Sets a request going. Gives the exchange that owns the outlet from now on: a parked call, if the client came back to one. */
  begin(start: Start): Exchange {
    const exchange = new Exchange({
      ...start,
      params: withCleanMeta(start.params),
      services: { limits: this.limits, parking: this.parked },
    })
    if (start.client.era === 'modern') {
      if (REMOVED_METHODS.has(start.method)) return finished(exchange, methodNotFound(start.method))
      const { requestState } = start.params
      if (this.parked.isParked(requestState)) return this.#resume(exchange, requestState, start)
    }
    this.#answer(exchange)
    return exchange
  }

  /** A notification of a legacy client. */
  tell(client: LegacyClient, method: string, params: JsonObject): void {
    if (method === 'notifications/cancelled') client.cancel(params)
    else this.application.notification?.(client, method, params)
  }

  #resume(newcomer: Exchange, state: string, { outlet }: Start): Exchange {
    const resumed = this.parked.resume(newcomer, state, outlet)
    return 'refused' in resumed ? finished(newcomer, invalidParams(resumed.refused)) : resumed
  }

  #answer(exchange: Exchange): void {
    let reply: Reply | Promise<Reply> | undefined
    try {
      reply = this.#route(exchange)
    } catch (error) {
      reply = { kind: 'error', error: rpcErrorOf(error) }
    }
    if (reply === undefined) return
    if ('kind' in reply) return exchange.finish(reply)
    reply.then(
      (late) => exchange.finish(late),
      (error: unknown) => exchange.finish({ kind: 'error', error: rpcErrorOf(error) }),
    )
  }

  /** Undefined: the request stays open. */
  #route(exchange: Exchange): Reply | Promise<Reply> | undefined {
    const modern = exchange.client.era === 'modern'
    if (!modern && exchange.method === 'ping') return { kind: 'result', result: {} }
    if (modern && exchange.method === 'server/discover') return this.#discover(exchange)
    if (modern && exchange.method === 'subscriptions/listen') return this.#listen(exchange)
    if (!modern && exchange.method === 'logging/setLevel' && !exchange.applyLogLevel())
      return invalidParams('"level" must be one of the log levels')
    return this.application.request(exchange)
  }

  async #discover({ client }: Exchange): Promise<Reply> {
    return { kind: 'result', result: discoverResult(await this.application.describe(client)) }
  }

  #listen(exchange: Exchange): Reply | undefined {
    const { application } = this
    if (application.listen === undefined) return methodNotFound(exchange.method)
    const filter = readFilter(exchange.params, URIS_PER_LISTENER_MAX)
    if ('fault' in filter) return invalidParams(filter.fault)
    if (this.#listeners.size >= this.limits.streamsMax)
      return {
        kind: 'error',
        status: 429,
        error: { code: -32000, message: `More than ${this.limits.streamsMax} event streams` },
      }
    const listener = new Listener(exchange, filter)
    this.#listeners.add(listener)
    exchange.whenCancelled(() => this.#forget(listener))
    void this.#grant(exchange, listener)
    return undefined
  }

  /** Never rejects. */
  async #grant(exchange: Exchange, listener: Listener): Promise<void> {
    try {
      const granted = await this.application.listen?.(listener)
      if (exchange.isOver || (granted !== undefined && listener.acknowledge(granted))) return
      exchange.finish(invalidParams('Listening needs a client that accepts text/event-stream'))
    } catch (error) {
      exchange.finish({ kind: 'error', error: rpcErrorOf(error) })
    }
    this.#forget(listener)
  }

  #forget(listener: Listener): void {
    this.#listeners.delete(listener)
    listener.close()
  }

  /** Ends every subscription from our side. */
  endListeners(): void {
    for (const listener of this.#listeners) listener.end()
    this.#listeners.clear()
  }
}

function finished(exchange: Exchange, reply: Reply): Exchange {
  exchange.finish(reply)
  return exchange
}

function methodNotFound(method: string): Reply {
  return { kind: 'error', error: { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` } }
}

function invalidParams(message: string): Reply {
  return { kind: 'error', error: { code: INVALID_PARAMS, message } }
}

/** A `requestState` that is neither a parked call's nor the application's. */
export function unknownState(): Reply {
  return invalidParams(UNKNOWN_STATE)
}

function discoverResult({ serverInfo, capabilities, instructions, ttlMs, cacheScope }: ServerDescription): JsonObject {
  return {
    resultType: 'complete',
    supportedVersions: SERVED_MODERN_VERSIONS,
    capabilities,
    ...(instructions === undefined ? {} : { instructions }),
    ttlMs: ttlMs ?? 0,
    cacheScope: cacheScope ?? 'private',
    ...(isObject(serverInfo) ? { _meta: { [SERVER_INFO_KEY]: serverInfo } } : {}),
  }
}
