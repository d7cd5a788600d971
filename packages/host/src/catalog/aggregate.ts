// Resources, templates and prompts of all servers, asked side by side. One that fails hides nobody.
import { cleanJson, cleanLine, HostError, isObject, type JsonObject, withoutReservedKeys } from '../base/index.ts'
import type { Listing, ListKind, ServerSession } from '../protocol/index.ts'
import type { Aggregate, CatalogPrompt, CatalogResource, CatalogResourceTemplate } from './entries.ts'
import { assignNames, FLAT_STYLE, flatName } from './names.ts'
import type { ServerCatalog } from './server-catalog.ts'
import { toolIdentity } from './tool-view.ts'

/** Whose key on a listed item says which server offers it; a reader gives it back to say which one is meant. */
export const SERVER_META_KEY = 'convoke/server'

/** One server that is ready. */
export interface OfferSource {
  readonly server: string
  readonly session: ServerSession
  readonly catalog: ServerCatalog
}

type Kind = Exclude<ListKind, 'tools'>

/** Text of one item; an item with more is left out. */
const ITEM_CHARS_MAX = 256 * 1024
const NAME_CHARS_MAX = 1_024

/** Every resource, in the order of the servers. URIs are not rewritten. */
export async function aggregateResources(
  sources: readonly OfferSource[],
  maxAgeMs: number,
): Promise<Aggregate<CatalogResource>> {
  const { items, failures } = await collect(sources, 'resources', maxAgeMs)
  return {
    items: items.map(({ server, item }) => ({ uri: String(item['uri']), ...described(server, item) })),
    failures,
  }
}

/** Every resource template, in the order of the servers. */
export async function aggregateTemplates(
  sources: readonly OfferSource[],
  maxAgeMs: number,
): Promise<Aggregate<CatalogResourceTemplate>> {
  const { items, failures } = await collect(sources, 'resourceTemplates', maxAgeMs)
  return {
    items: items.map(({ server, item }) => ({ uriTemplate: String(item['uriTemplate']), ...described(server, item) })),
    failures,
  }
}

/** Every prompt, named like a tool. */
export async function aggregatePrompts(
  sources: readonly OfferSource[],
  { maxAgeMs, nameCharsMax }: { readonly maxAgeMs: number; readonly nameCharsMax: number },
): Promise<Aggregate<CatalogPrompt>> {
  const { items, failures } = await collect(sources, 'prompts', maxAgeMs)
  const unique = new Map(items.map((one) => [JSON.stringify([one.server, one.rawName]), one]))
  const listed = [...unique.values()]
  const names = assignNames(
    listed.map(({ server, rawName }) => toolIdentity(server, rawName)),
    { ...FLAT_STYLE, charsMax: nameCharsMax },
  )
  const prompts = listed.map(({ server, item, rawName }, index) => {
    const name = names[index]
    return { ...described(server, item), name: name === undefined ? rawName : flatName(name), rawName }
  })
  return { items: prompts, failures }
}

interface ShownItem {
  readonly server: string
  /** As the server calls it: what goes back to it. */
  readonly rawName: string
  readonly item: JsonObject
}

interface Collected {
  readonly items: readonly ShownItem[]
  readonly failures: Aggregate<never>['failures']
}

async function collect(sources: readonly OfferSource[], kind: Kind, maxAgeMs: number): Promise<Collected> {
  const answers = await Promise.all(sources.map((source) => ask(source, kind, maxAgeMs)))
  return {
    items: answers.flatMap(({ server, listing }) => (listing?.items ?? []).flatMap((item) => shown(server, item))),
    failures: answers.flatMap(({ server, failure }) => (failure === undefined ? [] : [{ server, ...failure }])),
  }
}

async function ask(
  { server, session, catalog }: OfferSource,
  kind: Kind,
  maxAgeMs: number,
): Promise<{ server: string; listing?: Listing; failure?: { code: string; message: string } }> {
  try {
    return { server, listing: await catalog.offered(session, kind, maxAgeMs) }
  } catch (error) {
    const { code, message } = HostError.is(error) ? error : { code: 'INTERNAL', message: String(error) }
    return { server, failure: { code, message } }
  }
}

/** The item with its owner stamped on; none for one that is too big to be shown. */
function shown(server: string, item: JsonObject): ShownItem[] {
  let clean: JsonObject
  try {
    clean = cleanJson(item, { charsMax: ITEM_CHARS_MAX }).value
  } catch {
    return []
  }
  const meta = isObject(clean['_meta']) ? withoutReservedKeys(clean['_meta']) : {}
  // A URI is an address: it goes back to the server as it came.
  const { uri, uriTemplate } = item
  const stamped = { ...clean, ...present({ uri, uriTemplate }), _meta: { ...meta, [SERVER_META_KEY]: server } }
  return [{ server, rawName: String(item['name']), item: stamped }]
}

function described(
  server: string,
  item: JsonObject,
): { server: string; name: string; title?: string; description?: string; mimeType?: string; definition: JsonObject } {
  const { title, description, mimeType, name } = item
  return {
    server,
    name: cleanLine(String(name), NAME_CHARS_MAX),
    ...texts({ title, description, mimeType }),
    definition: item,
  }
}

function present(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

function texts(members: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(members).filter((member): member is [string, string] => typeof member[1] === 'string'),
  )
}
