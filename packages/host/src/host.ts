// The composition root: the only file that may know every room.
import { HostError, type JsonObject } from './base/index.ts'
import type { ServerDefinition } from './config/index.ts'
import type { ServerPort } from './connection/index.ts'
import type { HostEventListener, ServerStatus } from './events/index.ts'
import type { Authorization, ServerRequestHandler } from './protocol/index.ts'
import type { Binding } from './set/index.ts'

/** Answers to what servers ask of the host. A capability is declared only for a handler that is given. */
export interface HostHandlers {
  readonly elicit?: ServerRequestHandler
  readonly sample?: ServerRequestHandler
  readonly roots?: ServerRequestHandler
}

/** What {@link createHost} takes. Only `definitions` is required. */
export interface HostOptions {
  readonly definitions: readonly ServerDefinition[]
  /** Default `{ name: 'convoke', version: … }`. */
  readonly clientInfo?: { readonly name: string; readonly version: string; readonly title?: string }
  /** Where lease files are kept; absent: nothing is reaped and no lease is written. */
  readonly stateDirectory?: string
  /** Where verdicts and catalogs are remembered; absent: in memory only. */
  readonly cacheDirectory?: string
  /** `undici` for long-lived hosts. Default `node`. */
  readonly http?: 'node' | 'undici'
  /** When queued messages are written: at the end of a tick, or of a turn of the event loop (for gateways). Default `tick`. */
  readonly writeBurst?: 'tick' | 'turn'
  readonly handlers?: HostHandlers
  /** Which servers are started at once. Default `all`. A call starts its own server. */
  readonly start?: 'all' | readonly string[]
  /** Longest flat name, in characters, 24 to 128. Default 48. */
  readonly nameCharsMax?: number
  /** Credentials of an HTTP server; asked before its first connection. */
  readonly authorization?: (definition: ServerDefinition) => Authorization | undefined
  /** Abort closes the host. */
  readonly signal?: AbortSignal
}

/** Every configured server, kept connected. */
export interface Host extends AsyncDisposable {
  /** One per definition, in their order. Looking starts nothing. */
  readonly statuses: readonly ServerStatus[]
  /** @returns a function that ends the subscription. */
  subscribe(listener: HostEventListener): () => void
  /** Resolves when no server is starting or installing any more, or after `waitMs` (default: no limit). Never rejects for a server. */
  whenSettled(options?: {
    readonly waitMs?: number
    readonly servers?: readonly string[]
    readonly signal?: AbortSignal
  }): Promise<void>
  /** The frozen view of now. Servers still starting are not in it; servers that failed are started again if their time has come. */
  bind(options?: { readonly signal?: AbortSignal }): Promise<Binding>
  /** A connection of its own to one server, for a client whose capabilities it carries. @throws {HostError} */
  openDedicated(server: string, options: DedicatedOptions): Promise<ServerPort & AsyncDisposable>
  /** Ends the server's connection and starts it again; resolves when it has settled. @throws {HostError} `SERVER_UNKNOWN` */
  reconnect(server: string): Promise<ServerStatus>
  /** Ends everything: processes, sockets, timers. Idempotent. */
  close(): Promise<void>
}

/** How a dedicated connection introduces itself and answers. */
export interface DedicatedOptions {
  readonly capabilities: JsonObject
  readonly clientInfo?: JsonObject
  readonly handlers?: Record<string, ServerRequestHandler>
  readonly onNotification?: (method: string, params: JsonObject) => void
  readonly signal?: AbortSignal
}

/** Makes a host and starts its servers side by side. Resolves at once, before any server has answered. */
export async function createHost(options: HostOptions): Promise<Host> {
  const statuses = options.definitions.map(
    ({ name, transport }): ServerStatus => ({
      name,
      state: 'dormant',
      sinceAtMs: Date.now(),
      transport: transport.kind,
    }),
  )
  const notYet = (): never => {
    throw new HostError('SERVER_NOT_READY', 'No server is connected yet')
  }
  return {
    statuses,
    subscribe: () => () => {},
    whenSettled: async () => {},
    bind: async () => notYet(),
    openDedicated: async () => notYet(),
    reconnect: async () => notYet(),
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
}
