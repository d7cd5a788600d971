// All pages of a listing, within limits. Keeps nothing.
import type { RequestOptions } from './call.ts'
import type { Channel } from './channel.ts'
import { WireError, type WireLimit } from './errors.ts'
import type { Era, JsonObject, ListItems, ListKind, Tool } from './protocol.ts'
import { itemFault } from './validate.ts'

/** Limits of a listing; those of `RequestOptions` hold for each page. */
export interface ListOptions extends RequestOptions {
  /** Default 100. */
  pagesMax?: number
  /** Default 2048. */
  itemsMax?: number
  /** Default 65,536. */
  cursorBytesMax?: number
  /** For all pages together. Default 30,000. */
  timeoutMs?: number
}

/** An item that cannot be used, and why. */
export interface Rejected {
  name: string
  reason: string
}

/** A whole listing. */
export interface Listing<Item = JsonObject> {
  items: readonly Item[]
  rejected: readonly Rejected[]
  /** Modern servers say how long the listing holds (the shortest of all pages) … */
  ttlMs?: number
  /** … and for whom (`private` if one page says so). */
  cacheScope?: 'public' | 'private'
}

interface Source {
  era: Era
  channel: Channel
  /** In ms; stands still while credentials are waited for. */
  nowMs(): number
  request(method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject>
}

const PAGES_MAX = 100,
  ITEMS_MAX = 2_048,
  CURSOR_BYTES_MAX = 65_536,
  TIMEOUT_MS = 30_000

const METHODS: Readonly<Record<ListKind, string>> = {
  tools: 'tools/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
  prompts: 'prompts/list',
}

/**
 * Fetches page after page.
 * @throws {WireError} `pagination` or `timed-out` with `details.limit`, `malformed`, and whatever the request for a page failed with.
 */
export async function list<Kind extends ListKind>(
  source: Source,
  kind: Kind,
  options: ListOptions,
): Promise<Listing<ListItems[Kind]>> {
  const { pagesMax = PAGES_MAX, itemsMax, cursorBytesMax, timeoutMs = TIMEOUT_MS, ...request } = options
  const method = METHODS[kind]
  const endsAtMs = source.nowMs() + timeoutMs
  const pages = new Pages<ListItems[Kind]>(source, kind, itemsMax ?? ITEMS_MAX)
  const cursors = new Cursors(method, cursorBytesMax ?? CURSOR_BYTES_MAX)
  let cursor: string | undefined
  for (let page = 1; ; page++) {
    const result = await pageOf(source, method, cursor, { ...request, endsAtMs, timeoutMs })
    pages.add(result)
    cursor = cursors.next(result['nextCursor'])
    if (cursor === undefined) return { items: pages.items, rejected: pages.rejected, ...pages.freshness }
    if (page >= pagesMax) throw over('pages', `"${method}" has more than ${pagesMax} pages`)
  }
}

async function pageOf(
  source: Source,
  method: string,
  cursor: string | undefined,
  { endsAtMs, timeoutMs, ...request }: RequestOptions & { endsAtMs: number; timeoutMs: number },
): Promise<JsonObject> {
  const leftMs = endsAtMs - source.nowMs()
  if (leftMs <= 0) throw over('listing', `"${method}" did not come to an end within ${timeoutMs} ms`)
  const { totalTimeoutMs = leftMs } = request
  try {
    return await source.request(method, cursor === undefined ? {} : { cursor }, {
      ...request,
      totalTimeoutMs: Math.min(leftMs, totalTimeoutMs),
    })
  } catch (error) {
    if (error instanceof WireError && error.details.limit === 'total' && leftMs <= totalTimeoutMs)
      throw new WireError('timed-out', `"${method}" did not come to an end within ${timeoutMs} ms`, {
        ...error.details,
        limit: 'listing',
      })
    throw error
  }
}

/** What the pages have brought so far. */
class Pages<Item> {
  readonly items: Item[] = []
  readonly rejected: Rejected[] = []
  /** The listing holds as long as its shortest page, and is as private as its most private one. */
  readonly freshness: { ttlMs?: number; cacheScope?: 'public' | 'private' } = {}
  readonly #source: Source
  readonly #kind: ListKind
  readonly #itemsMax: number

  constructor(source: Source, kind: ListKind, itemsMax: number) {
    this.#source = source
    this.#kind = kind
    this.#itemsMax = itemsMax
  }

  add(page: JsonObject): void {
    const method = METHODS[this.#kind]
    const listed = page[this.#kind]
    if (!Array.isArray(listed))
      throw new WireError('malformed', `The answer to "${method}" has no list "${this.#kind}"`)
    if (this.items.length + this.rejected.length + listed.length > this.#itemsMax)
      throw over('items', `"${method}" lists more than ${this.#itemsMax} items`)
    for (const item of listed) this.#sort(item)
    if (this.#source.era === 'modern') this.#freshen(page)
  }

  #sort(item: unknown): void {
    const { channel } = this.#source
    const reason =
      itemFault(this.#kind, item) ?? (this.#kind === 'tools' ? channel.acceptTool?.(item as Tool) : undefined)
    if (reason === undefined) this.items.push(item as Item)
    else this.rejected.push({ name: nameOf(item), reason })
  }

  #freshen({ ttlMs, cacheScope }: JsonObject): void {
    const pageMs = typeof ttlMs === 'number' && ttlMs > 0 ? ttlMs : 0
    this.freshness.ttlMs = Math.min(this.freshness.ttlMs ?? Number.POSITIVE_INFINITY, pageMs)
    this.freshness.cacheScope =
      cacheScope === 'public' && this.freshness.cacheScope !== 'private' ? 'public' : 'private'
  }
}

/** An empty cursor is a cursor like any other; only an absent one (or null) ends the listing. */
class Cursors {
  readonly #seen = new Set<string>()
  readonly #method: string
  readonly #bytesMax: number

  constructor(method: string, bytesMax: number) {
    this.#method = method
    this.#bytesMax = bytesMax
  }

  next(cursor: unknown): string | undefined {
    if (cursor === undefined || cursor === null) return undefined
    if (typeof cursor !== 'string') throw new WireError('malformed', `The cursor of "${this.#method}" is no text`)
    if (Buffer.byteLength(cursor) > this.#bytesMax)
      throw over('cursor-bytes', `A cursor of "${this.#method}" has more than ${this.#bytesMax} bytes`)
    if (this.#seen.has(cursor)) throw over('repeated-cursor', `"${this.#method}" gives the same cursor twice`)
    this.#seen.add(cursor)
    return cursor
  }
}

function nameOf(item: unknown): string {
  const { name, uri, uriTemplate } = (item ?? {}) as JsonObject
  for (const one of [name, uri, uriTemplate]) if (typeof one === 'string' && one !== '') return one.slice(0, 256)
  return '?'
}

function over(limit: WireLimit, message: string): WireError {
  return new WireError(limit === 'listing' ? 'timed-out' : 'pagination', message, { limit })
}
