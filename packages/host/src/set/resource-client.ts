// Resources of the servers of now, for extensions: it stays valid while generations come and go.
import { HostError, isObject, type JsonObject, outgoingMeta } from '../base/index.ts'
import { resolveTraits } from '../config/index.ts'
import type { ServerConnection } from '../connection/index.ts'
import type { ConnectionKey, ResourceClient, ResourcePage, ResourceRequestOptions } from '../extensions/index.ts'
import type { Platform, RequestOptions } from '../protocol/index.ts'
import type { BoundServer } from './bound-server.ts'
import type { CallOptions } from './call-outcome.ts'
import { boundWhenReady, type LiveServers, withoutWaiting } from './live-servers.ts'

/** What the client needs of the set. */
export interface ResourceClientPort extends LiveServers {
  /** Who the host is to this server, as an interned object; undefined where nobody speaks for it, or the server is not known. */
  authScope(server: string): object | undefined
}

const CURSOR_BYTES_MAX = 65_536
const URI_CHARS_MAX = 8_192

/** One key for each connection, as long as it lives. */
const keys = new WeakMap<ServerConnection, ConnectionKey>()

/** Reads through whatever connection is published when it is asked. */
export class LiveResourceClient implements ResourceClient {
  readonly #port: ResourceClientPort
  readonly #platform: Platform

  constructor(port: ResourceClientPort, platform: Platform) {
    this.#port = port
    this.#platform = platform
  }

  hasServer(server: string): boolean {
    return this.#port.member(server) !== undefined
  }

  connectionKey(server: string): ConnectionKey | undefined {
    const connection = this.#port.member(server)?.connection
    return connection === undefined ? undefined : connectionKeyOf(connection)
  }

  authScopeKey(server: string): object | undefined {
    return this.#port.authScope(server)
  }

  async listResources(
    server: string,
    options: ResourceRequestOptions & { readonly cursor?: string } = {},
  ): Promise<ResourcePage> {
    const { cursor, ...rest } = options
    if (cursor !== undefined && Buffer.byteLength(cursor) > CURSOR_BYTES_MAX)
      throw new HostError('ARGUMENTS_INVALID', `A cursor has at most ${CURSOR_BYTES_MAX} bytes`)
    const params = cursor === undefined ? {} : { cursor }
    const page = await this.#ask(server, rest, {
      method: 'resources/list',
      params,
      what: `resources/list failed for "${server}"`,
    })
    const { resources, nextCursor } = page
    if (!Array.isArray(resources))
      throw new HostError('PROTOCOL_ERROR', `Server "${server}": the answer to "resources/list" has no list`)
    return {
      resources: resources.filter((one): one is JsonObject => isObject(one) && typeof one['uri'] === 'string'),
      malformedCount: resources.filter((one) => !isObject(one) || typeof one['uri'] !== 'string').length,
      ...(typeof nextCursor === 'string' ? { nextCursor } : {}),
    }
  }

  async readResource(server: string, uri: string, options: ResourceRequestOptions = {}): Promise<JsonObject> {
    if (uri.length > URI_CHARS_MAX)
      throw new HostError('ARGUMENTS_INVALID', `A URI has at most ${URI_CHARS_MAX} characters`)
    return this.#ask(server, options, {
      method: 'resources/read',
      params: { uri },
      what: `resources/read failed for "${server}" (${uri})`,
    })
  }

  async #ask(server: string, options: ResourceRequestOptions, asked: Question): Promise<JsonObject> {
    const live = this.#port.member(server)
    if (live === undefined)
      throw new HostError('SERVER_UNKNOWN', `There is no server "${server}"`, { details: { server } })
    return askServer(() => boundWhenReady(live, { platform: this.#platform, ...options }), asked, {
      options,
      platform: this.#platform,
    })
  }
}

/** The interned key of a connection. */
export function connectionKeyOf(connection: ServerConnection): ConnectionKey {
  let key = keys.get(connection)
  if (key === undefined) {
    key = Object.freeze({ server: connection.definition.name })
    keys.set(connection, key)
  }
  return key
}

/** One request to one server, and what to say when it fails. */
export interface Question {
  readonly method: string
  readonly params: JsonObject
  /** Stands before the reason of a failure. */
  readonly what: string
}

/** Limits of a question, and the clock they are measured by. */
export interface QuestionLimits {
  readonly options: ResourceRequestOptions & Pick<CallOptions, 'meta' | 'callId' | 'onProgress'>
  readonly platform: Platform
}

/**
 * Asks one server, waiting for it first. The limits of its tools hold for such requests too, the caller's limit for all of it.
 * @throws {HostError} with the code of what went wrong; the message begins with `what`.
 */
export async function askServer(
  find: () => BoundServer | Promise<BoundServer>,
  { method, params, what }: Question,
  { options, platform }: QuestionLimits,
): Promise<JsonObject> {
  const beganAtMs = platform.now()
  try {
    const { definition, session } = await find()
    const { timeoutMs, meta, callId: _, ...rest } = withoutWaiting(options, platform.now() - beganAtMs)
    const limits: RequestOptions = {
      ...rest,
      idleTimeoutMs: definition.toolTimeoutMs,
      totalTimeoutMs: Math.min(timeoutMs ?? Number.POSITIVE_INFINITY, definition.toolTotalTimeoutMs),
    }
    const own = outgoingMeta(meta, resolveTraits(definition))
    return await session.request(method, own === undefined ? params : { ...params, _meta: own }, limits)
  } catch (error) {
    if (!HostError.is(error)) throw error
    throw new HostError(error.code, `${what}: ${error.message}`, { details: error.details, cause: error })
  }
}
