// What one member of a set makes of a listing: filtered by its configuration, with what its definition says about every tool.
import type { ApprovalMode, ServerDefinition, ToolSurface } from '../config/index.ts'
import type { CatalogNote } from '../events/index.ts'
import { connectorOf } from './connectors.ts'
import type { ToolFilter } from './filter.ts'
import { digestOf, type ListedTool, noteTaker, type ToolListing } from './listing.ts'
import { type Attribution, shownTitle, withProvenance } from './shaping.ts'

/** What stands on every tool of one member; from its definition, never from its connection. */
export interface MemberFacts {
  readonly server: string
  readonly state: 'live' | 'cached'
  readonly environment: string
  /** `stdio`, or the origin of the URL; undefined when the URL has none. */
  readonly origin: string | undefined
  readonly parallelToolCalls: boolean
  /** Of tools without a mode of their own. */
  readonly approvalMode: ApprovalMode
  readonly overrides: ServerDefinition['tools']['overrides']
  /** Hosted servers come last. */
  readonly isHosted: boolean
  /** What the server tells about all its tools together. */
  readonly instructions: string | undefined
  /** Surfaces that do not show the tools. */
  readonly omitToolsFrom: readonly ToolSurface[]
}

/** The tools that one server offers to one member, as of one listing. */
export interface ToolSnapshot {
  readonly server: string
  readonly facts: MemberFacts
  readonly tools: readonly ListedTool[]
  /** At most 500. */
  readonly notes: readonly CatalogNote[]
  /** Digest of what is offered: equal content, equal revision, also in the next process. Made when it is first asked for. */
  readonly revision: string
}

/** The facts of a definition. */
export function memberFacts(
  definition: ServerDefinition,
  { state, isHosted, instructions }: Pick<MemberFacts, 'state' | 'isHosted' | 'instructions'>,
): MemberFacts {
  const { name, transport, environment, parallelToolCalls, approvalMode, tools, omitToolsFrom } = definition
  return {
    server: name,
    state,
    environment,
    origin: transport.kind === 'stdio' ? 'stdio' : originOf(transport.url),
    parallelToolCalls,
    approvalMode,
    overrides: tools.overrides,
    isHosted,
    instructions,
    omitToolsFrom,
  }
}

function originOf(url: string): string | undefined {
  const origin = URL.parse(url)?.origin
  return origin === 'null' ? undefined : origin
}

/** What decides how a listing is shown to one member. */
export interface SnapshotPolicy {
  readonly facts: MemberFacts
  readonly allows: ToolFilter
  readonly attribution: Attribution
}

/** What one member shows of a listing, with a note for each tool that it does not. A listing that is shown whole and as it is is not copied. */
export function toolSnapshot(listing: ToolListing, policy: SnapshotPolicy): ToolSnapshot {
  const { facts, allows } = policy
  const shape = shaper(listing.server, policy)
  if (shape === undefined && listing.tools.every(({ rawName }) => allows(rawName)))
    return new Snapshot(listing, facts, { tools: listing.tools, notes: listing.notes })
  const { notes, note } = noteTaker(listing.server)
  for (const { item, kind, reason } of listing.notes) note(item, kind, reason)
  const tools: ListedTool[] = []
  for (const tool of listing.tools) {
    const { rawName } = tool
    if (!allows(rawName)) {
      note(rawName, 'filtered', 'the configuration does not allow it (tools.allow, tools.deny)')
      continue
    }
    const shaped = shape === undefined ? tool : shape(tool)
    if (typeof shaped === 'string') note(rawName, 'filtered', shaped)
    else tools.push(shaped)
  }
  return new Snapshot(listing, facts, { tools, notes })
}

/** What becomes of a tool, or why it is not shown; undefined when every tool stays as it is. */
type Shape = (tool: ListedTool) => ListedTool | string

function shaper(server: string, { facts, attribution }: SnapshotPolicy): Shape | undefined {
  const ofServer = attribution.pluginsOfServer(server)
  if (facts.isHosted) return (tool) => hostedTool(tool, attribution)
  return ofServer.length === 0 ? undefined : (tool) => attributed(tool, ofServer)
}

function hostedTool(tool: ListedTool, attribution: Attribution): ListedTool | string {
  const connector = connectorOf(tool.definition['_meta'])
  if (connector === undefined) return 'it names no connector, and its server is hosted'
  if (!attribution.allowsConnector(connector.id)) return 'no plugin in use has its connector'
  const title = tool.title === undefined ? undefined : shownTitle(tool.title, connector)
  return attributed({ ...tool, title, connector }, attribution.pluginsOfConnector(connector.id))
}

function attributed(tool: ListedTool, plugins: readonly string[]): ListedTool {
  if (plugins.length === 0) return tool
  return { ...tool, description: withProvenance(tool.description, plugins), plugins }
}

class Snapshot implements ToolSnapshot {
  readonly facts: MemberFacts
  readonly tools: readonly ListedTool[]
  readonly notes: readonly CatalogNote[]
  readonly #listing: ToolListing
  #revision: string | undefined

  constructor(listing: ToolListing, facts: MemberFacts, { tools, notes }: Pick<ToolSnapshot, 'tools' | 'notes'>) {
    this.#listing = listing
    this.facts = facts
    this.tools = tools
    this.notes = notes
  }

  get server(): string {
    return this.facts.server
  }

  get revision(): string {
    this.#revision ??= this.tools === this.#listing.tools ? this.#listing.digest : digestOf(this.tools)
    return this.#revision
  }
}
