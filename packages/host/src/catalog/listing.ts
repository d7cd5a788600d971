// One listing of one server's tools, made safe to look at: what is kept of it, whatever the configuration of the day lets through.
import {
  BoundedList,
  cleanJson,
  cleanLine,
  cutText,
  digestHex,
  isObject,
  type JsonObject,
  withoutReservedKeys,
} from '../base/index.ts'
import type { CatalogNote } from '../events/index.ts'
import type { Listing } from '../protocol/index.ts'
import { hostedKeysOf, withoutConnectorKeys } from './connectors.ts'
import type { CatalogConnector } from './entries.ts'
import { isVisibleToModel } from './visibility.ts'

/** One tool as it was listed. */
export interface ListedTool {
  readonly rawName: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly visibleToModel: boolean
  /** As the server sent it, by reference, unless something hidden had to be taken out. */
  readonly definition: JsonObject
  /** What it acts on, for tools of hosted servers. */
  readonly connector?: CatalogConnector
  /** Names, for people, of the plugins that it is part of. */
  readonly plugins?: readonly string[]
}

/** What one server listed at one moment. It never changes. */
export interface ToolListing {
  readonly server: string
  readonly tools: readonly ListedTool[]
  /** What was refused, cleaned or cut, at most 500. */
  readonly notes: readonly CatalogNote[]
  /** The listing as it came, for telling whether the next one differs; the cleaned definitions for one that comes from a cache. */
  readonly raw: readonly JsonObject[]
  /** Digest of what is listed: equal content, equal digest, also in the next process. Made when it is first asked for. */
  readonly digest: string
  /** The same listing with other definitions of its tools. */
  with(tools: readonly ListedTool[]): ToolListing
}

/** Notes of one listing or snapshot. */
export const NOTES_MAX = 500
const DESCRIPTION_CHARS_MAX = 65_536
const TITLE_CHARS_MAX = 1_024
const ITEM_CHARS_MAX = 200
/** Text of one tool, schemas included; a tool with more is left out. */
const TOOL_CHARS_MAX = 1024 * 1024

/** Takes down one note. */
export type TakeNote = (item: string, kind: CatalogNote['kind'], reason: string) => void

/** A list of notes about one server, and what writes into it. */
export function noteTaker(server: string): { readonly notes: readonly CatalogNote[]; readonly note: TakeNote } {
  const list = new BoundedList<CatalogNote>(NOTES_MAX)
  return {
    notes: list.items,
    note: (item, kind, reason) => list.push({ server, item: cleanLine(item, ITEM_CHARS_MAX), kind, reason }),
  }
}

/** `hosted`: a server that may say which connector a tool acts on. All others are kept from looking like one. */
export type ServerKind = 'ordinary' | 'hosted'

/** Looks at every tool once: refuses what cannot be shown, takes out what is hidden in texts, keeps the first of each name. */
export function toolListing(server: string, listing: Listing, kind: ServerKind = 'ordinary'): ToolListing {
  const { notes, note } = noteTaker(server)
  for (const { name, reason } of listing.rejected) note(name, 'rejected', cleanLine(reason))
  const tools = new Map<string, ListedTool>()
  for (const raw of listing.items) {
    const rawName = String(raw['name'])
    if (tools.has(rawName)) note(rawName, 'rejected', 'a second tool of the same name; the first one is kept')
    else {
      const tool = cleanedTool(rawName, raw, { note, kind })
      if (tool !== undefined) tools.set(rawName, tool)
    }
  }
  return new Listed({ server, tools: [...tools.values()], notes, raw: listing.items })
}

/** A listing whose definitions have been looked at before: nothing is cleaned a second time. */
export function cleanListing(
  server: string,
  definitions: readonly JsonObject[],
  notes: readonly CatalogNote[],
): ToolListing {
  const tools = definitions.map((definition) => listedTool(String(definition['name']), definition, definition))
  return new Listed({ server, tools, notes, raw: definitions })
}

class Listed implements ToolListing {
  readonly server: string
  readonly tools: readonly ListedTool[]
  readonly notes: readonly CatalogNote[]
  readonly raw: readonly JsonObject[]
  #digest: string | undefined

  constructor({ server, tools, notes, raw }: Omit<ToolListing, 'digest' | 'with'>) {
    this.server = server
    this.tools = tools
    this.notes = notes
    this.raw = raw
  }

  get digest(): string {
    this.#digest ??= digestOf(this.tools)
    return this.#digest
  }

  with(tools: readonly ListedTool[]): ToolListing {
    return new Listed({ server: this.server, tools, notes: this.notes, raw: tools.map(({ definition }) => definition) })
  }
}

/** Equal definitions, equal digest. */
export function digestOf(tools: readonly ListedTool[]): string {
  return digestHex(JSON.stringify(tools.map(({ definition }) => definition)), 16)
}

function cleanedTool(
  rawName: string,
  raw: JsonObject,
  { note, kind }: { readonly note: TakeNote; readonly kind: ServerKind },
): ListedTool | undefined {
  let clean: ReturnType<typeof cleanJson<JsonObject>>
  try {
    clean = cleanJson(raw, { charsMax: TOOL_CHARS_MAX })
  } catch (error) {
    note(rawName, 'rejected', `its definition has ${(error as Error).message}`)
    return undefined
  }
  for (const { path, removed } of clean.fields)
    note(rawName, 'cleaned', `hidden characters in ${path}: ${removed.join(' ')}`)
  return listedTool(rawName, raw, withDescription(rawName, ownMeta(clean.value, kind), note))
}

/** The definition with no more in its `_meta` than this server may say; the same object when that is all. */
function ownMeta(definition: JsonObject, kind: ServerKind): JsonObject {
  const { _meta: meta } = definition
  if (!isObject(meta)) return definition
  const open = withoutReservedKeys(meta)
  const own = kind === 'hosted' ? hosted(meta, open) : withoutConnectorKeys(open)
  return own === meta ? definition : { ...definition, _meta: own }
}

function hosted(meta: JsonObject, open: JsonObject): JsonObject {
  return open === meta ? meta : { ...open, ...hostedKeysOf(meta) }
}

/** @param told Where title and visibility are read. */
function listedTool(rawName: string, told: JsonObject, definition: JsonObject): ListedTool {
  const { title, annotations } = told
  const { description } = definition
  const shownTitle = typeof title === 'string' ? title : isObject(annotations) ? annotations['title'] : undefined
  return {
    rawName,
    title: typeof shownTitle === 'string' ? cleanLine(shownTitle, TITLE_CHARS_MAX) : undefined,
    description: typeof description === 'string' ? description : undefined,
    visibleToModel: isVisibleToModel(told),
    definition,
  }
}

function withDescription(rawName: string, definition: JsonObject, note: TakeNote): JsonObject {
  const { description } = definition
  if (typeof description !== 'string' || description.length <= DESCRIPTION_CHARS_MAX) return definition
  note(rawName, 'cut', `its description has ${description.length} characters; ${DESCRIPTION_CHARS_MAX} are kept`)
  return { ...definition, description: cutText(description, DESCRIPTION_CHARS_MAX) }
}
