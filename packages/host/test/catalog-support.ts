// One connection with its catalog, as the set makes them, for what cannot be seen through a whole host.
import { defineServer, type HostEvent, type JsonObject, type ServerDefinition } from '@convoke/host'
import { nodePlatform } from '@convoke/wire'
import type { CachedCatalog, NegotiatedIdentity } from '../src/catalog/cached-catalog.ts'
import {
  type CacheFacts,
  type CacheScope,
  type CatalogCacheEntry,
  CatalogView,
  cacheScope,
  LOCAL_ENVIRONMENT,
  ServerCatalog,
} from '../src/catalog/index.ts'
import { toolListing } from '../src/catalog/listing.ts'
import { resolveTraits } from '../src/config/index.ts'
import { ServerConnection } from '../src/connection/index.ts'
import { LaunchMemory, type ServerSession } from '../src/protocol/index.ts'

/** The place of a definition's catalog on this machine. */
export function scopeOf(definition: ServerDefinition, more: Partial<CacheFacts> = {}): CacheScope {
  const decision = cacheScope({
    definition,
    traits: resolveTraits(definition),
    environment: { kind: 'resolved', name: 'local', handle: LOCAL_ENVIRONMENT },
    credentials: { kind: 'none' },
    env: {},
    cwd: '/',
    client: {},
    ...more,
  })
  if (decision.kind === 'uncacheable') throw new Error(decision.because)
  return decision.scope
}

/** A server that only has a name. */
export const named = (name: string, more: Partial<ServerDefinition> = {}): ServerDefinition =>
  defineServer({ name, transport: { kind: 'stdio', command: name, args: [], env: {}, envVars: [] }, ...more })

export const tool = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  inputSchema: { type: 'object' },
  ...more,
})

export const IDENTITY: NegotiatedIdentity = {
  protocolVersion: '2025-11-25',
  serverInfo: { name: 'kept', version: '1' },
  capabilities: { tools: {} },
  instructions: undefined,
}

/** A catalog as a server would have listed it. */
export function catalogOf(server: string, tools: readonly JsonObject[], listedAtMs = Date.now()): CachedCatalog {
  return { listing: toolListing(server, { items: [...tools], rejected: [] }), identity: IDENTITY, listedAtMs }
}

/** A catalog as a hosted server would have listed it. */
export function hostedCatalogOf(server: string, tools: readonly JsonObject[]): CachedCatalog {
  const listing = toolListing(server, { items: [...tools], rejected: [] }, 'hosted')
  return { listing, identity: IDENTITY, listedAtMs: Date.now() }
}

/** One server, connected by itself. */
export interface Wired extends AsyncDisposable {
  readonly catalog: ServerCatalog
  readonly connection: ServerConnection
  readonly view: CatalogView
  readonly events: readonly HostEvent[]
  /** Starts it. @throws when it fails. */
  ready(): Promise<ServerSession>
}

/** Wires a connection to a catalog. It starts when it is asked for. */
export function wired(
  definition: ServerDefinition,
  more: { readonly cache?: CatalogCacheEntry; readonly liveKey?: string; readonly previous?: ServerCatalog } = {},
): Wired {
  const events: HostEvent[] = []
  const traits = resolveTraits(definition)
  const emit = (event: HostEvent): void => void events.push(event)
  const catalog = new ServerCatalog({
    server: definition.name,
    listTimeoutMs: definition.startupTimeoutMs,
    listItemsMax: traits.catalogItemLimit,
    kind: traits.isHosted ? 'hosted' : 'ordinary',
    platform: nodePlatform,
    emit,
    watch: 'changes',
    ...more,
  })
  const connection = new ServerConnection({
    definition,
    settings: {
      platform: nodePlatform,
      clientInfo: { name: 'test', version: '1' },
      capabilities: {},
      handlers: {},
      http: 'node',
      writeBurst: 'tick',
      leaseDirectory: undefined,
      closeGraceMs: undefined,
      memory: new LaunchMemory(nodePlatform, undefined),
    },
    sink: catalog,
    emit,
    initial: { kind: 'dormant', sinceAtMs: 0, reason: { code: 'SERVER_NOT_READY', message: 'asleep' } },
  })
  return {
    catalog,
    connection,
    view: new CatalogView({ catalog, definition, traits, cache: more.cache }),
    events,
    async ready() {
      connection.need()
      await connection.whenSettled()
      if (connection.session === undefined) throw new Error(JSON.stringify(connection.state))
      return connection.session
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}
