// One binding of the host and what was made of it. It stays open until its last call is over, also when a newer one is served already.
import type { Binding, ServerDefinition, ServerPort } from '@convoke/host'
import { type PreparedList, prepareTools } from './lists.ts'

export class View implements AsyncDisposable {
  readonly binding: Binding
  /** Servers whose tools are not for clients. */
  readonly #hidden: ReadonlySet<string>
  /** How far each server's log level was lowered on this connection: the index of the level. */
  readonly logLevels: Map<string, number> = new Map()
  readonly #ports = new Map<string, ServerPort | undefined>()
  #tools: PreparedList | undefined
  #callCount = 0
  #isRetired = false
  #closed: Promise<void> | undefined

  constructor(binding: Binding, definitions: readonly ServerDefinition[]) {
    this.binding = binding
    this.#hidden = new Set(
      definitions.filter(({ omitToolsFrom }) => omitToolsFrom.includes('gateway')).map(({ name }) => name),
    )
  }

  /** Are the tools of this server kept from clients? */
  hides(server: string): boolean {
    return this.#hidden.has(server)
  }

  /** The tools that clients see; made when they are first asked for. */
  get tools(): PreparedList {
    const { tools } = this.binding
    this.#tools ??= prepareTools(this.#hidden.size === 0 ? tools : tools.filter(({ server }) => !this.hides(server)))
    return this.#tools
  }

  /** Do both show clients the same tools? */
  showsAs(other: View): boolean {
    const isSame = this.#hidden.size === other.#hidden.size && [...this.#hidden].every((name) => other.hides(name))
    return isSame && other.binding.revision === this.binding.revision
  }

  /** The connection to a server of this view. */
  port(server: string): ServerPort | undefined {
    let port = this.#ports.get(server)
    if (port === undefined) this.#ports.set(server, (port = this.binding.server(server)))
    return port
  }

  /** The same tools as another view: its list is good here, too. */
  inherit(other: View): void {
    if (this.showsAs(other)) this.#tools = other.#tools
  }

  enter(): void {
    this.#callCount++
  }

  leave(): void {
    this.#callCount--
    if (this.#isRetired && this.#callCount === 0) void this[Symbol.asyncDispose]()
  }

  /** A newer view is served: this one closes with its last call. */
  retire(): void {
    this.#isRetired = true
    if (this.#callCount === 0) void this[Symbol.asyncDispose]()
  }

  /** Lets go of the connections now. Idempotent, never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    try {
      await this.binding[Symbol.asyncDispose]()
    } catch {
      // What could not be ended is told by the host when it closes.
    }
  }
}
