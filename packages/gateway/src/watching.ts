// Which client watches which resource, until it says otherwise or is gone.
import type { Client, Listener } from '@convoke/wire/server'
import { BUSY, rpcFailure } from '@convoke/wire/server'
import type { ResourceWatch, Watcher } from './resource-watch.ts'
import type { View } from './view.ts'

const PER_CLIENT_MAX = 1_024
const UPDATED = 'notifications/resources/updated'

interface Watch {
  readonly server: string
  readonly watcher: Watcher
}

/** `resources/subscribe` of sessions, and the resources of those who listen. */
export class Watching {
  readonly #resources: ResourceWatch
  /** By client: what it watches, by URI. */
  readonly #watches = new Map<Client, Map<string, Watch>>()

  constructor(resources: ResourceWatch) {
    this.#resources = resources
  }

  /** Subscribing again changes nothing. @throws {WireError} {HostError} */
  async subscribe(view: View, client: Client, server: string, uri: string): Promise<void> {
    const watches = this.#watches.get(client) ?? new Map<string, Watch>()
    this.#watches.set(client, watches)
    if (watches.has(uri)) return
    if (watches.size >= PER_CLIENT_MAX)
      throw rpcFailure(BUSY, `More than ${PER_CLIENT_MAX} subscriptions of one client`)
    const watcher: Watcher = (updated) => void client.notify(UPDATED, { uri: updated })
    watches.set(uri, { server, watcher })
    try {
      await this.#resources.watch(view, server, uri, watcher)
    } catch (error) {
      watches.delete(uri)
      throw error
    }
    // It left while we asked.
    if (this.#watches.get(client) !== watches) this.#resources.unwatch(server, uri, watcher)
  }

  unsubscribe(client: Client, uri: string): void {
    const watch = this.#watches.get(client)?.get(uri)
    if (watch === undefined) return
    this.#watches.get(client)?.delete(uri)
    this.#resources.unwatch(watch.server, uri, watch.watcher)
  }

  drop(client: Client): void {
    const watches = this.#watches.get(client)
    this.#watches.delete(client)
    for (const [uri, { server, watcher }] of watches ?? []) this.#resources.unwatch(server, uri, watcher)
  }

  /** The URIs among `wanted` that the listener will hear of. Never rejects. */
  async listen(
    view: View,
    listener: Listener,
    wanted: readonly { readonly server: string; readonly uri: string }[],
  ): Promise<string[]> {
    const watcher: Watcher = (uri) => void listener.notify(UPDATED, { uri })
    const granted: { server: string; uri: string }[] = []
    let isClosed = false
    listener.whenClosed(() => {
      isClosed = true
      for (const { server, uri } of granted) this.#resources.unwatch(server, uri, watcher)
    })
    await Promise.all(
      wanted.map(async (one) => {
        try {
          await this.#resources.watch(view, one.server, one.uri, watcher)
          granted.push(one)
          if (isClosed) this.#resources.unwatch(one.server, one.uri, watcher)
        } catch {
          // Not granted: the acknowledgement says so.
        }
      }),
    )
    return granted.map(({ uri }) => uri)
  }
}
