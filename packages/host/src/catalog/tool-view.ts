// The tools of several servers under their final names, frozen: what a binding shows.
import { digestHex, isObject, type JsonObject } from '../base/index.ts'
import type { CatalogNote } from '../events/index.ts'
import type { CatalogConnector, CatalogTool } from './entries.ts'
import { type ListedTool, noteTaker } from './listing.ts'
import {
  assignNames,
  explainName,
  FLAT_STYLE,
  flatName,
  NAMESPACED_STYLE,
  type NameChange,
  type NameIdentity,
  type NameStyle,
  type NamespacedName,
} from './names.ts'
import { callableName, namespaceDescription, namespaceOf } from './shaping.ts'
import type { MemberFacts, ToolSnapshot } from './snapshot.ts'

/** How the tools of a view are named. */
export interface NamePolicy {
  /** Longest flat name, in characters. */
  readonly nameCharsMax: number
  /** Longest namespaced name in all, in characters. Default 64. */
  readonly namespacedCharsMax?: number
  /** `none`: no namespace begins with `mcp__`. Default `mcp`. */
  readonly toolNamePrefix?: 'mcp' | 'none'
  /** Servers whose namespaces go without the prefix, by their keys in the configuration. Default none. */
  readonly unprefixedServers?: readonly string[]
}

/** Tools by name, in order: servers by their key, hosted ones last, tools of a server by their name. */
export interface ToolView {
  readonly tools: readonly CatalogTool[]
  readonly byName: ReadonlyMap<string, CatalogTool>
  /** Why each tool that is missing is missing, and each that has another name has it; made when it is first asked for. */
  readonly notes: readonly CatalogNote[]
  /** Digest of names and content; made when it is first asked for. */
  readonly revision: string
  /** The tool of a server by its raw name. */
  raw(server: string, rawName: string): CatalogTool | undefined
  /** The names for models that know namespaces; made when they are first asked for. */
  namespaced(tool: CatalogTool): NamespacedName | undefined
  /** What the namespace of a tool is for, for models that know namespaces. */
  namespaceDescription(tool: CatalogTool): string | undefined
}

/** Names the tools of these snapshots. */
export function toolView(snapshots: readonly ToolSnapshot[], policy: NamePolicy): ToolView {
  const ordered = [...snapshots].sort(inOrder)
  const style = { ...FLAT_STYLE, charsMax: policy.nameCharsMax }
  const names = assignNames(ordered.flatMap(identitiesOf), style)
  let count = 0
  const tools = ordered.flatMap(({ facts, tools: all }) => {
    const own = all.map((listed) => {
      const name = names[count++]
      return catalogTool(facts, listed, name === undefined ? listed.rawName : flatName(name))
    })
    // Names differ.
    return own.sort((a, b) => (a.name < b.name ? -1 : 1))
  })
  return new View(ordered, tools, policy)
}

/** Tools and prompts are named in the same way. */
export function toolIdentity(server: string, rawName: string, connector?: CatalogConnector): NameIdentity {
  if (connector === undefined) return { server, namespace: server, callableName: rawName, rawName }
  return {
    server,
    namespace: namespaceOf(server, connector),
    connectorId: connector.id,
    callableName: callableName(rawName, connector),
    rawName,
  }
}

class View implements ToolView {
  readonly tools: readonly CatalogTool[]
  readonly #snapshots: readonly ToolSnapshot[]
  readonly #policy: NamePolicy
  #byName: Map<string, CatalogTool> | undefined
  #byServer: Map<string, Map<string, CatalogTool>> | undefined
  #namespaced: Map<CatalogTool, NamespacedName> | undefined
  #notes: readonly CatalogNote[] | undefined
  #revision: string | undefined

  constructor(snapshots: readonly ToolSnapshot[], tools: readonly CatalogTool[], policy: NamePolicy) {
    this.#snapshots = snapshots
    this.tools = tools
    this.#policy = policy
  }

  get byName(): ReadonlyMap<string, CatalogTool> {
    this.#byName ??= new Map(this.tools.map((tool) => [tool.name, tool]))
    return this.#byName
  }

  get notes(): readonly CatalogNote[] {
    this.#notes ??= this.#snapshots.flatMap((snapshot) => [...snapshot.notes, ...this.#shownNotes(snapshot)])
    return this.#notes
  }

