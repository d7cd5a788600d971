// One call of one tool on the connection that was captured: arguments checked, limits applied, the end told truthfully.
import {
  cleanJson,
  HostError,
  isObject,
  type JsonObject,
  withoutReservedKeys,
  withoutReservedMeta,
} from '../base/index.ts'
import type { CatalogTool, OutputSchemas } from '../catalog/index.ts'
import { hostErrorOf, type Platform, type RawAnswer, type RequestOptions, type ToolResult } from '../protocol/index.ts'
import type { CallOptions, CallOutcome } from './binding.ts'
import type { BoundServer } from './bound-server.ts'
import { type CallFacts, classifyCall } from './classify.ts'

/** What calls of one binding share. */
export interface ToolCallsInit {
  readonly servers: ReadonlyMap<string, BoundServer>
  readonly outputs: OutputSchemas
  readonly platform: Platform
}

const ignoreProgress = (): void => {}

/** Calls tools; every way a call can end is an outcome. */
export class ToolCalls {
  readonly #init: ToolCallsInit

  constructor(init: ToolCallsInit) {
    this.#init = init
  }

  /** Never rejects. */
  async call(tool: CatalogTool, args: JsonObject, options: CallOptions): Promise<CallOutcome> {
    const what = `${tool.server}/${tool.rawName}`
    let facts: CallFacts = { what, idleTimeoutMs: 0, totalTimeoutMs: 0 }
    try {
      const bound = this.#callable(tool)
      const params = callParams(tool, args, options.meta)
      const limits = limitsOf(bound, tool.rawName, options.timeoutMs)
      facts = { what, ...limits }
      return await this.#finish(tool, await this.#send(bound, params, { options, limits, tool }))
    } catch (error) {
      return classifyCall(hostErrorOf(error, tool.server), facts)
    }
  }

  /** The answer as bytes. @throws {HostError} */
  async callRaw(tool: CatalogTool, params: JsonObject, options: RequestOptions): Promise<RawAnswer> {
    const bound = this.#callable(tool)
    const { arguments: args, _meta: meta, ...rest } = params
    const checked = callParams(tool, args ?? {}, isObject(meta) ? meta : undefined)
    const limits = limitsOf(bound, tool.rawName, options.totalTimeoutMs)
    const request: RequestOptions = { ...options, ...limits, onProgress: options.onProgress ?? ignoreProgress }
    const message = { ...rest, ...checked, ...(args === undefined ? { arguments: {} } : {}) }
    try {
      const answer = await bound.session.requestRaw('tools/call', message, request)
      if (tool.outputSchema !== undefined && answer.kind === 'result') await this.#checkRaw(tool, answer)
      return answer
    } catch (error) {
      throw this.#refused(bound, classifyCall(hostErrorOf(error, tool.server), factsOf(tool, limits)).error)
    }
  }

