// What somebody who serves MCP provides. Everything of the protocol that does not need to know what is served is done on this side of it.
import type { JsonObject } from '../protocol.ts'
import type { Client } from './client.ts'
import type { Exchange } from './exchange.ts'
import type { Listener, ListenFilter } from './listener.ts'
import type { Reply } from './reply.ts'

/** How a server presents itself. */
export interface ServerDescription {
  readonly serverInfo: JsonObject
  readonly capabilities: JsonObject
  readonly instructions?: string
  /** Caching hints of `server/discover`, for modern clients; `ttlMs` in ms. Default 0 and private. */
  readonly ttlMs?: number
  readonly cacheScope?: 'public' | 'private'
}

/** The behaviour behind an endpoint. */
export interface Application {
  /** For `initialize` and `server/discover`. A failure of the first ends the session. */
  describe(client: Client): ServerDescription | Promise<ServerDescription>
  /**
   * Answers one request. What it throws is answered as an error: `details.rpc` of a `WireError` as it stands, anything else as "Internal error".
   * Not asked: `initialize`, `ping`, `server/discover`, `subscriptions/listen`, and what the modern era has removed.
   */
  request(exchange: Exchange): Reply | Promise<Reply>
  /** A notification of a legacy client, other than `cancelled`; also `initialized`. */
  notification?(client: Client, method: string, params: JsonObject): void
  /** A session is over; nothing can be sent any more. Told once for every client that `describe` was asked for by `initialize`. */
  clientClosed?(client: Client): void
  /** A client listens. Gives what it will be told of; absent: subscriptions are not served. */
  listen?(listener: Listener): ListenFilter | Promise<ListenFilter>
  /** The input schema of a tool, for the headers that repeat its arguments. Cheap: it is asked for each modern HTTP call. */
  inputSchema?(tool: string, client: Client): JsonObject | undefined
}
