// One tool, ready to be called: pinned to the session and the listing it was shown with. It never goes anywhere else.
import {
  cleanJson,
  ENTITLEMENTS_KEY,
  HostError,
  isObject,
  type JsonObject,
  outgoingMeta,
  withoutReservedMeta,
} from '../base/index.ts'
import { appMetaOf, type CatalogTool, type OutputSchemas } from '../catalog/index.ts'
import type { ServerTraits } from '../config/index.ts'
import { hostErrorOf, type Platform, type RawAnswer, type RequestOptions, type ToolResult } from '../protocol/index.ts'
import type { BoundServer } from './bound-server.ts'
import type { CallOptions, CallOutcome } from './call-outcome.ts'
import { type CallFacts, classifyCall } from './classify.ts'
import { contractIn, sameContract } from './contract.ts'
import { type EntitlementMinter, entitlementsOf, mintEntitlements } from './entitlements.ts'

/** What all calls of one host share. */
export interface CallServices {
  readonly outputs: OutputSchemas
  readonly platform: Platform
  /** Absent: no call gets entitlements. */
  readonly entitlements?: EntitlementMinter | undefined
}

/** What a call is made of. */
export interface PreparedCallInit {
  readonly tool: CatalogTool
  readonly bound: BoundServer
  readonly traits: Pick<ServerTraits, 'passesMeta'>
  /** That of the catalog when the tool was shown; undefined: called by name, whatever is listed. */
  readonly revision: number | undefined
  readonly services: CallServices
  /** Kept until the call is disposed. */
  readonly hold?: AsyncDisposable | undefined
}

/** What a preparation yields. */
export interface PreparedInput {
  readonly args: JsonObject
  readonly meta?: JsonObject | undefined
}

const ignoreProgress = (): void => {}
/** Calls one tool on exactly the connection it was shown with. Dispose it, or what it holds stays open. */
export class PreparedCall implements AsyncDisposable {
  readonly tool: CatalogTool
  readonly #init: PreparedCallInit

  constructor(init: PreparedCallInit) {
    this.tool = init.tool
    this.#init = init
  }

  /** Never rejects: every end of a call is an outcome. */
  call(args: JsonObject, options: CallOptions = {}): Promise<CallOutcome> {
    return this.run(() => Promise.resolve({ args, meta: options.meta }), options)
  }

  /**
   * Runs `prepare` and then the tool. A tool whose catalog has been listed anew with changes is refused before `prepare` runs (`CATALOG_CHANGED`). The
   * limits count from the end of the preparation. Never rejects; what `prepare` rejects with is the outcome.
   */
  async run(prepare: () => Promise<PreparedInput>, options: CallOptions = {}): Promise<CallOutcome> {
    const { tool } = this
    const limits = this.#limits(options.timeoutMs)
    const facts: CallFacts = { what: whatOf(tool), ...limits }
    try {
      return await this.#pinned(async () => {
        const input = await prepare()
        const endsAtMs = this.#nowMs + limits.totalTimeoutMs
        const params = await this.#params(input, { options, limits })
        const left = { ...limits, totalTimeoutMs: Math.max(1, endsAtMs - this.#nowMs) }
        return this.#finish(await this.#send(params, { options, limits: left, endsAtMs }))
      })
    } catch (error) {
      return classifyCall(this.#moved(hostErrorOf(error, tool.server)), facts)
    }
  }

  /** The answer as bytes. @throws {HostError} */
  async raw(params: JsonObject, options: RequestOptions): Promise<RawAnswer> {
    const { tool } = this
    const { arguments: args, _meta: meta, ...rest } = params
    const limits = this.#limits(options.totalTimeoutMs)
    try {
      return await this.#pinned(async () => {
        const input = { args: (args ?? {}) as JsonObject, meta: isObject(meta) ? meta : undefined }
        const message = { ...rest, ...(await this.#params(input, { options: {}, limits })) }
        const request = { ...options, ...limits, ...this.#stays(), onProgress: options.onProgress ?? ignoreProgress }
        const answer = await this.#init.bound.session.requestRaw('tools/call', message, request)
        if (tool.outputSchema !== undefined && answer.kind === 'result') await this.#checkRaw(answer)
        return answer
      })
    } catch (error) {
      const failure = this.#refused(this.#moved(hostErrorOf(error, tool.server)))
      throw classifyCall(failure, { what: whatOf(tool), ...limits }).error
    }
  }

  /** Gives back what it holds. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#init.hold?.[Symbol.asyncDispose]()
  }

  get #nowMs(): number {
    return this.#init.services.platform.now()
  }

  /** A newer listing in which this very tool is the same changes nothing about its call. */
  get #isCurrent(): boolean {
    const { bound, revision } = this.#init
    if (revision === undefined || bound.catalog.revision === revision) return true
    const now = contractIn(bound.view.live, this.tool.rawName)
    return now !== undefined && sameContract(this.tool, now, 'all')
  }

  /** While it runs no other listing takes the place of the one it was shown with. */
  async #pinned<Result>(work: () => Promise<Result>): Promise<Result> {
    const leave = await this.#init.bound.catalog.read()
    try {
      if (!this.#isCurrent) throw catalogChanged(this.tool)
      return await work()
    } finally {
      leave()
    }
  }

  /** A call that was never sent because its catalog changed on the way says so. */
  #moved(failure: HostError): HostError {
    const wasSent = failure.details['sent'] !== false
    return failure.code === 'CONNECTION_LOST' && !wasSent && !this.#isCurrent ? catalogChanged(this.tool) : failure
  }

