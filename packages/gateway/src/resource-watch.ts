// Resources that clients watch: the first watcher subscribes at the server, the last one ends that. A server that comes back is asked again.
import type { Subscription } from '@convoke/host'
import { METHOD_NOT_FOUND, rpcFailure } from '@convoke/wire/server'
import type { View } from './view.ts'

/** Who watches: told with the URI that the server names. */
export type Watcher = (uri: string) => void

interface Watched {
  readonly server: string
  readonly uri: string
  readonly watchers: Set<Watcher>
  subscription: Promise<Subscription> | undefined
}

const UPDATED = 'notifications/resources/updated'

export class ResourceWatch {
  readonly #watched = new Map<string, Map<string, Watched>>()

  /** Subscriptions at servers. */
  get count(): number {
    let count = 0
    for (const uris of this.#watched.values()) count += uris.size
    return count
  }

  /** @throws {HostError} what the server refuses with; {WireError} when it cannot be subscribed to */
  async watch(view: View, server: string, uri: string, watcher: Watcher): Promise<void> {
    const watched = this.#entry(server, uri)
    watched.watchers.add(watcher)
    watched.subscription ??= this.#open(view, watched)
    try {
      await watched.subscription
    } catch (error) {
      this.unwatch(server, uri, watcher)
      throw error
    }
  }

  /** Idempotent. */
  unwatch(server: string, uri: string, watcher: Watcher): void {
    const uris = this.#watched.get(server)
    const watched = uris?.get(uri)
    if (watched === undefined) return
    watched.watchers.delete(watcher)
    if (watched.watchers.size > 0) return
    uris?.delete(uri)
    if (uris?.size === 0) this.#watched.delete(server)
    void close(watched.subscription)
  }

  /** Subscribes again what was lost with its connection, where the server is back. */
  renew(view: View): void {
    for (const uris of this.#watched.values())
      for (const watched of uris.values())
        if (watched.subscription === undefined && view.port(watched.server) !== undefined)
          void (watched.subscription = this.#open(view, watched)).catch(() => {})
  }

  /** Ends every subscription. */
  async close(): Promise<void> {
    const all = [...this.#watched.values()].flatMap((uris) => [...uris.values()])
    this.#watched.clear()
    await Promise.all(all.map(({ subscription }) => close(subscription)))
  }

  #entry(server: string, uri: string): Watched {
    let uris = this.#watched.get(server)
    if (uris === undefined) this.#watched.set(server, (uris = new Map()))
    let watched = uris.get(uri)
    if (watched === undefined) uris.set(uri, (watched = { server, uri, watchers: new Set(), subscription: undefined }))
    return watched
  }

  async #open(view: View, watched: Watched): Promise<Subscription> {
    const { server, uri, watchers } = watched
    const port = view.port(server)
    if (port === undefined) throw rpcFailure(METHOD_NOT_FOUND, `Server "${server}" is not ready`)
    let subscription: Subscription
    try {
      subscription = await port.subscribe(
        { resourceSubscriptions: [uri] },
        {
          onNotification: (method, params) => {
            if (method === UPDATED)
              for (const watcher of watchers) watcher(typeof params['uri'] === 'string' ? params['uri'] : uri)
          },
        },
      )
    } catch (error) {
      watched.subscription = undefined
      throw error
    }
    if (subscription.honored.resourceSubscriptions?.includes(uri) !== true) {
      watched.subscription = undefined
      await subscription.close()
      throw rpcFailure(METHOD_NOT_FOUND, `Server "${server}" does not tell about changes of its resources`)
    }
    const mine = Promise.resolve(subscription)
    watched.subscription = mine
    void subscription.closed.then((cause) => {
      if (cause === 'remote' && watched.subscription === mine) watched.subscription = undefined
    })
    return subscription
  }
}

async function close(subscription: Promise<Subscription> | undefined): Promise<void> {
  try {
    await (await subscription)?.close()
  } catch {
    // It was never there, or is gone.
  }
}
