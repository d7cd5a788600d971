// What a request of the modern era must carry: its version and capabilities in `_meta`, and over HTTP headers that repeat the body. Pure.
import type { JsonObject, RpcError } from '../protocol.ts'
import { isObject } from '../validate.ts'
import {
  CAPABILITIES_KEY,
  CLIENT_INFO_KEY,
  HEADER_MISMATCH,
  INVALID_PARAMS,
  LOG_LEVEL_KEY,
  LOG_LEVELS,
  NAMED_BY,
  SERVED_LEGACY_VERSIONS,
  SERVED_MODERN_VERSIONS,
  UNSUPPORTED_VERSION,
  VERSION_KEY,
} from './rules.ts'

/** The value of one header, by its lower-case name. */
export type HeaderOf = (name: string) => string | undefined

/** What a modern request says about its client. */
export interface Envelope {
  readonly version: string
  readonly capabilities: JsonObject
  readonly clientInfo: JsonObject
  readonly logLevel?: string
}

/** Which era a message belongs to: one that states a version in `_meta` is modern, and so is one whose header names a version that no legacy client has. */
export function eraOf(method: string, params: JsonObject, versionHeader: string | undefined): 'legacy' | 'modern' {
  if (isObject(params['_meta']) && params['_meta'][VERSION_KEY] !== undefined) return 'modern'
  if (method === 'initialize' || versionHeader === undefined) return 'legacy'
  return SERVED_MODERN_VERSIONS.includes(versionHeader) ? 'modern' : 'legacy'
}

/** Is this a version that a legacy client may name in its header? */
export function isLegacyVersion(version: string): boolean {
  return SERVED_LEGACY_VERSIONS.includes(version)
}

/** The envelope of a modern request, or why it is refused (with HTTP 400). */
export function readEnvelope(params: JsonObject): Envelope | { readonly error: RpcError } {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const version = meta[VERSION_KEY]
  if (typeof version !== 'string') return fault(INVALID_PARAMS, `Missing _meta["${VERSION_KEY}"]`)
  if (!SERVED_MODERN_VERSIONS.includes(version))
    return fault(UNSUPPORTED_VERSION, 'Unsupported protocol version', {
      supported: SERVED_MODERN_VERSIONS,
      requested: version,
    })
  const capabilities = meta[CAPABILITIES_KEY]
  if (!isObject(capabilities)) return fault(INVALID_PARAMS, `Missing _meta["${CAPABILITIES_KEY}"]`)
  const logLevel = meta[LOG_LEVEL_KEY]
  if (logLevel !== undefined && !LOG_LEVELS.includes(logLevel as string))
    return fault(INVALID_PARAMS, `Unknown log level: ${JSON.stringify(logLevel)}`)
  const clientInfo = meta[CLIENT_INFO_KEY]
  return {
    version,
    capabilities,
    clientInfo: isObject(clientInfo) ? clientInfo : {},
    ...(logLevel === undefined ? {} : { logLevel: logLevel as string }),
  }
}

function fault(code: number, message: string, data?: JsonObject): { readonly error: RpcError } {
  return { error: { code, message, ...(data === undefined ? {} : { data }) } }
}

/** Where the headers disagree with the body; undefined: nowhere. Only over HTTP. */
export function headerFault(method: string, params: JsonObject, header: HeaderOf): RpcError | undefined {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const version = meta[VERSION_KEY]
  // A request without a version is refused for that, not for its header.
  if (version !== undefined && header('mcp-protocol-version') !== version)
    return mismatch('MCP-Protocol-Version', header('mcp-protocol-version'))
  if (header('mcp-method') !== method) return mismatch('Mcp-Method', header('mcp-method'))
  const named = NAMED_BY.get(method)
  if (named === undefined || typeof params[named] !== 'string') return undefined
  const shown = decodeHeader(header('mcp-name'))
  return shown.kind === 'value' && shown.value === params[named] ? undefined : mismatch('Mcp-Name', header('mcp-name'))
}

/** The error for one header. */
export function mismatch(name: string, value: string | undefined): RpcError {
  return {
    code: HEADER_MISMATCH,
    message:
      value === undefined ? `Header mismatch: ${name} is missing` : `Header mismatch: ${name} differs from the body`,
  }
}

/** A header value that may be Base64 in its sentinel. */
export type DecodedHeader = { readonly kind: 'absent' | 'invalid' } | { readonly kind: 'value'; readonly value: string }

const SENTINEL = /^=\?base64\?(.*)\?=$/
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Undoes the Base64 sentinel; strict about its alphabet and padding. */
export function decodeHeader(value: string | undefined): DecodedHeader {
  if (value === undefined) return { kind: 'absent' }
  const encoded = SENTINEL.exec(value)?.[1]
  if (encoded === undefined) return /^[\t\x20-\x7e]*$/.test(value) ? { kind: 'value', value } : { kind: 'invalid' }
  if (!BASE64.test(encoded)) return { kind: 'invalid' }
  return { kind: 'value', value: Buffer.from(encoded, 'base64').toString('utf8') }
}
