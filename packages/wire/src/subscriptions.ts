// Being told about changes: legacy servers push them on their own, and resources after `resources/subscribe`; modern ones answer `subscriptions/listen`.
import { WireError } from './errors.ts'
import type { Peer } from './peer.ts'
import type { Era, JsonObject } from './protocol.ts'
import { isObject } from './validate.ts'

/** What to be told about. */
export interface SubscriptionFilter {
  toolsListChanged?: boolean
  promptsListChanged?: boolean
  resourcesListChanged?: boolean
  /** URIs of resources whose content is watched. At most 1,024. */
  resourceSubscriptions?: readonly string[]
}

/** An abort of `signal` ends the attempt; afterwards it has no effect. */
export interface SubscriptionOptions {
  signal?: AbortSignal
  /** Until the server has agreed. Default 30,000. */
  timeoutMs?: number
  /** What this subscription brought. The session's listener hears it too. */
  onNotification?: (method: string, params: JsonObject) => void
  /** The stream had dropped and is there again: something may have been missed in between. */
  onResumed?: () => void
}

/** A standing request to be told. */
export interface Subscription extends AsyncDisposable {
  /** What the server agreed to tell. */
  readonly honored: SubscriptionFilter
  /** Resolves when it is over; never rejects. `local`: closed here; `remote`: ended by the server, or with the connection. */
  readonly closed: Promise<'local' | 'remote'>
  close(): Promise<void>
}

/** What a subscription needs of its session. */
export interface SubscriptionSource {
  readonly era: Era
  readonly capabilities: JsonObject
  readonly peer: Peer
  /** Every notification of the session. Returns how to stop listening. */
  listen(listener: (method: string, params: JsonObject) => void): () => void
  /** Legacy: how many subscriptions want each resource. */
  readonly watched: Map<string, number>
}

const TIMEOUT_MS = 30_000
const RELISTEN_MS_MIN = 1_000,
  RELISTEN_MS_MAX = 30_000
const URIS_MAX = 1_024
/** Asking again would only be refused again, and might ask somebody to sign in who is not there. */
const FINAL: ReadonlySet<string> = new Set(['remote', 'unauthorized', 'refused'])
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const UPDATED = 'notifications/resources/updated'
const LIST_CHANGES = {
  toolsListChanged: { method: 'notifications/tools/list_changed', capability: 'tools' },
  promptsListChanged: { method: 'notifications/prompts/list_changed', capability: 'prompts' },
  resourcesListChanged: { method: 'notifications/resources/list_changed', capability: 'resources' },
} as const
type ListChange = keyof typeof LIST_CHANGES
const LIST_CHANGE_KEYS = Object.keys(LIST_CHANGES) as ListChange[]

/** @throws {WireError} what the server answered, `timed-out`, `cancelled` or `closed`. */
export async function subscribe(
  source: SubscriptionSource,
  filter: SubscriptionFilter,
  options: SubscriptionOptions,
): Promise<Subscription> {
  if ((filter.resourceSubscriptions?.length ?? 0) > URIS_MAX)
    throw new WireError('too-large', `A subscription can watch at most ${URIS_MAX} resources`, { sent: false })
  const subscription =
    source.era === 'legacy'
      ? new LegacySubscription(source, filter, options)
      : new ModernSubscription(source, filter, options)
  await subscription.open()
  return subscription
}

/** Asks again for everything that is watched, in a new legacy session. */
export async function watchAgain({ peer, watched }: Pick<SubscriptionSource, 'peer' | 'watched'>): Promise<void> {
  await Promise.all([...watched.keys()].map((uri) => peer.request('resources/subscribe', { uri }).catch(() => {})))
}

abstract class BaseSubscription implements Subscription {
  honored: SubscriptionFilter = {}
  readonly closed: Promise<'local' | 'remote'>
  protected readonly source: SubscriptionSource
  protected readonly filter: SubscriptionFilter
  protected readonly options: SubscriptionOptions
  protected isOver = false
  #end: (cause: 'local' | 'remote') => void = () => {}

  constructor(source: SubscriptionSource, filter: SubscriptionFilter, options: SubscriptionOptions) {
    this.source = source
    this.filter = filter
    this.options = options
    this.closed = new Promise((resolve) => {
      this.#end = resolve
    })
    void source.peer.closed.then(() => this.end('remote'))
  }

  abstract open(): Promise<void>
  abstract close(): Promise<void>

  protected end(cause: 'local' | 'remote'): void {
    this.isOver = true
    this.#end(cause)
  }

