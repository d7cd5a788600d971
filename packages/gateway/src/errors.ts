// What a client reads when something went wrong behind the gateway, and what its operator reads when it cannot be opened.
import { cleanLine, HostError, type HostErrorCode, type JsonObject } from '@convoke/host'
import { INTERNAL_ERROR, INVALID_PARAMS, type RpcError, rpcErrorOf } from '@convoke/wire/server'

/** Stable codes of {@link GatewayError}. */
export const GATEWAY_ERROR_CODES = [
  'GATEWAY_OPTIONS_INVALID',
  'GATEWAY_TOKEN_REQUIRED',
  'GATEWAY_TOKEN_WEAK',
  'GATEWAY_ADDRESS_IN_USE',
  'GATEWAY_ADDRESS_UNAVAILABLE',
  'GATEWAY_SERVER_UNKNOWN',
] as const

/** One of {@link GATEWAY_ERROR_CODES}. */
export type GatewayErrorCode = (typeof GATEWAY_ERROR_CODES)[number]

/** Why a gateway could not be opened. Nothing is left listening then. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: GatewayErrorCode

  constructor(code: GatewayErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** Failures that are the caller's: what was asked for is not there, or not asked for in the right way. */
const OF_THE_CALLER: ReadonlySet<HostErrorCode> = new Set([
  'TOOL_UNKNOWN',
  'TOOL_DISABLED',
  'PROMPT_UNKNOWN',
  'RESOURCE_UNKNOWN',
  'RESOURCE_AMBIGUOUS',
  'ARGUMENTS_INVALID',
])
const RESOURCE_NOT_FOUND = -32002
const MESSAGE_CHARS_MAX = 500
/** The details that a client can act on. Others may tell of the operator's machine. */
const SHOWN_DETAILS = ['server', 'servers', 'uri', 'near', 'limitMs'] as const

/** The JSON-RPC error for whatever was thrown. The message names the server; a server's own code and data are kept. */
export function clientError(error: unknown, era: 'legacy' | 'modern'): RpcError {
  if (!HostError.is(error)) return rpcErrorOf(error)
  const rpc = error.details['rpc'] as RpcError | undefined
  const message = cleanLine(error.message, MESSAGE_CHARS_MAX)
  if (error.code === 'SERVER_ERROR' && rpc !== undefined) return { ...rpc, message }
  const code = !OF_THE_CALLER.has(error.code)
    ? INTERNAL_ERROR
    : error.code === 'RESOURCE_UNKNOWN' && era === 'legacy'
      ? RESOURCE_NOT_FOUND
      : INVALID_PARAMS
  return { code, message, data: { code: error.code, ...shownDetails(error.details) } }
}

function shownDetails(details: JsonObject): JsonObject {
  return Object.fromEntries(SHOWN_DETAILS.filter((key) => details[key] !== undefined).map((key) => [key, details[key]]))
}

/** An error that a server answered with, as the client reads it: cleaned, and under the server's name. */
export function serverError(server: string, error: RpcError): RpcError {
  return { ...error, message: cleanLine(`Server "${server}": ${error.message}`, MESSAGE_CHARS_MAX) }
}
