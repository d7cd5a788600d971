// Constants of the protocol as a server needs them: error codes, reserved keys, versions, levels.
import { LEGACY_VERSIONS, MODERN_VERSION } from '../protocol.ts'

export { MODERN_VERSION } from '../protocol.ts'

/** JSON-RPC and MCP error codes. */
export const PARSE_ERROR: number = -32700
export const INVALID_REQUEST: number = -32600
export const METHOD_NOT_FOUND: number = -32601
export const INVALID_PARAMS: number = -32602
export const INTERNAL_ERROR: number = -32603
export const SESSION_NOT_FOUND: number = -32001
/** Too much at once; the message names the limit. From the range that older servers use freely. */
export const BUSY: number = -32000
export const HEADER_MISMATCH: number = -32020
export const MISSING_CAPABILITY: number = -32021
export const UNSUPPORTED_VERSION: number = -32022

export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'
export const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities'
export const CLIENT_INFO_KEY = 'io.modelcontextprotocol/clientInfo'
export const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo'
export const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel'
export const SUBSCRIPTION_KEY = 'io.modelcontextprotocol/subscriptionId'

/** The versions that are served to clients which begin with `initialize`, newest first. */
export const SERVED_LEGACY_VERSIONS: readonly string[] = LEGACY_VERSIONS.filter((version) => version >= '2024-11-05')
/** The versions that are served to clients which state their version in every request. */
export const SERVED_MODERN_VERSIONS: readonly string[] = [MODERN_VERSION]
/** The only version whose clients may send several messages in one body. */
export const BATCH_VERSION = '2025-03-26'
/** From this version on an event stream begins with an event that has an id and no data. */
export const PRIMING_VERSION = '2025-11-25'

/** Severities of log messages, least severe first (RFC 5424). */
export const LOG_LEVELS: readonly string[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
]

/** Is this message severe enough for somebody who asked for `wanted`? Unknown severities pass only an unset filter. */
export function isLoggable(level: unknown, wanted: string | undefined): boolean {
  return wanted === undefined || LOG_LEVELS.indexOf(String(level)) >= LOG_LEVELS.indexOf(wanted)
}

/** Which parameter the `Mcp-Name` header repeats. */
export const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/** Methods of the legacy era that the modern one has no more. */
export const REMOVED_METHODS: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
])

/** Requests whose modern result carries `ttlMs` and `cacheScope`. */
export const CACHEABLE_METHODS: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
])

/** Requests that may be answered with a request for input. */
export const INPUT_METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** Requests for one named thing: "method not found" in their answers is about something that the thing itself needed. */
export const IN_BAND_METHODS: ReadonlySet<string> = new Set([...INPUT_METHODS, 'completion/complete'])
