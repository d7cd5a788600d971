import type { JsonObject } from '../base/index.ts'
import type {
  Aggregate,
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  NamespacedName,
} from '../catalog/index.ts'
import type { ServerPort } from '../connection/index.ts'
import type { CatalogNote, ServerStatus } from '../events/index.ts'
import type { RawAnswer, RequestOptions } from '../protocol/index.ts'
import type { CallOptions, CallOutcome } from './call-outcome.ts'
import type { PreparedCall } from './prepared-call.ts'

export type { CallOptions, CallOutcome } from './call-outcome.ts'

/** What a text that names a tool means. */
export type ToolResolution =
  | { readonly kind: 'found'; readonly tool: CatalogTool }
  | { readonly kind: 'ambiguous'; readonly tools: readonly CatalogTool[] }
  | {
      readonly kind: 'unknown-server' | 'unknown-tool' | 'server-not-ready'
      readonly server?: string
      readonly status?: ServerStatus
      /** Names that look alike, best first; at most 5. */
      readonly near: readonly string[]
    }

/** Options of a listing over all servers. */
export interface ListingOptions {
  /** Stops the waiting; servers that were asked already may still answer. */
  readonly signal?: AbortSignal
  /** Only these servers. */
  readonly servers?: readonly string[]
}

/**
 * The frozen view of one moment: the servers that were ready, their tools and the connections behind them. It never changes; calls go to
 * exactly the connection that was advertised. Dispose it, or the connections it holds stay open after they have been replaced.
 */
export interface Binding extends AsyncDisposable {
  /** Changes exactly when the content of `tools` does. */
  readonly revision: string
  readonly tools: readonly CatalogTool[]
  readonly statuses: readonly ServerStatus[]
  /** What was left out, cleaned or cut, and why. */
  readonly notes: readonly CatalogNote[]
  /** The name of a tool of this binding for models that know namespaces: `mcp__SERVER` and `TOOL`, 64 characters in all. */
  namespaced(tool: CatalogTool): NamespacedName | undefined
  /** What the namespace of a tool of this binding is for, for models that know namespaces. Server text, cleaned and cut. */
  namespaceDescription(tool: CatalogTool): string | undefined
  /** The tool of that flat name. */
  tool(name: string): CatalogTool | undefined
  /** What a person means by `SERVER/TOOL` or by a flat name. The longest server name that fits wins. */
  resolveTool(text: string): ToolResolution
  /** Number of the generation that is held; one more with every publication. */
  readonly generation: number
  /**
   * A call of its own, pinned to the connection and the listing of this view; it outlives the binding, and holds the generation until it is
   * disposed. Undefined for a tool that is only known from an earlier run, and for a model (`audience`, the default) where the tool is hidden from
   * models.
   */
  prepare(tool: CatalogTool, options?: { readonly audience?: 'model' | 'host' }): PreparedCall | undefined
  /** Calls a tool. Never throws for what a server does: every end of a call is an outcome. */
  call(tool: CatalogTool, args: JsonObject, options?: CallOptions): Promise<CallOutcome>
  /** Calls a tool and gives the answer as bytes; the limits of the server's definition apply. @throws {HostError} */
  callRaw(tool: CatalogTool, params: JsonObject, options?: RequestOptions): Promise<RawAnswer>
  resources(options?: ListingOptions): Promise<Aggregate<CatalogResource>>
  resourceTemplates(options?: ListingOptions): Promise<Aggregate<CatalogResourceTemplate>>
  prompts(options?: ListingOptions): Promise<Aggregate<CatalogPrompt>>
  /** @throws {HostError} `RESOURCE_AMBIGUOUS` names the servers that offer the URI; `RESOURCE_UNKNOWN` when nobody does. */
  readResource(uri: string, options?: CallOptions & { readonly server?: string }): Promise<JsonObject>
  /** `name` is the flat name. @throws {HostError} `PROMPT_UNKNOWN` suggests near names. */
  getPrompt(name: string, args: JsonObject, options?: CallOptions): Promise<JsonObject>
  /** `completion/complete`; `ref.name` of a prompt is its flat name. @throws {HostError} */
  complete(params: JsonObject, options?: CallOptions): Promise<JsonObject>
  /** The server's connection, if it was ready. */
  server(name: string): ServerPort | undefined
}
