// One listing of one server's tools, made safe to look at and frozen: what the rest of the host keeps by reference.
import {
  BoundedList,
  cleanJson,
  cleanLine,
  cutText,
  digestHex,
  isObject,
  type JsonObject,
  withoutReservedMeta,
} from '../base/index.ts'
import type { CatalogNote } from '../events/index.ts'
import type { Listing } from '../protocol/index.ts'
import type { ToolFilter } from './filter.ts'
import { isVisibleToModel } from './visibility.ts'

/** One tool that may be called. */
export interface ListedTool {
  readonly rawName: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly visibleToModel: boolean
  /** As the server sent it, by reference, unless something hidden had to be taken out. */
  readonly definition: JsonObject
}

/** What one server offers, as of one listing. */
export interface ToolSnapshot {
  readonly server: string
  readonly tools: readonly ListedTool[]
  /** At most 500. */
  readonly notes: readonly CatalogNote[]
  /** The listing as it came, for telling whether the next one differs. */
  readonly raw: readonly JsonObject[]
  /** Digest of what is offered: equal content, equal revision, also in the next process. Made when it is first asked for. */
  readonly revision: string
}

const NOTES_MAX = 500
const DESCRIPTION_CHARS_MAX = 65_536
const TITLE_CHARS_MAX = 1_024
const ITEM_CHARS_MAX = 200
/** Text of one tool, schemas included; a tool with more is left out. */
const TOOL_CHARS_MAX = 1024 * 1024

/** Sorts a listing into what is offered and what is not, with the reason for each that is not. */
export function toolSnapshot(server: string, listing: Listing, filter: ToolFilter): ToolSnapshot {
  const notes = new BoundedList<CatalogNote>(NOTES_MAX)
  const note = (item: string, kind: CatalogNote['kind'], reason: string): void =>
    notes.push({ server, item: cleanLine(item, ITEM_CHARS_MAX), kind, reason })
  for (const { name, reason } of listing.rejected) note(name, 'rejected', cleanLine(reason))
  const tools = new Map<string, ListedTool>()
  for (const raw of listing.items) {
    const rawName = String(raw['name'])
    if (tools.has(rawName)) note(rawName, 'rejected', 'a second tool of the same name; the first one is kept')
    else if (!filter(rawName))
      note(rawName, 'filtered', 'the configuration does not allow it (tools.allow, tools.deny)')
    else {
      const tool = listedTool(rawName, raw, note)
      if (tool !== undefined) tools.set(rawName, tool)
    }
  }
  return new Snapshot({ server, tools: [...tools.values()], notes: notes.items, raw: listing.items })
}

class Snapshot implements ToolSnapshot {
  readonly server: string
  readonly tools: readonly ListedTool[]
  readonly notes: readonly CatalogNote[]
  readonly raw: readonly JsonObject[]
  #revision: string | undefined

  constructor(init: Omit<ToolSnapshot, 'revision'>) {
    this.server = init.server
    this.tools = init.tools
    this.notes = init.notes
    this.raw = init.raw
  }

  get revision(): string {
    this.#revision ??= digestHex(JSON.stringify(this.tools.map(({ definition }) => definition)), 16)
    return this.#revision
  }
}

type TakeNote = (item: string, kind: CatalogNote['kind'], reason: string) => void

function listedTool(rawName: string, raw: JsonObject, note: TakeNote): ListedTool | undefined {
  let clean: ReturnType<typeof cleanJson<JsonObject>>
  try {
    clean = cleanJson(raw, { charsMax: TOOL_CHARS_MAX })
  } catch (error) {
    note(rawName, 'rejected', `its definition has ${(error as Error).message}`)
    return undefined
  }
  for (const { path, removed } of clean.fields)
    note(rawName, 'cleaned', `hidden characters in ${path}: ${removed.join(' ')}`)
  const { title, annotations } = raw
  const definition = withDescription(rawName, withoutReservedMeta(clean.value), note)
  const shownTitle = typeof title === 'string' ? title : isObject(annotations) ? annotations['title'] : undefined
  return {
    rawName,
    title: typeof shownTitle === 'string' ? cleanLine(shownTitle, TITLE_CHARS_MAX) : undefined,
    description: definition['description'] as string | undefined,
    visibleToModel: isVisibleToModel(raw),
    definition,
  }
}

function withDescription(rawName: string, definition: JsonObject, note: TakeNote): JsonObject {
  const { description } = definition
  if (typeof description !== 'string' || description.length <= DESCRIPTION_CHARS_MAX) return definition
  note(rawName, 'cut', `its description has ${description.length} characters; ${DESCRIPTION_CHARS_MAX} are kept`)
  return { ...definition, description: cutText(description, DESCRIPTION_CHARS_MAX) }
}
