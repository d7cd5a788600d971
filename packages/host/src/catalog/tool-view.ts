// The tools of several servers under their final names, frozen: what a binding shows.
import { digestHex, isObject, type JsonObject } from '../base/index.ts'
import type { CatalogNote } from '../events/index.ts'
import type { CatalogTool } from './entries.ts'
import type { ListedTool } from './listing.ts'
import { assignNames, FLAT_STYLE, flatName, NAMESPACED_STYLE, type NameIdentity, type NamespacedName } from './names.ts'
import type { MemberFacts, ToolSnapshot } from './snapshot.ts'

/** Tools by name, in order: servers by their key, tools of a server by their name. */
export interface ToolView {
  readonly tools: readonly CatalogTool[]
  readonly byName: ReadonlyMap<string, CatalogTool>
  readonly notes: readonly CatalogNote[]
  /** Digest of names and content; made when it is first asked for. */
  readonly revision: string
  /** The tool of a server by its raw name. */
  raw(server: string, rawName: string): CatalogTool | undefined
  /** The names for models that know namespaces; made when they are first asked for. */
  namespaced(tool: CatalogTool): NamespacedName | undefined
}

/** Names the tools of these snapshots. */
export function toolView(snapshots: readonly ToolSnapshot[], nameCharsMax: number): ToolView {
  const ordered = [...snapshots].sort((a, b) => compare(a.server, b.server))
  const identities = ordered.flatMap(({ server, tools }) => tools.map(({ rawName }) => toolIdentity(server, rawName)))
  const names = assignNames(identities, { ...FLAT_STYLE, charsMax: nameCharsMax })
  let count = 0
  const tools = ordered.flatMap(({ facts, tools: all }) => {
    const own = all.map((listed) => {
      const name = names[count++]
      return catalogTool(facts, listed, name === undefined ? listed.rawName : flatName(name))
    })
    // Names differ.
    return own.sort((a, b) => (a.name < b.name ? -1 : 1))
  })
  return new View(ordered, tools)
}

/** Tools and prompts are named in the same way. */
export function toolIdentity(server: string, rawName: string): NameIdentity {
  return { server, namespace: server, callableName: rawName, rawName }
}

class View implements ToolView {
  readonly tools: readonly CatalogTool[]
  readonly #snapshots: readonly ToolSnapshot[]
  #byName: Map<string, CatalogTool> | undefined
  #byServer: Map<string, Map<string, CatalogTool>> | undefined
  #namespaced: Map<CatalogTool, NamespacedName> | undefined
  #revision: string | undefined

  constructor(snapshots: readonly ToolSnapshot[], tools: readonly CatalogTool[]) {
    this.#snapshots = snapshots
    this.tools = tools
  }

  get byName(): ReadonlyMap<string, CatalogTool> {
    this.#byName ??= new Map(this.tools.map((tool) => [tool.name, tool]))
    return this.#byName
  }

  get notes(): readonly CatalogNote[] {
    return this.#snapshots.flatMap(({ notes }) => notes)
  }

  get revision(): string {
    this.#revision ??= digestHex(
      JSON.stringify([
        this.#snapshots.map(({ server, revision }) => [server, revision]),
        this.tools.map(({ name }) => name),
      ]),
      16,
    )
    return this.#revision
  }

  raw(server: string, rawName: string): CatalogTool | undefined {
    if (this.#byServer === undefined) {
      this.#byServer = new Map()
      for (const tool of this.tools) {
        const own = this.#byServer.get(tool.server)
        if (own === undefined) this.#byServer.set(tool.server, new Map([[tool.rawName, tool]]))
        else own.set(tool.rawName, tool)
      }
    }
    return this.#byServer.get(server)?.get(rawName)
  }

  namespaced(tool: CatalogTool): NamespacedName | undefined {
    if (this.#namespaced === undefined) {
      const identities = this.tools.map(({ server, rawName }) => toolIdentity(server, rawName))
      const names = assignNames(identities, NAMESPACED_STYLE)
      this.#namespaced = new Map()
      for (const [index, one] of this.tools.entries()) {
        const name = names[index]
        if (name !== undefined) this.#namespaced.set(one, name)
      }
    }
    return this.#namespaced.get(tool)
  }
}

function catalogTool(
  facts: MemberFacts,
  { rawName, title, description, visibleToModel, definition }: ListedTool,
  name: string,
): CatalogTool {
  const { outputSchema, annotations, _meta: meta } = definition
  // Member by member: this runs for every tool there is, and a spread costs ten times as much.
  const tool: Mutable<CatalogTool> = {
    name,
    server: facts.server,
    rawName,
    inputSchema: definition['inputSchema'] as JsonObject,
    state: facts.state,
    visibleToModel,
    approvalMode: facts.overrides?.[rawName]?.approvalMode ?? facts.approvalMode,
    parallelToolCalls: facts.parallelToolCalls,
    environment: facts.environment,
    definition,
  }
  if (facts.origin !== undefined) tool.origin = facts.origin
  if (title !== undefined) tool.title = title
  if (description !== undefined) tool.description = description
  if (isObject(outputSchema)) tool.outputSchema = outputSchema
  if (isObject(annotations)) tool.annotations = annotations
  if (isObject(meta)) tool.meta = meta
  return tool
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] }

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
