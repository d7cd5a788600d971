import type { JsonObject, Lease, Shared } from '../base/index.ts'
import type {
  Aggregate,
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  NamespacedName,
} from '../catalog/index.ts'
import { type ServerPort, sessionPort } from '../connection/index.ts'
import type { CatalogNote, ServerStatus } from '../events/index.ts'
import type { RawAnswer, RequestOptions } from '../protocol/index.ts'
import type { Binding, CallOptions, CallOutcome, ListingOptions, ToolResolution } from './binding.ts'
import type { CapturedView } from './captured-view.ts'
import type { Generation } from './generation.ts'
import type { PreparedCall } from './prepared-call.ts'
import { resolveTool } from './resolve.ts'

/** A captured view with a hold of its own on the connections behind it. */
export class LiveBinding implements Binding {
  readonly #captured: CapturedView
  readonly #lease: Lease<Generation>
  readonly #shared: Shared<Generation>

  /** @param shared For calls that outlive the binding. */
  constructor(captured: CapturedView, lease: Lease<Generation>, shared: Shared<Generation>) {
    this.#captured = captured
    this.#lease = lease
    this.#shared = shared
  }

  get generation(): number {
    return this.#lease.value.number
  }
  get revision(): string {
    return this.#captured.view.revision
  }
  get tools(): readonly CatalogTool[] {
    return this.#captured.view.tools
  }
  get statuses(): readonly ServerStatus[] {
    return this.#captured.statuses
  }
  get notes(): readonly CatalogNote[] {
    return this.#captured.view.notes
  }

  tool(name: string): CatalogTool | undefined {
    return this.#captured.view.byName.get(name)
  }
  namespaced(tool: CatalogTool): NamespacedName | undefined {
    return this.#captured.view.namespaced(tool)
  }
  namespaceDescription(tool: CatalogTool): string | undefined {
    return this.#captured.view.namespaceDescription(tool)
  }
  resolveTool(text: string): ToolResolution {
    return resolveTool(text, this.#captured)
  }

  prepare(
    tool: CatalogTool,
    { audience = 'model' }: { readonly audience?: 'model' | 'host' } = {},
  ): PreparedCall | undefined {
    if (this.#shared.isClosed) return undefined
    const hold = this.#shared.acquire()
    const prepared = this.#captured.calls.prepare(tool, { audience, hold })
    if (prepared === undefined) void hold[Symbol.asyncDispose]()
    return prepared
  }
  call(tool: CatalogTool, args: JsonObject, options: CallOptions = {}): Promise<CallOutcome> {
    return this.#captured.calls.call(tool, args, options)
  }
  callRaw(tool: CatalogTool, params: JsonObject, options: RequestOptions = {}): Promise<RawAnswer> {
    return this.#captured.calls.callRaw(tool, params, options)
  }

  resources(options: ListingOptions = {}): Promise<Aggregate<CatalogResource>> {
    return this.#captured.offers.resources(options)
  }
  resourceTemplates(options: ListingOptions = {}): Promise<Aggregate<CatalogResourceTemplate>> {
    return this.#captured.offers.templates(options)
  }
  prompts(options: ListingOptions = {}): Promise<Aggregate<CatalogPrompt>> {
    return this.#captured.offers.prompts(options)
  }
  readResource(uri: string, options: CallOptions & { readonly server?: string } = {}): Promise<JsonObject> {
    return this.#captured.offers.read(uri, options)
  }
  getPrompt(name: string, args: JsonObject, options: CallOptions = {}): Promise<JsonObject> {
    return this.#captured.offers.getPrompt(name, args, options)
  }
  complete(params: JsonObject, options: CallOptions = {}): Promise<JsonObject> {
    return this.#captured.offers.complete(params, options)
  }

  server(name: string): ServerPort | undefined {
    const bound = this.#captured.servers.get(name)
    return bound === undefined ? undefined : sessionPort(bound.session)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lease[Symbol.asyncDispose]()
  }
}
