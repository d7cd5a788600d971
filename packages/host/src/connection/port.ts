import type { JsonObject } from '../base/index.ts'
import type {
  RawAnswer,
  RequestOptions,
  Subscription,
  SubscriptionFilter,
  SubscriptionOptions,
} from '../protocol/index.ts'

/** One live server, spoken to directly. It stays bound to its connection: when that ends, every later request fails. */
export interface ServerPort {
  readonly name: string
  readonly era: 'legacy' | 'modern'
  readonly capabilities: JsonObject
  readonly serverInfo: JsonObject
  readonly instructions: string | undefined
  /** Any request. @throws {HostError} */
  request(method: string, params?: JsonObject, options?: RequestOptions): Promise<JsonObject>
  /** Any request, the answer as unchecked bytes. @throws {HostError} */
  requestRaw(method: string, params: JsonObject, options?: RequestOptions): Promise<RawAnswer>
  notify(method: string, params?: JsonObject): void
  /** Changes of catalogs and resources, until the handle is disposed. @throws {HostError} */
  subscribe(filter: SubscriptionFilter, options?: SubscriptionOptions): Promise<Subscription>
}