  get revision(): string {
    // What shows no tool changes none; what a definition says about its tools is part of them.
    const shown = this.#snapshots.filter(({ tools }) => tools.length > 0)
    this.#revision ??= digestHex(
      JSON.stringify([
        shown.map(({ revision, facts: { instructions: _, omitToolsFrom: __, ...facts } }) => [revision, facts]),
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
      const identities = this.tools.map(({ server, rawName, connector }) => toolIdentity(server, rawName, connector))
      const names = assignNames(identities, namespacedStyle(this.#policy))
      this.#namespaced = new Map()
      for (const [index, one] of this.tools.entries()) {
        const name = names[index]
        if (name !== undefined) this.#namespaced.set(one, name)
      }
    }
    return this.#namespaced.get(tool)
  }

  namespaceDescription(tool: CatalogTool): string | undefined {
    const namespace = this.namespaced(tool)?.namespace
    const facts = this.#snapshots.find(({ server }) => server === tool.server)?.facts
    if (namespace === undefined || facts === undefined) return undefined
    return namespaceDescription(namespace, { connector: tool.connector, instructions: facts.instructions ?? '' })
  }

  /** Tools that are there, but hidden, omitted or under another name than their server gives them. */
  #shownNotes({ server, facts, tools }: ToolSnapshot): readonly CatalogNote[] {
    const { notes, note } = noteTaker(server)
    if (facts.omitToolsFrom.length > 0)
      note('*', 'omitted', `its tools are not shown to: ${facts.omitToolsFrom.join(', ')} (omitToolsFrom)`)
    for (const { rawName, visibleToModel } of tools) {
      if (!visibleToModel) note(rawName, 'hidden', 'its server does not want models to see it (_meta.ui.visibility)')
      const tool = this.raw(server, rawName)
      const change = tool === undefined ? undefined : nameChange(tool, this.#policy)
      if (tool !== undefined && change !== undefined) note(rawName, 'renamed', `${tool.name}: ${WHY_RENAMED[change]}`)
    }
    return notes
  }
}

/** Why names change, for people. */
export const WHY_RENAMED: Readonly<Record<NameChange, string>> = {
  cleaned: 'characters that no model accepts in a name were replaced',
  'namespace-collision': 'another server has a name that looks the same; both got a digest',
  collision: 'another tool wants the same name; all of them got a digest',
  cut: 'the name was too long; it was cut and got a digest',
}

/** Why the flat name of a tool is not made of its server's own words. */
export function nameChange(tool: CatalogTool, { nameCharsMax }: NamePolicy): NameChange | undefined {
  const style: NameStyle = { ...FLAT_STYLE, charsMax: nameCharsMax }
  const identity = toolIdentity(tool.server, tool.rawName, tool.connector)
  const [alone] = assignNames([identity], style)
  if (alone === undefined) return undefined
  // A flat name does not say where its namespace ends: what it would be alone tells the rest.
  if (flatName(alone) === tool.name) return explainName(identity, alone, style)
  const digests = tool.name.endsWith(`__${alone.tool}`) ? 'namespace-collision' : 'collision'
  return explainName(identity, alone, style) === 'cut' ? 'cut' : digests
}

function namespacedStyle({ namespacedCharsMax, toolNamePrefix, unprefixedServers }: NamePolicy): NameStyle {
  return {
    charsMax: namespacedCharsMax ?? NAMESPACED_STYLE.charsMax,
    prefix: toolNamePrefix === 'none' ? '' : NAMESPACED_STYLE.prefix,
    unprefixed: new Set(unprefixedServers),
  }
}

function identitiesOf({ server, tools }: ToolSnapshot): NameIdentity[] {
  return tools.map(({ rawName, connector }) => toolIdentity(server, rawName, connector))
}

function catalogTool(facts: MemberFacts, listed: ListedTool, name: string): CatalogTool {
  const { rawName, title, description, definition, connector, plugins } = listed
  const { outputSchema, annotations, _meta: meta } = definition
  // Member by member: this runs for every tool there is, and a spread costs ten times as much.
  const tool: Mutable<CatalogTool> = {
    name,
    server: facts.server,
    rawName,
    inputSchema: definition['inputSchema'] as JsonObject,
    state: facts.state,
    visibleToModel: listed.visibleToModel,
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
  if (connector !== undefined) tool.connector = connector
  if (plugins !== undefined) tool.plugins = plugins
  return tool
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] }

function inOrder(one: ToolSnapshot, other: ToolSnapshot): number {
  if (one.facts.isHosted !== other.facts.isHosted) return one.facts.isHosted ? 1 : -1
  return one.server < other.server ? -1 : one.server > other.server ? 1 : 0
}