  #callable({ server, rawName }: CatalogTool): BoundServer {
    const bound = this.#init.servers.get(server)
    if (bound === undefined)
      throw new HostError('SERVER_NOT_READY', `Server "${server}" was not ready when this view was taken`)
    if (!bound.view.allows(rawName))
      throw new HostError(
        'TOOL_DISABLED',
        `The configuration does not allow ${server}/${rawName} (tools.allow, tools.deny)`,
      )
    return bound
  }

  async #send(bound: BoundServer, params: JsonObject, call: SentCall): Promise<ToolResult> {
    const { options, limits, tool } = call
    const endsAtMs = this.#init.platform.now() + limits.totalTimeoutMs
    try {
      return await bound.session.callTool(params, requestOptions(options, limits))
    } catch (error) {
      const failure = this.#refused(bound, hostErrorOf(error, tool.server))
      const leftMs = endsAtMs - this.#init.platform.now()
      if (!mayRepeat(failure, bound, tool.rawName) || leftMs <= 0) throw failure
      return bound.session.callTool(params, requestOptions(options, { ...limits, totalTimeoutMs: leftMs }))
    }
  }

  /** Credentials that are not accepted any more concern the server, not only this call. */
  #refused(bound: BoundServer, failure: HostError): HostError {
    if (failure.code === 'AUTH_REQUIRED' && failure.details['status'] === 401)
      bound.connection.credentialsRefused(failure)
    return failure
  }

  async #finish(tool: CatalogTool, answer: ToolResult): Promise<CallOutcome> {
    const result = withoutReservedMeta(answer)
    if (result.isError === true) return { kind: 'tool-error', result }
    if (tool.outputSchema !== undefined) await this.#check(tool, result)
    return { kind: 'ok', result }
  }

  /** @throws {HostError} `OUTPUT_SCHEMA_MISMATCH`; a result without structured content, and a schema that cannot be used, pass. */
  async #check(tool: CatalogTool, result: JsonObject): Promise<void> {
    const { structuredContent } = result
    if (tool.outputSchema === undefined || structuredContent === undefined) return
    const check = await this.#init.outputs.check(tool.outputSchema, structuredContent)
    if (check.kind !== 'invalid') return
    throw new HostError(
      'OUTPUT_SCHEMA_MISMATCH',
      `${tool.server}/${tool.rawName} ran, but its structured content breaks its output schema at ${check.at} (${check.keyword})`,
      { details: { at: check.at, keyword: check.keyword, result } },
    )
  }

  async #checkRaw(tool: CatalogTool, { body }: RawAnswer): Promise<void> {
    const result: unknown = JSON.parse(body.toString('utf8'))
    if (isObject(result) && result['isError'] !== true) await this.#check(tool, result)
  }
}

interface Limits {
  readonly idleTimeoutMs: number
  readonly totalTimeoutMs: number
}

interface SentCall {
  readonly options: CallOptions
  readonly limits: Limits
  readonly tool: CatalogTool
}

/** The caller's limit is for the whole call; the smaller one holds. */
function limitsOf({ definition }: BoundServer, rawName: string, timeoutMs: number | undefined): Limits {
  const override = definition.tools.overrides?.[rawName]
  const totalTimeoutMs = override?.toolTotalTimeoutMs ?? definition.toolTotalTimeoutMs
  return {
    idleTimeoutMs: override?.toolTimeoutMs ?? definition.toolTimeoutMs,
    totalTimeoutMs: timeoutMs === undefined ? totalTimeoutMs : Math.min(timeoutMs, totalTimeoutMs),
  }
}

function factsOf({ server, rawName }: CatalogTool, limits: Limits): CallFacts {
  return { what: `${server}/${rawName}`, ...limits }
}

/** @throws {HostError} `ARGUMENTS_INVALID` */
function callParams({ server, rawName }: CatalogTool, args: unknown, meta: JsonObject | undefined): JsonObject {
  if (!isObject(args))
    throw new HostError('ARGUMENTS_INVALID', `The arguments of ${server}/${rawName} have to be a JSON object`)
  if (meta === undefined) return { name: rawName, arguments: args }
  const { progressToken: _, ...own } = withoutReservedKeys(meta)
  return { name: rawName, arguments: args, _meta: own }
}

/** Progress is always asked for: it keeps the idle limit from ending a call that works. */
function requestOptions({ timeoutMs: _, meta: __, onProgress, ...rest }: CallOptions, limits: Limits): RequestOptions {
  return {
    ...rest,
    idleTimeoutMs: limits.idleTimeoutMs,
    totalTimeoutMs: limits.totalTimeoutMs,
    onProgress: onProgress === undefined ? ignoreProgress : (progress) => onProgress(cleanJson(progress).value),
  }
}

/** Only what our own configuration calls idempotent, and only while the captured session itself lives. */
function mayRepeat({ code, details }: HostError, { definition, session }: BoundServer, rawName: string): boolean {
  const isLost = code === 'CONNECTION_LOST' && details['sent'] === true
  return isLost && !session.isClosed && definition.tools.overrides?.[rawName]?.idempotent === true
}
