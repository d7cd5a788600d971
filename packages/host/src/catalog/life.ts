// The life of one tool, from its entry in the configuration to the name a model sees: for people who ask why. Pure.
import type { DefinitionSource, ServerDefinition, ToolSurface } from '../config/index.ts'
import type { CatalogView } from './catalog-view.ts'
import type { CatalogConnector, CatalogTool } from './entries.ts'
import type { ListedTool } from './listing.ts'
import { assignNames, FLAT_STYLE, flatName, type NamespacedName } from './names.ts'
import { type NamePolicy, nameChange, type ToolView, toolIdentity, WHY_RENAMED } from './tool-view.ts'

/** Everything that is known about how one tool came to be shown, or not. */
export interface ToolLife {
  readonly server: string
  /** As its server calls it. */
  readonly rawName: string
  readonly declaredBy: { readonly source: DefinitionSource; readonly plugin?: string }
  /** Its names, if it is shown. */
  readonly shownAs: { readonly flat: string; readonly namespaced?: NamespacedName } | undefined
  /** Why it is not shown; undefined when it is. */
  readonly missingBecause: string | undefined
  readonly filter: { readonly verdict: 'allowed' | 'denied'; readonly because: string }
  /** `hidden`: its server does not want models to see it; it can still be called by name. */
  readonly visibility: 'visible' | 'hidden' | 'unknown'
  /** Surfaces that do not show the tools of its server. */
  readonly omittedFrom: readonly ToolSurface[]
  /** Why its name is not made of its server's own words. */
  readonly renamedBecause: string | undefined
  readonly connector: CatalogConnector | undefined
  /** Where the shown definition comes from. */
  readonly from: 'live' | 'cached' | 'nowhere'
  /** When that was listed, in milliseconds of the epoch. */
  readonly sinceAtMs: number | undefined
  readonly cache:
    | { readonly kind: 'kept'; readonly atMs: number; readonly staleBecause: string | undefined }
    | { readonly kind: 'empty' }
    | { readonly kind: 'none'; readonly because: string }
}

/** What a tool's life is read from. */
export interface LifeFacts {
  /** One per member of the published set. */
  readonly views: readonly CatalogView[]
  /** What is shown. */
  readonly shown: ToolView
  readonly names: NamePolicy
}

/** Lives that one text may mean. */
const LIVES_MAX = 20

/** The lives that a text may mean: a flat name, `SERVER/TOOL`, or a raw name that several servers may have. At most 20. */
export function toolLife(text: string, facts: LifeFacts): ToolLife[] {
  const lives: ToolLife[] = []
  for (const view of facts.views)
    for (const rawName of meant(text, view, facts)) {
      if (lives.length >= LIVES_MAX) return lives
      lives.push(lifeOf(rawName, view, facts))
    }
  return lives
}

/** The raw names of one server that the text may mean. */
function meant(text: string, view: CatalogView, { shown, names }: LifeFacts): readonly string[] {
  const { name } = view.definition
  const flat = shown.byName.get(text)
  const found = new Set<string>(flat?.server === name ? [flat.rawName] : [])
  for (const rawName of knownNames(view)) {
    const isMeant = rawName === text || `${name}/${rawName}` === text || flatAlone(name, rawName, names) === text
    if (isMeant) found.add(rawName)
  }
  // Nobody has listed it; what the configuration says about it can be told all the same.
  if (found.size === 0 && text.startsWith(`${name}/`) && text.length > name.length + 1)
    return [text.slice(name.length + 1)]
  return [...found]
}

function knownNames(view: CatalogView): readonly string[] {
  const listing = view.catalog.listing ?? view.cache?.snapshot?.listing
  if (listing === undefined) return []
  return [...listing.tools.map(({ rawName }) => rawName), ...listing.notes.map(({ item }) => item)]
}

function flatAlone(server: string, rawName: string, { nameCharsMax }: NamePolicy): string | undefined {
  const [alone] = assignNames([toolIdentity(server, rawName)], { ...FLAT_STYLE, charsMax: nameCharsMax })
  return alone === undefined ? undefined : flatName(alone)
}

function lifeOf(rawName: string, view: CatalogView, facts: LifeFacts): ToolLife {
  const { definition, cache } = view
  const tool = facts.shown.raw(definition.name, rawName)
  const listed = listedTool(rawName, view)
  const change = tool === undefined ? undefined : nameChange(tool, facts.names)
  return {
    server: definition.name,
    rawName,
    declaredBy: {
      source: definition.source,
      ...(definition.plugin === undefined ? {} : { plugin: definition.plugin.displayName }),
    },
    shownAs: tool === undefined ? undefined : namesOf(tool, facts.shown),
    missingBecause: tool === undefined ? missing(rawName, view) : undefined,
    filter: verdictOf(rawName, view),
    visibility: listed === undefined ? 'unknown' : listed.visibleToModel ? 'visible' : 'hidden',
    omittedFrom: definition.omitToolsFrom,
    renamedBecause: change === undefined ? undefined : WHY_RENAMED[change],
    connector: tool?.connector,
    from: tool?.state ?? 'nowhere',
    sinceAtMs: sinceOf(tool, view),
    cache: cacheOf(view, cache?.isDisabled === true),
  }
}

function namesOf(tool: CatalogTool, shown: ToolView): ToolLife['shownAs'] {
  const namespaced = shown.namespaced(tool)
  return { flat: tool.name, ...(namespaced === undefined ? {} : { namespaced }) }
}

function listedTool(rawName: string, { catalog, cache }: CatalogView): ListedTool | undefined {
  const listing = catalog.listing ?? cache?.snapshot?.listing
  return listing?.tools.find((one) => one.rawName === rawName)
}

/** The note about it says why; without one it is not in any listing. */
function missing(rawName: string, view: CatalogView): string {
  const note = view.notes.find(({ item, kind }) => item === rawName && (kind === 'rejected' || kind === 'filtered'))
  if (note !== undefined) return note.reason
  if (view.catalog.listing === undefined && view.cached === undefined)
    return 'its server has not listed its tools yet, and no earlier listing is kept'
  return listedTool(rawName, view) === undefined ? 'its server does not list it' : 'its server is not ready'
}

function verdictOf(rawName: string, { allows, definition }: CatalogView): ToolLife['filter'] {
  if (allows(rawName)) return { verdict: 'allowed', because: allowedBecause(definition.tools) }
  const isDenied = definition.tools.deny?.includes(rawName) === true
  return { verdict: 'denied', because: isDenied ? 'tools.deny names it' : 'tools.allow does not name it' }
}

function allowedBecause({ allow, deny }: ServerDefinition['tools']): string {
  if (allow !== undefined) return 'tools.allow names it'
  return deny === undefined ? 'there is no filter' : 'tools.deny does not name it'
}

function sinceOf(tool: CatalogTool | undefined, view: CatalogView): number | undefined {
  if (tool === undefined) return undefined
  return tool.state === 'live' ? view.catalog.listedAtMs : view.cachedAtMs
}

function cacheOf(
  { cache, cachedAtMs, staleBecause, uncachedBecause }: CatalogView,
  isDisabled: boolean,
): ToolLife['cache'] {
  if (cache === undefined) return { kind: 'none', because: uncachedBecause ?? 'this host keeps no catalogs' }
  if (isDisabled) return { kind: 'none', because: 'its server asks that its catalog is not kept' }
  return cachedAtMs === undefined ? { kind: 'empty' } : { kind: 'kept', atMs: cachedAtMs, staleBecause }
}
