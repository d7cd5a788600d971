// The calls of one binding: each goes to the connection that was captured, or, for a tool that was listed from an earlier run, to the live one if it is the same.
import { HostError, type JsonObject } from '../base/index.ts'
import type { CatalogTool } from '../catalog/index.ts'
import { resolveTraits } from '../config/index.ts'
import { hostErrorOf, type RawAnswer, type RequestOptions } from '../protocol/index.ts'
import type { BoundServer } from './bound-server.ts'
import type { CallOptions, CallOutcome } from './call-outcome.ts'
import { classifyCall } from './classify.ts'
import { contractDifference, contractIn, knownHints } from './contract.ts'
import { boundWhenReady, type LiveServers, withoutWaiting } from './live-servers.ts'
import { type CallServices, PreparedCall } from './prepared-call.ts'

/** What calls of one binding share. */
export interface ToolCallsInit extends CallServices {
  /** The servers that were captured. */
  readonly servers: ReadonlyMap<string, BoundServer>
  /** For tools that were listed from an earlier run; absent: such a tool cannot be called. */
  readonly live?: LiveServers | undefined
}

/** Whom a call is prepared for: a model never gets what is hidden from models. */
export interface PrepareOptions {
  readonly audience: 'model' | 'host'
  /** Kept open until the prepared call is disposed; usually a lease on the generation. */
  readonly hold?: AsyncDisposable | undefined
}

/** Calls tools; every way a call can end is an outcome. */
export class ToolCalls {
  readonly #init: ToolCallsInit
  /** Which listing each server had when the binding was taken. */
  readonly #revisions: ReadonlyMap<string, number>

  /** Make it in the same turn in which the view of the tools is taken: it notes the revisions of now. */
  constructor(init: ToolCallsInit) {
    this.#init = init
    this.#revisions = new Map([...init.servers].map(([name, { catalog }]) => [name, catalog.revision]))
  }

  /** A call of its own, which outlives the binding; undefined for a tool without a live connection, and for a model where the tool is hidden from models. */
  prepare(tool: CatalogTool, { audience, hold }: PrepareOptions): PreparedCall | undefined {
    const bound = this.#init.servers.get(tool.server)
    if (bound === undefined || tool.state === 'cached' || !bound.view.allows(tool.rawName)) return undefined
    if (audience === 'model' && !tool.visibleToModel) return undefined
    return this.#prepared(tool, bound, { hold, revision: this.#revisions.get(tool.server) })
  }

  /** Never rejects. A tool that models do not see can be called here too. */
  async call(tool: CatalogTool, args: JsonObject, options: CallOptions): Promise<CallOutcome> {
    const { timeoutMs } = options
    const beganAtMs = this.#init.platform.now()
    try {
      const prepared = await this.#callable(tool, options)
      // The caller's limit is for the whole: also for the start of a server that slept.
      const waitedMs = tool.state === 'cached' ? this.#init.platform.now() - beganAtMs : 0
      return await prepared.call(args, withoutWaiting(options, waitedMs))
    } catch (error) {
      const what = `${tool.server}/${tool.rawName}`
      return classifyCall(hostErrorOf(error, tool.server), { what, idleTimeoutMs: 0, totalTimeoutMs: timeoutMs ?? 0 })
    }
  }

  /** The answer as bytes. @throws {HostError} */
  async callRaw(tool: CatalogTool, params: JsonObject, options: RequestOptions): Promise<RawAnswer> {
    const { signal, totalTimeoutMs } = options
    const prepared = await this.#callable(tool, { signal, timeoutMs: totalTimeoutMs })
    return prepared.raw(params, options)
  }

  /** @throws {HostError} `SERVER_NOT_READY`, `TOOL_DISABLED`; for a tool from an earlier run also what its server fails with, and `TOOL_CHANGED`. */
  async #callable(tool: CatalogTool, limits: Waiting): Promise<PreparedCall> {
    const { server, rawName } = tool
    const bound = this.#init.servers.get(server)
    if (bound === undefined && tool.state === 'live')
      throw new HostError('SERVER_NOT_READY', `Server "${server}" was not ready when this view was taken`)
    if (bound?.view.allows(rawName) === false) throw toolDisabled(server, rawName)
    if (bound === undefined || tool.state === 'cached') return this.#fromCache(tool, limits)
    return this.#prepared(tool, bound, { revision: this.#revisions.get(server) })
  }

  /** Waits for the server of now and looks whether it still has the tool that was shown. */
  async #fromCache(tool: CatalogTool, { signal, timeoutMs }: Waiting): Promise<PreparedCall> {
    const { server, rawName } = tool
    const live = this.#init.live?.member(server)
    if (live === undefined) throw new HostError('SERVER_UNKNOWN', `There is no server "${server}" any more`)
    if (!live.view.allows(rawName)) throw toolDisabled(server, rawName)
    const bound = await boundWhenReady(live, { platform: this.#init.platform, signal, timeoutMs })
    const now = contractIn(bound.view.live, rawName)
    if (now === undefined) throw toolChanged(tool, 'does not have it any more')
    const difference = contractDifference(tool, now, knownHints(tool.state, resolveTraits(bound.definition)))
    if (difference !== undefined) throw toolChanged(tool, `has changed ${difference}`)
    const { annotations, ...shown } = tool
    const same: CatalogTool = { ...shown, ...now, state: 'live' }
    return this.#prepared(same, bound, { revision: bound.catalog.revision })
  }

  #prepared(
    tool: CatalogTool,
    bound: BoundServer,
    { revision, hold }: { readonly revision: number | undefined; readonly hold?: AsyncDisposable | undefined },
  ): PreparedCall {
    const traits = resolveTraits(bound.definition)
    return new PreparedCall({ tool, bound, traits, revision, hold, services: this.#init })
  }
}

interface Waiting {
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
}

/** The filter holds for calls as for listings. */
export function toolDisabled(server: string, rawName: string): HostError {
  return new HostError(
    'TOOL_DISABLED',
    `The configuration does not allow ${server}/${rawName} (tools.allow, tools.deny)`,
  )
}

function toolChanged({ server, rawName }: CatalogTool, difference: string): HostError {
  return new HostError(
    'TOOL_CHANGED',
    `${server}/${rawName} was listed from an earlier run, and its server ${difference}. The call was not sent; look at the tools again`,
    { details: { server, difference, sent: false } },
  )
}
