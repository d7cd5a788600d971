// Lists hosted plugins through the resources of the apps server.
import { HostError, untilAborted } from '../../base/index.ts'
import type { ResourceClient, ResourcePage } from '../../extensions/index.ts'
import { EMPTY_CATALOG, type PluginCatalog, type PluginEntry } from '../catalog/catalog.ts'
import { readPluginResource } from './plugin-resource.ts'
import { type PluginClock, type PluginProvider, processClock } from './provider.ts'

/** Longest listing in all, in milliseconds: what was read by then is told before the refresh gives up after 10,000. */
export const LISTING_MS_MAX = 9_500
/** Pages that are read. */
export const PAGES_MAX = 10
/** Plugins that are listed, those that are off included. */
export const PLUGINS_MAX = 100
/** Connections in a row that are replaced while they are read. */
const ATTEMPTS_MAX = 3

/**
 * A provider that reads the resources of the apps server: of the type `application/vnd.convoke.plugin+json`, at `plugin://ID`, described in `_meta["convoke/plugin"]`. Without
 * such a server there are no plugins, and that is no failure.
 *
 * At most 100 plugins on 10 pages within 9,500 ms. If the first page cannot be read, the listing has failed; whatever else goes wrong is a warning, and the catalog is partial
 * then, except for the address of a bundle, which is left out.
 */
export function hostedPluginProvider({ clock = processClock }: { readonly clock?: PluginClock } = {}): PluginProvider {
  return {
    async list({ resources, appsServer }, { signal }) {
      if (resources === undefined || !resources.hasServer(appsServer)) return EMPTY_CATALOG
      const abort = new AbortController()
      const onAbort = (): void => abort.abort(signal.reason)
      const timer = clock.setTimer(() => abort.abort(), LISTING_MS_MAX)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      try {
        const listing = await readThroughOne(resources, appsServer, abort.signal)
        if (signal.aborted) throw new HostError('CANCELLED', 'Cancelled by the caller', { cause: signal.reason })
        return listing.catalog
      } finally {
        clock.clearTimer(timer)
        signal.removeEventListener('abort', onAbort)
      }
    },
  }
}

/** Pages of two connections are no listing, and a connection that was replaced meanwhile is no failure: it is read anew then. */
async function readThroughOne(resources: ResourceClient, server: string, signal: AbortSignal): Promise<Listing> {
  for (let attempt = 1; ; attempt += 1) {
    const connection = resources.connectionKey(server)
    const isReplaced = (): boolean => resources.connectionKey(server) !== connection
    const mayRepeat = attempt < ATTEMPTS_MAX
    try {
      const listing = await readPages(resources, server, signal)
      if (!isReplaced()) return listing
      if (!mayRepeat) return listing.endEarly('the connection was replaced while it was read')
    } catch (error) {
      if (!mayRepeat || !isReplaced()) throw error
    }
  }
}

async function readPages(resources: ResourceClient, server: string, signal: AbortSignal): Promise<Listing> {
  const listing = new Listing()
  const cursors = new Set<string>()
  let next: { readonly cursor?: string } = {}
  for (let count = 1; ; count += 1) {
    let page: ResourcePage
    try {
      page = await untilAborted(resources.listResources(server, { ...next, signal }), signal)
    } catch (error) {
      if (count === 1) throw error
      return listing.endEarly('a page could not be read')
    }
    listing.take(page)
    const { nextCursor } = page
    if (listing.isOver || nextCursor === undefined) return listing
    if (cursors.has(nextCursor)) return listing.endEarly('the listing goes in a circle')
    if (count === PAGES_MAX) return listing.endEarly(`there are more than ${PAGES_MAX} pages`)
    cursors.add(nextCursor)
    next = { cursor: nextCursor }
  }
}

/** What has been read so far. */
class Listing {
  readonly #entries: PluginEntry[] = []
  #malformed = 0
  #badBundles = 0
  #endedEarly: string | undefined

  /** It was cut off. */
  get isOver(): boolean {
    return this.#endedEarly !== undefined
  }

  get catalog(): PluginCatalog {
    return {
      entries: this.#entries,
      warnings: [
        ...(this.#endedEarly === undefined ? [] : [this.#endedEarly]),
        ...(this.#malformed > 0 ? [`left out as malformed: ${this.#malformed}`] : []),
        ...(this.#badBundles > 0 ? [`addresses of bundles that were ignored: ${this.#badBundles}`] : []),
      ],
      isPartial: this.#endedEarly !== undefined || this.#malformed > 0,
    }
  }

  take({ resources, malformedCount }: ResourcePage): void {
    this.#malformed += malformedCount
    for (const resource of resources) {
      const read = readPluginResource(resource)
      if (read.kind === 'malformed') this.#malformed += 1
      if (read.kind !== 'plugin') continue
      if (this.#entries.length === PLUGINS_MAX) {
        this.#endedEarly = `there are more than ${PLUGINS_MAX}`
        return
      }
      this.#entries.push(read.entry)
      if (read.hasBadBundle) this.#badBundles += 1
    }
  }

  endEarly(why: string): this {
    this.#endedEarly ??= why
    return this
  }
}
