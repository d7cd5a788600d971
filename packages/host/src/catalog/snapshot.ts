// What one member of a set makes of a listing: filtered by its configuration, with what its definition says about every tool.
import type { ApprovalMode, ServerDefinition } from '../config/index.ts'
import type { CatalogNote } from '../events/index.ts'
import type { ToolFilter } from './filter.ts'
import { digestOf, type ListedTool, noteTaker, type ToolListing } from './listing.ts'

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
export function memberFacts(definition: ServerDefinition, state: MemberFacts['state']): MemberFacts {
  const { name, transport, environment, parallelToolCalls, approvalMode, tools } = definition
  return {
    server: name,
    state,
    environment,
    origin: transport.kind === 'stdio' ? 'stdio' : originOf(transport.url),
    parallelToolCalls,
    approvalMode,
    overrides: tools.overrides,
  }
}

function originOf(url: string): string | undefined {
  const origin = URL.parse(url)?.origin
  return origin === 'null' ? undefined : origin
}

/** What passes the filter, with a note for each tool that does not. A listing that passes whole is not copied. */
export function toolSnapshot(listing: ToolListing, facts: MemberFacts, allows: ToolFilter): ToolSnapshot {
  const isWhole = listing.tools.every(({ rawName }) => allows(rawName))
  if (isWhole) return new Snapshot(listing, facts, { tools: listing.tools, notes: listing.notes })
  const { notes, note } = noteTaker(listing.server)
  for (const { item, kind, reason } of listing.notes) note(item, kind, reason)
  const tools = listing.tools.filter(({ rawName }) => {
    if (allows(rawName)) return true
    note(rawName, 'filtered', 'the configuration does not allow it (tools.allow, tools.deny)')
    return false
  })
  return new Snapshot(listing, facts, { tools, notes })
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
