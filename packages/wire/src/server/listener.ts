// `subscriptions/listen`: one long-lived request of a modern client that is told of changes until one side ends it.
import type { JsonObject } from '../protocol.ts'
import { isObject } from '../validate.ts'
import type { Client } from './client.ts'
import type { Exchange } from './exchange.ts'
import { SUBSCRIPTION_KEY } from './rules.ts'

/** What a listener wants to hear of, or is promised. */
export interface ListenFilter {
  readonly toolsListChanged?: boolean
  readonly promptsListChanged?: boolean
  readonly resourcesListChanged?: boolean
  readonly resourceSubscriptions?: readonly string[]
}

const WAITING_MAX = 64
const FLAGS = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const
const FLAG_OF: ReadonlyMap<string, (typeof FLAGS)[number]> = new Map([
  ['notifications/tools/list_changed', 'toolsListChanged'],
  ['notifications/prompts/list_changed', 'promptsListChanged'],
  ['notifications/resources/list_changed', 'resourcesListChanged'],
])

/** The filter of a request, or why it is none. `urisMax`: how many resources one listener may watch. */
export function readFilter(params: JsonObject, urisMax: number): ListenFilter | { readonly fault: string } {
  const { notifications } = params
  if (!isObject(notifications)) return { fault: '"notifications" must be an object' }
  const uris = notifications['resourceSubscriptions']
  if (uris !== undefined && !(Array.isArray(uris) && uris.every((uri) => typeof uri === 'string')))
    return { fault: '"resourceSubscriptions" must be a list of URIs' }
  if (Array.isArray(uris) && uris.length > urisMax)
    return { fault: `"resourceSubscriptions" has more than ${urisMax} URIs` }
  return {
    ...Object.fromEntries(FLAGS.filter((flag) => notifications[flag] === true).map((flag) => [flag, true])),
    ...(Array.isArray(uris) ? { resourceSubscriptions: [...new Set(uris as string[])] } : {}),
  }
}

/** One listening client. */
export class Listener {
  readonly client: Client
  /** What the client asked for. */
  readonly wanted: ListenFilter
  /** Meta of the request; a vendor key may say to which server a URI belongs. */
  readonly meta: JsonObject
  readonly #exchange: Exchange
  #granted: ListenFilter | undefined
  #closed = false
  #onClosed: (() => void) | undefined
  /** What came before the acknowledgement, which must be the first message. */
  #waiting: { method: string; params: JsonObject }[] = []

  constructor(exchange: Exchange, wanted: ListenFilter) {
    this.client = exchange.client
    this.wanted = wanted
    this.meta = isObject(exchange.params['_meta']) ? exchange.params['_meta'] : {}
    this.#exchange = exchange
  }

  /** Calls back once when it is over, whichever side ended it; at once if it is. */
  whenClosed(listener: () => void): void {
    if (this.#closed) listener()
    else this.#onClosed = listener
  }

  /** It is over. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#onClosed?.()
  }

  /** Tells of a change, if the client was promised to hear of it. False: it was not told. */
  notify(method: string, params: JsonObject = {}): boolean {
    if (this.#granted === undefined) {
      if (this.#waiting.length < WAITING_MAX) this.#waiting.push({ method, params })
      return this.#waiting.length < WAITING_MAX
    }
    return this.#wants(method, params) && this.#exchange.notify(method, this.#tagged(params))
  }

  #wants(method: string, params: JsonObject): boolean {
    const flag = FLAG_OF.get(method)
    if (flag !== undefined) return this.#granted?.[flag] === true
    return method === 'notifications/resources/updated' && this.#watches(String(params['uri']))
  }

  /** A server may name a part of what is watched. */
  #watches(uri: string): boolean {
    const watched = this.#granted?.resourceSubscriptions ?? []
    return watched.some((one) => uri === one || (uri.startsWith(one) && uri[one.length] === '/'))
  }

  #tagged(params: JsonObject): JsonObject {
    const meta = isObject(params['_meta']) ? params['_meta'] : {}
    return { ...params, _meta: { ...meta, [SUBSCRIPTION_KEY]: this.#exchange.id } }
  }

  /** The first message. False: the client cannot be told anything. */
  acknowledge(granted: ListenFilter): boolean {
    const sent = this.#exchange.notify(
      'notifications/subscriptions/acknowledged',
      this.#tagged({ notifications: granted }),
    )
    this.#granted = granted
    const waiting = this.#waiting
    this.#waiting = []
    for (const { method, params } of waiting) this.notify(method, params)
    return sent
  }

  /** Ends it from our side, gracefully. */
  end(): void {
    this.#exchange.finish({
      kind: 'result',
      result: { resultType: 'complete', _meta: { [SUBSCRIPTION_KEY]: this.#exchange.id } },
    })
    this.close()
  }
}
