// Everybody who can be told something that no call asked for: sessions, and modern clients that listen.
import type { JsonObject } from '@convoke/host'
import type { Client, Listener } from '@convoke/wire/server'
import type { ViewChange } from './current-view.ts'

const METHOD_OF: Readonly<Record<keyof ViewChange, string>> = {
  tools: 'notifications/tools/list_changed',
  prompts: 'notifications/prompts/list_changed',
  resources: 'notifications/resources/list_changed',
}

export class Audience {
  readonly #clients = new Set<Client>()
  readonly #listeners = new Set<Listener>()
  #seenCount = 0

  add(client: Client): void {
    this.#clients.add(client)
    this.#seenCount++
  }

  /** A client that is none of the sessions has asked something. */
  sawStranger(): void {
    this.#seenCount = Number.POSITIVE_INFINITY
  }

  /** Until it is closed. */
  addListener(listener: Listener): void {
    this.#listeners.add(listener)
    listener.whenClosed(() => this.#listeners.delete(listener))
  }

  remove(client: Client): void {
    this.#clients.delete(client)
  }

  /** Sessions and listeners. */
  get size(): number {
    return this.#clients.size + this.#listeners.size
  }

  /** The only client there ever was: whatever a server tells can concern nobody else. */
  get onlyClient(): Client | undefined {
    return this.#seenCount === 1 ? [...this.#clients][0] : undefined
  }

  /** Tells everybody which lists have changed. */
  tell(change: ViewChange): void {
    for (const kind of ['tools', 'prompts', 'resources'] as const) if (change[kind]) this.#send(METHOD_OF[kind], {})
  }

  #send(method: string, params: JsonObject): void {
    for (const client of this.#clients) client.notify(method, params)
    for (const listener of this.#listeners) listener.notify(method, params)
  }
}