  /** A session that takes the place of this one may list other tools. */
  #stays(): Pick<RequestOptions, 'mayMove'> {
    return { mayMove: () => this.#isCurrent }
  }

  /** @throws {HostError} `ARGUMENTS_INVALID` */
  async #params({ args, meta }: PreparedInput, call: Pick<SentCall, 'options' | 'limits'>): Promise<JsonObject> {
    const { tool } = this
    if (!isObject(args))
      throw new HostError('ARGUMENTS_INVALID', `The arguments of ${whatOf(tool)} have to be a JSON object`)
    const own = { ...outgoingMeta(meta, this.#init.traits), ...this.#carried(call.options.callId) }
    const minted = await this.#minted(args, call)
    const all = minted === undefined ? own : { ...own, [ENTITLEMENTS_KEY]: minted }
    return { name: tool.rawName, arguments: args, ...(Object.keys(all).length === 0 ? {} : { _meta: all }) }
  }

  /** Only a server of the family gets its own object back. */
  #carried(callId: string | undefined): JsonObject {
    const { traits, services } = this.#init
    if (!traits.passesMeta) return {}
    const app = appMetaOf(this.tool.meta)
    if (app === undefined) return {}
    const id = callId ?? services.platform.randomBytes(16).toString('hex')
    return { [app.key]: { ...app.value, [app.callIdName]: id } }
  }

