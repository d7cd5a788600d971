// Resources, prompts and completions of a binding: who offers what, and whom to ask.
import { closestNames, HostError, isObject, type JsonObject, untilAborted } from '../base/index.ts'
import {
  type Aggregate,
  aggregatePrompts,
  aggregateResources,
  aggregateTemplates,
  type CatalogPrompt,
  type CatalogResource,
  type CatalogResourceTemplate,
  SERVER_META_KEY,
} from '../catalog/index.ts'
import type { Platform } from '../protocol/index.ts'
import type { CallOptions, ListingOptions } from './binding.ts'
import type { BoundServer } from './bound-server.ts'
import { boundWhenReady, type LiveServers } from './live-servers.ts'
import { askServer, type Question } from './resource-client.ts'

/** A listing that routes a request may be so old, in milliseconds; one that is shown is always asked for. */
const ROUTING_AGE_MS = 60_000
const URI_CHARS_MAX = 8_192

/** What a binding knows of the offers of its servers. */
export interface BoundOffersInit {
  readonly servers: ReadonlyMap<string, BoundServer>
  readonly nameCharsMax: number
  readonly platform: Platform
  /** For requests that name a server which was not captured: it is waited for. Absent: only captured servers are asked. */
  readonly live?: LiveServers | undefined
}

/** Asks the captured servers; whoever names a single server that was not captured waits for the one of now. */
export class BoundOffers {
  readonly #servers: ReadonlyMap<string, BoundServer>
  readonly #nameCharsMax: number
  readonly #platform: Platform
  readonly #live: LiveServers | undefined

  constructor({ servers, nameCharsMax, platform, live }: BoundOffersInit) {
    this.#servers = servers
    this.#nameCharsMax = nameCharsMax
    this.#platform = platform
    this.#live = live
  }

  async resources(options: ListingOptions): Promise<Aggregate<CatalogResource>> {
    const sources = await this.#listed(options, 'resources/list')
    return untilAborted(aggregateResources(sources, 0), options.signal)
  }

  async templates(options: ListingOptions): Promise<Aggregate<CatalogResourceTemplate>> {
    const sources = await this.#listed(options, 'resources/templates/list')
    return untilAborted(aggregateTemplates(sources, 0), options.signal)
  }

  prompts(options: ListingOptions): Promise<Aggregate<CatalogPrompt>> {
    return untilAborted(this.#prompts(0, options.servers), options.signal)
  }

  /** @throws {HostError} `RESOURCE_AMBIGUOUS`, `RESOURCE_UNKNOWN`, `SERVER_NOT_READY`, or what the server failed with. */
  async read(uri: string, { server, ...options }: CallOptions & { readonly server?: string }): Promise<JsonObject> {
    if (uri.length > URI_CHARS_MAX)
      throw new HostError('ARGUMENTS_INVALID', `A URI has at most ${URI_CHARS_MAX} characters`)
    const wanted = server ?? serverIn(options.meta)
    const owner = wanted === undefined ? await this.#ownerOf(uri) : undefined
    const name = owner?.definition.name ?? String(wanted)
    const what = `resources/read failed for "${name}" (${uri})`
    return this.#ask(
      () => owner ?? this.#named(name, options),
      { method: 'resources/read', params: { uri }, what },
      options,
    )
  }

  /** @throws {HostError} `PROMPT_UNKNOWN`, or what the server failed with. */
  async getPrompt(name: string, args: JsonObject, options: CallOptions): Promise<JsonObject> {
    const prompt = await this.#prompt(name)
    const params = { name: prompt.rawName, arguments: args }
    const what = `prompts/get failed for "${prompt.server}" (${prompt.rawName})`
    return this.#ask(() => this.#server(prompt.server), { method: 'prompts/get', params, what }, options)
  }

  /** @throws {HostError} `ARGUMENTS_INVALID`, `PROMPT_UNKNOWN`, `RESOURCE_UNKNOWN`, `RESOURCE_AMBIGUOUS` … */
  async complete(params: JsonObject, options: CallOptions): Promise<JsonObject> {
    const { ref, _meta: meta, ...rest } = params
    if (!isObject(ref)) throw new HostError('ARGUMENTS_INVALID', 'A completion needs a "ref"')
    const routed = await this.#reference(ref, isObject(meta) ? meta : options.meta)
    const asked = { method: 'completion/complete', params: { ...rest, ref: routed.ref } }
    const what = `completion/complete failed for "${routed.owner.definition.name}"`
    return this.#ask(() => routed.owner, { ...asked, what }, options)
  }

