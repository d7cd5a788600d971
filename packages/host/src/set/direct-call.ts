// A call by name, without a binding: to the server of now, whether or not the tool is listed.
import { HostError, type JsonObject } from '../base/index.ts'
import type { CatalogTool } from '../catalog/index.ts'
import { resolveTraits } from '../config/index.ts'
import { hostErrorOf } from '../protocol/index.ts'
import type { BoundServer } from './bound-server.ts'
import type { CallOptions, CallOutcome } from './call-outcome.ts'
import { classifyCall } from './classify.ts'
import { boundNow, boundWhenReady, type LiveServer, type LiveServers, withoutWaiting } from './live-servers.ts'
import { type CallServices, PreparedCall } from './prepared-call.ts'
import { toolDisabled } from './tool-calls.ts'

/** Which tool to call, and how. */
export interface DirectCall extends CallOptions {
  readonly server: string
  /** The raw name. It need not be listed, and it may be hidden from models. */
  readonly tool: string
  readonly args?: JsonObject
  /** The environment that the server has to run in; absent: any. */
  readonly environment?: string
  /** `ready`: starts the server if it has to, and waits for it. `no`: only a server that is ready is called. Default `no`. */
  readonly wait?: 'no' | 'ready'
}

/** What direct calls need. */
export interface DirectCallServices extends Omit<CallServices, 'entitlements'> {
  readonly live: LiveServers
}

/**
 * Calls a tool by name. Looked at in this order: is the server known (`SERVER_UNKNOWN`), does it run where the caller thinks (`ENVIRONMENT_MISMATCH`), is
 * the tool allowed (`TOOL_DISABLED`), is the server there (`SERVER_NOT_READY`, or why it does not start). Never rejects: every end is an outcome.
 */
export async function callTool(call: DirectCall, services: DirectCallServices): Promise<CallOutcome> {
  const { server, tool, args = {}, environment: _, wait: __, ...options } = call
  const { platform } = services
  const beganAtMs = platform.now()
  try {
    const bound = await serverOf(call, services)
    const traits = resolveTraits(bound.definition)
    const prepared = new PreparedCall({ tool: unlisted(bound, tool), bound, traits, revision: undefined, services })
    const waitedMs = call.wait === 'ready' ? platform.now() - beganAtMs : 0
    return await prepared.call(args, withoutWaiting(options, waitedMs))
  } catch (error) {
    const facts = { what: `${server}/${tool}`, idleTimeoutMs: 0, totalTimeoutMs: call.timeoutMs ?? 0 }
    return classifyCall(hostErrorOf(error, server), facts)
  }
}

/** @throws {HostError} */
async function serverOf(call: DirectCall, { live, platform }: DirectCallServices): Promise<BoundServer> {
  const { server, tool, environment, wait, signal, timeoutMs } = call
  const found = live.member(server)
  if (found === undefined)
    throw new HostError('SERVER_UNKNOWN', `There is no server "${server}"`, { details: { server } })
  const actual = found.view.definition.environment
  if (environment !== undefined && environment !== actual) throw elsewhere(server, actual, environment)
  if (!found.view.allows(tool)) throw toolDisabled(server, tool)
  if (wait === 'ready') return boundWhenReady(found, { platform, signal, timeoutMs })
  return boundNow(found) ?? notConnected(found)
}

function elsewhere(server: string, environment: string, expected: string): HostError {
  return new HostError(
    'ENVIRONMENT_MISMATCH',
    `Server "${server}" runs in the environment "${environment}", and the call is for "${expected}"`,
    { details: { server, environment, expected } },
  )
}

/** @throws {HostError} `SERVER_NOT_READY`, with the state and its reason; nothing is started. */
function notConnected({ connection }: LiveServer): never {
  const { name, state, reason } = connection.status
  const why = reason === undefined ? '' : `: ${reason.message}`
  throw new HostError('SERVER_NOT_READY', `Server "${name}" is not connected (${state})${why}`, {
    details: { server: name, state, ...(reason === undefined ? {} : { reason: reason.code }) },
  })
}

/** A tool as far as calling needs it. Its result is not checked against a schema: nobody was shown one. */
function unlisted({ definition }: BoundServer, rawName: string): CatalogTool {
  return {
    name: rawName,
    server: definition.name,
    rawName,
    inputSchema: {},
    state: 'live',
    visibleToModel: true,
    approvalMode: definition.approvalMode,
    parallelToolCalls: definition.parallelToolCalls,
    environment: definition.environment,
    definition: { name: rawName },
  }
}