  protected tell(method: string, params: JsonObject): void {
    try {
      this.options.onNotification?.(method, params)
    } catch {
      /* a throwing listener is its own business */
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

class LegacySubscription extends BaseSubscription {
  #stop: () => void = () => {}
  #uris: string[] = []

  async open(): Promise<void> {
    this.honored = honoredByLegacy(this.filter, this.source.capabilities)
    this.#stop = this.source.listen((method, params) => {
      if (this.#wants(method, params)) this.tell(method, params)
    })
    try {
      for (const uri of this.honored.resourceSubscriptions ?? []) await this.#watch(uri)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  #wants(method: string, { uri }: JsonObject): boolean {
    if (method !== UPDATED)
      return LIST_CHANGE_KEYS.some((key) => this.honored[key] && LIST_CHANGES[key].method === method)
    // A server may name a part of what was asked for.
    return typeof uri === 'string' && this.#uris.some((one) => uri === one || uri.startsWith(`${one}/`))
  }

  async #watch(uri: string): Promise<void> {
    const { watched, peer } = this.source
    const { signal, timeoutMs = TIMEOUT_MS } = this.options
    this.#uris.push(uri)
    watched.set(uri, (watched.get(uri) ?? 0) + 1)
    if (watched.get(uri) === 1)
      await peer.request('resources/subscribe', { uri }, { totalTimeoutMs: timeoutMs, ...(signal && { signal }) })
  }

  async close(): Promise<void> {
    if (this.isOver) return
    this.end('local')
    this.#stop()
    const { watched, peer } = this.source
    const last = this.#uris.filter((uri) => {
      const left = (watched.get(uri) ?? 1) - 1
      if (left > 0) watched.set(uri, left)
      else watched.delete(uri)
      return left <= 0
    })
    await Promise.all(
      last.map((uri) => peer.request('resources/unsubscribe', { uri }, { idleTimeoutMs: TIMEOUT_MS }).catch(() => {})),
    )
  }
}

function honoredByLegacy(filter: SubscriptionFilter, capabilities: JsonObject): SubscriptionFilter {
  const says = (capability: string, what: string): boolean => {
    const value = capabilities[capability]
    return isObject(value) && value[what] === true
  }
  const honored: SubscriptionFilter = {}
  for (const key of LIST_CHANGE_KEYS)
    if (filter[key] === true && says(LIST_CHANGES[key].capability, 'listChanged')) honored[key] = true
  const uris = [...new Set(filter.resourceSubscriptions ?? [])]
  if (uris.length > 0 && says('resources', 'subscribe')) honored.resourceSubscriptions = uris
  return honored
}

/** One request that stays open. When its stream drops it is sent again, later and later, until the server or the session ends it. */
class ModernSubscription extends BaseSubscription {
  readonly #stop = new AbortController()
  #delayMs = RELISTEN_MS_MIN

  async open(): Promise<void> {
    const { signal } = this.options
    const onAbort = (): void => this.#stop.abort(signal?.reason)
    if (signal?.aborted === true) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      await this.#listen()
    } catch (error) {
      this.end('local')
      throw error
    } finally {
      signal?.removeEventListener('abort', onAbort) // afterwards `close` ends it
    }
  }

  /** Resolves when the server has agreed. */
  #listen(): Promise<void> {
    const { platform } = this.source.peer
    const { timeoutMs = TIMEOUT_MS } = this.options
    return new Promise((resolve, reject) => {
      let agreed = false
      const attempt = new AbortController()
      const onStop = (): void => attempt.abort(this.#stop.signal.reason)
      this.#stop.signal.addEventListener('abort', onStop, { once: true })
      if (this.#stop.signal.aborted) onStop()
      const timer = platform.setTimer(() => attempt.abort(), timeoutMs, 'background')
      const onNotification = (method: string, params: JsonObject): void => {
        if (method !== ACKNOWLEDGED) return this.tell(method, params)
        agreed = true
        platform.clearTimer(timer)
        this.#delayMs = RELISTEN_MS_MIN
        this.honored = isObject(params['notifications']) ? params['notifications'] : this.filter
        resolve()
      }
      this.source.peer
        .request(
          'subscriptions/listen',
          { notifications: this.filter },
          { idleTimeoutMs: 0, signal: attempt.signal, onNotification },
        )
        .then(
          () =>
            agreed
              ? this.end('remote')
              : reject(new WireError('malformed', 'The server ended the subscription before it began', { sent: true })),
          (error: Error) => (agreed ? this.#again(error) : reject(this.#failure(error, timeoutMs))),
        )
        .finally(() => {
          platform.clearTimer(timer)
          this.#stop.signal.removeEventListener('abort', onStop)
        })
    })
  }

  #failure(error: Error, timeoutMs: number): Error {
    if (!(error instanceof WireError) || error.code !== 'cancelled' || this.#stop.signal.aborted) return error
    return new WireError('timed-out', `The server did not agree to a subscription within ${timeoutMs} ms`, {
      limit: 'total',
      sent: true,
    })
  }

  /** The stream is gone. An answer of the server is its last word, and so is a refusal; anything else is an accident. */
  #again(error: Error): void {
    if (this.isOver || (error instanceof WireError && FINAL.has(error.code))) return this.end('remote')
    const { platform } = this.source.peer
    const timer = platform.setTimer(
      () => {
        this.#stop.signal.removeEventListener('abort', stop)
        this.#listen().then(
          () => this.#resumed(),
          (again: Error) => this.#again(again),
        )
      },
      this.#delayMs,
      'background',
    )
    const stop = (): void => platform.clearTimer(timer)
    this.#stop.signal.addEventListener('abort', stop, { once: true })
    void this.closed.then(stop)
    this.#delayMs = Math.min(this.#delayMs * 2, RELISTEN_MS_MAX)
  }

  #resumed(): void {
    try {
      this.options.onResumed?.()
    } catch {
      /* a throwing listener is its own business */
    }
  }

  async close(): Promise<void> {
    if (this.isOver) return
    this.end('local')
    this.#stop.abort()
  }
}