  async #minted(
    args: JsonObject,
    { options, limits }: Pick<SentCall, 'options' | 'limits'>,
  ): Promise<JsonObject | undefined> {
    const { bound, services, revision } = this.#init
    const { tool } = this
    const minter = services.entitlements
    if (minter === undefined || revision === undefined) return undefined
    const entitlements = entitlementsOf({ tool, definition: bound.definition, args })
    if (entitlements === undefined) return undefined
    const request = { server: tool.server, tool: tool.rawName, entitlements }
    const { platform } = services
    return mintEntitlements(minter, request, { platform, limitMs: limits.totalTimeoutMs, signal: options.signal })
  }

  async #send(params: JsonObject, { options, limits, endsAtMs }: SentCall): Promise<ToolResult> {
    const { session } = this.#init.bound
    try {
      return await session.callTool(params, { ...requestOptions(options, limits), ...this.#stays() })
    } catch (error) {
      const failure = this.#refused(hostErrorOf(error, this.tool.server))
      const leftMs = endsAtMs - this.#nowMs
      if (!this.#mayRepeat(failure) || leftMs <= 0) throw failure
      return this.#repeat(params, {
        ...requestOptions(options, { ...limits, totalTimeoutMs: leftMs }),
        ...this.#stays(),
      })
    }
  }

  /** Whatever becomes of it, the first one had left. */
  async #repeat(params: JsonObject, options: RequestOptions): Promise<ToolResult> {
    try {
      return await this.#init.bound.session.callTool(params, options)
    } catch (error) {
      const failure = hostErrorOf(error, this.tool.server)
      throw failure.details['sent'] === false ? failure.with({ sent: true }) : failure
    }
  }

  /** Only what our own configuration calls idempotent, and only while the captured session itself lives. */
  #mayRepeat({ code, details }: HostError): boolean {
    const { definition, session } = this.#init.bound
    const isLost = code === 'CONNECTION_LOST' && details['sent'] === true
    return isLost && !session.isClosed && definition.tools.overrides?.[this.tool.rawName]?.idempotent === true
  }

  /** Credentials that are not accepted any more concern the server, not only this call. */
  #refused(failure: HostError): HostError {
    if (failure.code === 'AUTH_REQUIRED' && failure.details['status'] === 401)
      this.#init.bound.connection.credentialsRefused(failure)
    return failure
  }

  async #finish(answer: ToolResult): Promise<CallOutcome> {
    const result = withoutReservedMeta(answer)
    if (result.isError === true) return { kind: 'tool-error', result }
    await this.#check(result)
    return { kind: 'ok', result }
  }

  /** @throws {HostError} `OUTPUT_SCHEMA_MISMATCH`; a result without structured content, and a schema that cannot be used, pass. */
  async #check(result: JsonObject): Promise<void> {
    const { tool } = this
    const { structuredContent } = result
    if (tool.outputSchema === undefined || structuredContent === undefined) return
    const check = await this.#init.services.outputs.check(tool.outputSchema, structuredContent)
    if (check.kind !== 'invalid') return
    throw new HostError(
      'OUTPUT_SCHEMA_MISMATCH',
      `${whatOf(tool)} ran, but its structured content breaks its output schema at ${check.at} (${check.keyword})`,
      { details: { at: check.at, keyword: check.keyword, result } },
    )
  }

  async #checkRaw({ body }: RawAnswer): Promise<void> {
    const result: unknown = JSON.parse(body.toString('utf8'))
    if (isObject(result) && result['isError'] !== true) await this.#check(result)
  }

  /** The caller's limit is for the whole call; the smaller one holds. */
  #limits(timeoutMs: number | undefined): Limits {
    const { definition } = this.#init.bound
    const override = definition.tools.overrides?.[this.tool.rawName]
    const totalTimeoutMs = override?.toolTotalTimeoutMs ?? definition.toolTotalTimeoutMs
    return {
      idleTimeoutMs: override?.toolTimeoutMs ?? definition.toolTimeoutMs,
      totalTimeoutMs: timeoutMs === undefined ? totalTimeoutMs : Math.min(timeoutMs, totalTimeoutMs),
    }
  }
}

interface Limits {
  readonly idleTimeoutMs: number
  readonly totalTimeoutMs: number
}

interface SentCall {
  readonly options: CallOptions
  readonly limits: Limits
  readonly endsAtMs: number
}

function whatOf({ server, rawName }: Pick<CatalogTool, 'server' | 'rawName'>): string {
  return `${server}/${rawName}`
}

function catalogChanged(tool: CatalogTool): HostError {
  return new HostError(
    'CATALOG_CHANGED',
    `Server "${tool.server}" has changed or withdrawn ${whatOf(tool)} since it was prepared. The call was not sent; look at the tools again`,
    { details: { server: tool.server, sent: false } },
  )
}

/** Progress is always asked for: it keeps the idle limit from ending a call that works. */
function requestOptions(
  { timeoutMs: _, meta: __, callId: ___, onProgress, ...rest }: CallOptions,
  limits: Limits,
): RequestOptions {
  return {
    ...rest,
    idleTimeoutMs: limits.idleTimeoutMs,
    totalTimeoutMs: limits.totalTimeoutMs,
    onProgress: onProgress === undefined ? ignoreProgress : (progress) => onProgress(cleanJson(progress).value),
  }
}