  async #reference(ref: JsonObject, meta: JsonObject | undefined): Promise<{ owner: BoundServer; ref: JsonObject }> {
    const { type, name, uri } = ref
    if (type === 'ref/prompt' && typeof name === 'string') {
      const prompt = await this.#prompt(name)
      return { owner: this.#server(prompt.server), ref: { ...ref, name: prompt.rawName } }
    }
    if (type !== 'ref/resource' || typeof uri !== 'string')
      throw new HostError('ARGUMENTS_INVALID', 'The "ref" of a completion names a prompt or a resource template')
    const wanted = serverIn(meta)
    if (wanted !== undefined) return { owner: this.#server(wanted), ref }
    const { items } = await aggregateTemplates(this.#sources(), ROUTING_AGE_MS)
    const owners = items.filter((item) => item.uriTemplate === uri).map(({ server }) => server)
    return { owner: owners.length === 0 ? await this.#ownerOf(uri) : this.#only(uri, owners), ref }
  }

  async #prompt(name: string): Promise<CatalogPrompt> {
    const find = ({ items }: Aggregate<CatalogPrompt>): CatalogPrompt | undefined =>
      items.find((item) => item.name === name)
    const known = find(await this.#prompts(ROUTING_AGE_MS))
    if (known !== undefined) return known
    const fresh = await this.#prompts(0)
    const prompt = find(fresh)
    if (prompt !== undefined) return prompt
    const near = closestNames(
      name,
      fresh.items.map((item) => item.name),
    )
    throw new HostError('PROMPT_UNKNOWN', `There is no prompt "${name}"${hint(near)}`, { details: { near } })
  }

  #prompts(maxAgeMs: number, servers?: readonly string[]): Promise<Aggregate<CatalogPrompt>> {
    return aggregatePrompts(this.#sources(servers), { maxAgeMs, nameCharsMax: this.#nameCharsMax })
  }

  /** Who lists the URI; else who has a template for it; else the only one that has resources at all. */
  async #ownerOf(uri: string): Promise<BoundServer> {
    const known = await this.#listing(uri, ROUTING_AGE_MS)
    if (known.length > 0) return this.#only(uri, known)
    const fresh = await this.#listing(uri, 0)
    if (fresh.length > 0) return this.#only(uri, fresh)
    const { items } = await aggregateTemplates(this.#sources(), ROUTING_AGE_MS)
    const matching = items.filter(({ uriTemplate }) => mayProduce(uriTemplate, uri)).map(({ server }) => server)
    if (matching.length > 0) return this.#only(uri, matching)
    const able = [...this.#servers.values()].filter(({ session }) => session.capabilities['resources'] !== undefined)
    const [only] = able
    if (able.length === 1 && only !== undefined) return only
    const servers = able.map(({ definition }) => definition.name)
    throw new HostError(
      'RESOURCE_UNKNOWN',
      servers.length === 0
        ? `No server that is ready offers resources (${uri})`
        : `No server lists ${uri}. Name the one to ask: ${servers.join(', ')}`,
      { details: { uri, servers } },
    )
  }

  async #listing(uri: string, maxAgeMs: number): Promise<string[]> {
    const { items } = await aggregateResources(this.#sources(), maxAgeMs)
    return items.filter((item) => item.uri === uri).map(({ server }) => server)
  }

  /** @throws {HostError} `RESOURCE_AMBIGUOUS` names them all. */
  #only(uri: string, owners: readonly string[]): BoundServer {
    const servers = [...new Set(owners)]
    const [only] = servers
    if (servers.length === 1 && only !== undefined) return this.#server(only)
    throw new HostError(
      'RESOURCE_AMBIGUOUS',
      `Several servers offer ${uri}: ${servers.join(', ')}. Say which one is meant (_meta["${SERVER_META_KEY}"])`,
      { details: { uri, servers } },
    )
  }

  /** @throws {HostError} `SERVER_NOT_READY` */
  #server(name: string): BoundServer {
    const bound = this.#servers.get(name)
    if (bound !== undefined) return bound
    throw new HostError(
      'SERVER_NOT_READY',
      `Server "${name}" was not ready when this view was taken, or does not exist`,
      {
        details: { server: name },
      },
    )
  }

  /** Only a listing of one server waits for it; one of many asks those that were captured. */
  async #listed(options: ListingOptions, method: string): Promise<readonly Source[]> {
    const { servers, signal } = options
    const [only] = servers ?? []
    if (servers?.length !== 1 || only === undefined || this.#servers.has(only)) return this.#sources(servers)
    try {
      return [sourceOf(await this.#named(only, { signal }))]
    } catch (error) {
      if (!HostError.is(error)) throw error
      const message = `${method} failed for "${only}": ${error.message}`
      throw new HostError(error.code, message, { details: error.details, cause: error })
    }
  }

  /** The captured server; else the one of now, once it is ready. @throws {HostError} */
  #named(
    name: string,
    { signal, timeoutMs }: Pick<CallOptions, 'timeoutMs'> & { readonly signal?: AbortSignal | undefined },
  ): BoundServer | Promise<BoundServer> {
    const live = this.#servers.has(name) ? undefined : this.#live?.member(name)
    if (live === undefined) return this.#server(name)
    return boundWhenReady(live, { platform: this.#platform, signal, timeoutMs })
  }

  #ask(find: () => BoundServer | Promise<BoundServer>, question: Question, options: CallOptions): Promise<JsonObject> {
    return askServer(find, question, { options, platform: this.#platform })
  }

  #sources(servers?: readonly string[]): Source[] {
    const chosen = servers === undefined ? [...this.#servers.values()] : servers.map((name) => this.#server(name))
    return chosen.map(sourceOf)
  }
}

interface Source extends Pick<BoundServer, 'session' | 'catalog'> {
  readonly server: string
}

function sourceOf({ definition, session, catalog }: BoundServer): Source {
  return { server: definition.name, session, catalog }
}

function serverIn(meta: JsonObject | undefined): string | undefined {
  const server = meta?.[SERVER_META_KEY]
  return typeof server === 'string' ? server : undefined
}

/**
 * Could the template have made the URI? Compares what stands before the first and behind the last variable; that is linear, whatever a
 * server writes into a template.
 */
export function mayProduce(template: string, uri: string): boolean {
  const first = template.indexOf('{')
  const last = template.lastIndexOf('}')
  if (first < 0 || last < first) return template === uri
  const [before, after] = [template.slice(0, first), template.slice(last + 1)]
  return before !== '' && uri.length > before.length + after.length && uri.startsWith(before) && uri.endsWith(after)
}

function hint(near: readonly string[]): string {
  return near.length === 0 ? '' : `. Did you mean ${near.map((name) => `"${name}"`).join(', ')}?`
}
