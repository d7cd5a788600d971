// What the tests of hosted plugins share: a provider that answers as it is told, time that a test moves, and resources that say who the host is.
import type { JsonObject } from '@convoke/host'
import type { ConnectionKey, ResourceClient, ResourcePage } from '@convoke/host/extension'
import { ExtensionStore } from '../src/extensions/index.ts'
import type {
  PluginCatalog,
  PluginClock,
  PluginEntry,
  PluginIdentity,
  PluginLocation,
  PluginProvider,
  PluginQuery,
} from '../src/plugins/index.ts'

/** One hosted plugin. */
export function entry(remotePluginId: string, more: Partial<PluginEntry> = {}): PluginEntry {
  const id: PluginIdentity = { kind: 'remote', remotePluginId }
  const location: PluginLocation = { kind: 'hosted', resourceUri: `plugin://${remotePluginId}` }
  return {
    id,
    enabled: true,
    displayName: `${remotePluginId} demo`,
    version: '1.0.0',
    mcpServers: {},
    connectorIds: ['calendar'],
    locations: [location],
    ...more,
  }
}

export const complete = (...entries: PluginEntry[]): PluginCatalog => ({ entries, warnings: [], isPartial: false })
export const partial = (...entries: PluginEntry[]): PluginCatalog => ({ entries, warnings: [], isPartial: true })
export const idsOf = (catalog: PluginCatalog | undefined): string[] | undefined =>
  catalog?.entries.map(({ id }) => (id.kind === 'remote' ? id.remotePluginId : id.kind))

/** Answers what was said last. */
export class ScriptedProvider implements PluginProvider {
  /** An error rejects; a function does what it does. */
  reply: PluginCatalog | Error | (() => Promise<PluginCatalog>) = complete()
  readonly queries: PluginQuery[] = []
  readonly signals: AbortSignal[] = []
  #isPaused = false
  #resume: () => void = () => {}
  #began: () => void = () => {}

  get calls(): number {
    return this.queries.length
  }

  /** The next listing waits. @returns resolves when it has begun. */
  pause(): Promise<void> {
    this.#isPaused = true
    return new Promise((resolve) => {
      this.#began = resolve
    })
  }

  /** The listing that waits goes on, with what was the reply when it was asked. */
  resume(): void {
    this.#resume()
  }

  list(query: PluginQuery, { signal }: { readonly signal: AbortSignal }): Promise<PluginCatalog> {
    this.queries.push(query)
    this.signals.push(signal)
    const { reply } = this
    if (typeof reply === 'function') return reply()
    const answer = async (): Promise<PluginCatalog> => {
      if (reply instanceof Error) throw reply
      return reply
    }
    if (!this.#isPaused) return answer()
    this.#isPaused = false
    this.#began()
    return new Promise<void>((resolve) => {
      this.#resume = resolve
    }).then(answer)
  }
}

/** Time that stands still until it is moved. */
export class VirtualClock implements PluginClock {
  #nowMs = 1_000
  readonly #timers = new Map<object, { readonly atMs: number; readonly callback: () => void }>()

  get timers(): number {
    return this.#timers.size
  }
  now(): number {
    return this.#nowMs
  }
  setTimer(callback: () => void, ms: number): object {
    const timer = {}
    this.#timers.set(timer, { atMs: this.#nowMs + ms, callback })
    return timer
  }
  clearTimer(timer: object): void {
    this.#timers.delete(timer)
  }
  advance(ms: number): void {
    this.#nowMs += ms
    for (const [timer, { atMs, callback }] of [...this.#timers])
      if (atMs <= this.#nowMs && this.#timers.delete(timer)) callback()
  }
}

/** Resources of one server, which a test signs in and reconnects. */
export class TestResources implements ResourceClient {
  scope: object | undefined = {}
  connection: ConnectionKey | undefined = { server: 'apps' }
  hasApps = true
  /** What a page is; by its cursor. */
  page: (cursor: string | undefined, signal: AbortSignal | undefined) => Promise<ResourcePage> = async () => {
    throw new Error('nobody lists here')
  }

  hasServer(server: string): boolean {
    return this.hasApps && server === 'apps'
  }
  connectionKey(server: string): ConnectionKey | undefined {
    return this.hasServer(server) ? this.connection : undefined
  }
  authScopeKey(server: string): object | undefined {
    return this.hasServer(server) ? this.scope : undefined
  }
  signIn(): void {
    this.scope = {}
  }
  reconnect(): void {
    this.connection = { server: 'apps' }
  }
  listResources(
    _: string,
    { cursor, signal }: { readonly cursor?: string; readonly signal?: AbortSignal } = {},
  ): Promise<ResourcePage> {
    return this.page(cursor, signal)
  }
  readResource(): Promise<JsonObject> {
    throw new Error('nobody reads here')
  }
}

let stores = 0
/** A store for a thread or a turn. */
export const store = (level: 'session' | 'thread' | 'turn'): ExtensionStore =>
  new ExtensionStore(level, `${level}-${(stores += 1)}`)

/** Lets everything run that waits for nothing but other promises. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
