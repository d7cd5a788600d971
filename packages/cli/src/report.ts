// The JSON answers of the command. Their schemas are in packages/cli/schemas; a test compares real output with them.

import type { CatalogNote, CatalogTool, ServerLife, ServerStatus } from '@convoke/host'
import { JSON_VERSION } from './context.ts'

/** A server in a listing. Times are ISO 8601 in UTC. */
export interface ServerRow {
  readonly name: string
  readonly state: ServerStatus['state']
  readonly reason?: { readonly code: string; readonly message: string }
  readonly since: string
  readonly nextRetryAt?: string
  readonly catalog?: CatalogRow
}

/** Where the tools of a server come from. */
export interface CatalogRow {
  readonly from: 'live' | 'cached'
  readonly toolCount: number
  /** When they were listed, if they come from an earlier run. */
  readonly listedAt?: string
  /** Why they may not be what the server lists today. */
  readonly staleBecause?: string
}

/** Where the tools come from; undefined where none are known. */
export function catalogRow({ tools, cache }: ServerLife): CatalogRow | undefined {
  const { from, shown } = tools
  if (from === 'nowhere') return undefined
  if (from === 'live' || cache.kind !== 'kept') return { from, toolCount: shown }
  const { listedAtMs, staleBecause } = cache
  return {
    ...{ from, toolCount: shown, listedAt: isoTime(listedAtMs) },
    ...(staleBecause === undefined ? {} : { staleBecause }),
  }
}

/** ISO 8601 in UTC. */
export const isoTime = (atMs: number): string => new Date(atMs).toISOString()

/** One server, as `tools` and the other listings show it. */
export function serverRow({ name, state, reason, sinceAtMs, nextRetryAtMs }: ServerStatus): ServerRow {
  return {
    name,
    state,
    ...(reason === undefined ? {} : { reason: { code: reason.code, message: reason.message } }),
    since: isoTime(sinceAtMs),
    ...(nextRetryAtMs === undefined ? {} : { nextRetryAt: isoTime(nextRetryAtMs) }),
  }
}

/** The same, and where its tools come from. */
function listedRow(status: ServerStatus, life: ServerLife | undefined): ServerRow {
  const catalog = life === undefined ? undefined : catalogRow(life)
  return { ...serverRow(status), ...(catalog === undefined ? {} : { catalog }) }
}

/** One server, as `status` shows it. */
export function statusRow(status: ServerStatus, life?: ServerLife): ServerRow & Readonly<Record<string, unknown>> {
  const { transport, pid, era, protocolVersion, serverInfo, toolCount, noiseCount, stderrTail } = status
  return {
    ...listedRow(status, life),
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
  readonly lives: ReadonlyMap<string, ServerLife>
}): object {
  const { revision, tools, statuses, notes, lives } = listing
  return {
    version: JSON_VERSION,
    revision,
    tools: tools.map(toolRow),
    servers: statuses.map((status) => listedRow(status, lives.get(status.name))),
    ...(notes.length === 0 ? {} : { notes }),
  }
}

/** The members that have a value. */
export function defined(values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}
