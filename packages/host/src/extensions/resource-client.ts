import type { JsonObject } from '../base/index.ts'

/** Which connection something was read through. Compared with `===`; another connection is another key, also of the same server. */
export interface ConnectionKey {
  readonly server: string
}

/** How a request of a {@link ResourceClient} is limited. */
export interface ResourceRequestOptions {
  readonly signal?: AbortSignal
  /** For the whole, the start of the server included, in milliseconds. Default: the server's own limits. */
  readonly timeoutMs?: number
}

/** One page of a listing. */
export interface ResourcePage {
  /** As the server sent them; each has a `uri`. */
  readonly resources: readonly JsonObject[]
  /** Items that had none, and were left out. */
  readonly malformedCount: number
  /** Present when there is more. An empty one is a cursor like any other. */
  readonly nextCursor?: string
}

/**
 * Resources of single servers, for extensions. It goes through whatever is published when it is asked, so it stays valid while the configuration changes; whoever keeps what
 * was read keeps the two keys with it, and reads anew when one of them is another object.
 */
export interface ResourceClient {
  /** Is the server configured? Waits for nothing and starts nothing. */
  hasServer(server: string): boolean
  /** The connection of now; undefined for an unknown server. Starts nothing. */
  connectionKey(server: string): ConnectionKey | undefined
  /** Who the host is to the server now; compared with `===`. Undefined where nobody speaks for it. */
  authScopeKey(server: string): object | undefined
  /**
   * One page. Starts the server if it has to, and waits for it.
   * @throws {HostError} `SERVER_UNKNOWN`, `ARGUMENTS_INVALID` for a cursor over 65,536 bytes, or what the server failed with; `CANCELLED` on abort.
   */
  listResources(server: string, options?: ResourceRequestOptions & { readonly cursor?: string }): Promise<ResourcePage>
  /**
   * Reads one resource. Starts the server if it has to, and waits for it.
   * @throws {HostError} `SERVER_UNKNOWN`, `ARGUMENTS_INVALID` for a URI over 8,192 characters, or what the server failed with; `CANCELLED` on abort.
   */
  readResource(server: string, uri: string, options?: ResourceRequestOptions): Promise<JsonObject>
}
