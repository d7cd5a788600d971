import type { JsonObject, Lease } from '../base/index.ts'
import type {
  Aggregate,
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  NamespacedName,
  OutputSchemas,
  ToolView,
} from '../catalog/index.ts'
import { type ServerPort, sessionPort } from '../connection/index.ts'
import type { CatalogNote, ServerStatus } from '../events/index.ts'
import type { Platform, RawAnswer, RequestOptions } from '../protocol/index.ts'
import type { Binding, CallOptions, CallOutcome, ListingOptions, ToolResolution } from './binding.ts'
import type { BoundServer } from './bound-server.ts'
import type { Generation } from './generation.ts'
import { BoundOffers } from './offers.ts'
import { resolveTool } from './resolve.ts'
import { ToolCalls } from './tool-calls.ts'

/** What a binding is made of. */
export interface LiveBindingInit {
  readonly lease: Lease<Generation>
  /** The servers that were ready. */
  readonly servers: readonly BoundServer[]
  readonly view: ToolView
  readonly statuses: readonly ServerStatus[]
  readonly outputs: OutputSchemas
  readonly nameCharsMax: number
  readonly platform: Platform
}

/** The frozen view of one moment, over a leased generation. */
export class LiveBinding implements Binding {
  readonly statuses: readonly ServerStatus[]
  readonly #lease: Lease<Generation>
  readonly #view: ToolView
  readonly #servers: ReadonlyMap<string, BoundServer>
  readonly #calls: ToolCalls
  readonly #offers: BoundOffers

  constructor({ lease, servers, view, statuses, outputs, nameCharsMax, platform }: LiveBindingInit) {
    this.statuses = statuses
    this.#lease = lease
    this.#view = view
    this.#servers = new Map(servers.map((bound) => [bound.definition.name, bound]))
    this.#calls = new ToolCalls({ servers: this.#servers, outputs, platform })
    this.#offers = new BoundOffers({ servers: this.#servers, nameCharsMax })
  }

  get revision(): string {
    return this.#view.revision
  }
  get tools(): readonly CatalogTool[] {
    return this.#view.tools
  }
  get notes(): readonly CatalogNote[] {
    return this.#view.notes
  }

  tool(name: string): CatalogTool | undefined {
    return this.#view.byName.get(name)
  }
  namespaced(tool: CatalogTool): NamespacedName | undefined {
    return this.#view.namespaced(tool)
  }
  resolveTool(text: string): ToolResolution {
    return resolveTool(text, { view: this.#view, statuses: this.statuses })
  }

  call(tool: CatalogTool, args: JsonObject, options: CallOptions = {}): Promise<CallOutcome> {
    return this.#calls.call(tool, args, options)
  }
  callRaw(tool: CatalogTool, params: JsonObject, options: RequestOptions = {}): Promise<RawAnswer> {
    return this.#calls.callRaw(tool, params, options)
  }

  resources(options: ListingOptions = {}): Promise<Aggregate<CatalogResource>> {
    return this.#offers.resources(options)
  }
  resourceTemplates(options: ListingOptions = {}): Promise<Aggregate<CatalogResourceTemplate>> {
    return this.#offers.templates(options)
  }
  prompts(options: ListingOptions = {}): Promise<Aggregate<CatalogPrompt>> {
    return this.#offers.prompts(options)
  }
  readResource(uri: string, options: CallOptions & { readonly server?: string } = {}): Promise<JsonObject> {
    return this.#offers.read(uri, options)
  }
  getPrompt(name: string, args: JsonObject, options: CallOptions = {}): Promise<JsonObject> {
    return this.#offers.getPrompt(name, args, options)
  }
  complete(params: JsonObject, options: CallOptions = {}): Promise<JsonObject> {
    return this.#offers.complete(params, options)
  }

  server(name: string): ServerPort | undefined {
    const bound = this.#servers.get(name)
    return bound === undefined ? undefined : sessionPort(bound.session)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lease[Symbol.asyncDispose]()
  }
}
