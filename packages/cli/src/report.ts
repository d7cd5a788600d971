// The JSON answers of the command. Their schemas are in packages/cli/schemas; a test compares real output with them.

import type { CatalogNote, CatalogTool, ServerStatus } from '@convoke/host'
import { JSON_VERSION } from './context.ts'

/** A server in a listing. Times are ISO 8601 in UTC. */
export interface ServerRow {
  readonly name: string
  readonly state: ServerStatus['state']
  readonly reason?: { readonly code: string; readonly message: string }
  readonly since: string
  readonly nextRetryAt?: string
}

/** One server, as `tools` and the other listings show it. */
export function serverRow({ name, state, reason, sinceAtMs, nextRetryAtMs }: ServerStatus): ServerRow {
  return {
    name,
    state,
    ...(reason === undefined ? {} : { reason: { code: reason.code, message: reason.message } }),
    since: new Date(sinceAtMs).toISOString(),
    ...(nextRetryAtMs === undefined ? {} : { nextRetryAt: new Date(nextRetryAtMs).toISOString() }),
  }
}

/** One server, as `status` shows it. */
export function statusRow(status: ServerStatus): ServerRow & Readonly<Record<string, unknown>> {
  const { transport, pid, era, protocolVersion, serverInfo, toolCount, noiseCount, stderrTail } = status
  return {
    ...serverRow(status),
    transport,
    ...defined({ pid, era, protocolVersion, serverInfo, toolCount, noiseCount, stderrTail }),
  }
}

/** One tool, as `tools` shows it. */
export function toolRow(tool: CatalogTool): Readonly<Record<string, unknown>> {
  const { name, server, rawName, title, description, inputSchema, outputSchema, annotations, state } = tool
  return { name, server, rawName, ...defined({ title, description, inputSchema, outputSchema, annotations }), state }
}

/** The answer of `convoke tools --json`. */
export function toolsReport(listing: {
  readonly revision: string
  readonly tools: readonly CatalogTool[]
  readonly statuses: readonly ServerStatus[]
  readonly notes: readonly CatalogNote[]
}): object {
  const { revision, tools, statuses, notes } = listing
  return {
    version: JSON_VERSION,
    revision,
    tools: tools.map(toolRow),
    servers: statuses.map(serverRow),
    ...(notes.length === 0 ? {} : { notes }),
  }
}

/** The members that have a value. */
export function defined(values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}
