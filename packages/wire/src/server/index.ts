// The server half of the wire: one MCP endpoint over HTTP or a pipe, both eras. It parses, judges and frames; what is served is the application's.
export type { JsonObject, RpcError } from '../protocol.ts'
export { isLoopback } from './addresses.ts'
export type { Application, ServerDescription } from './application.ts'
export type { Client } from './client.ts'
export { unknownState } from './dispatcher.ts'
export { EndpointError, type EndpointErrorCode } from './endpoint-errors.ts'
export type { Exchange } from './exchange.ts'
export { cannotAsk, rpcErrorOf, rpcFailure } from './failures.ts'
export {
  type EndpointCounts,
  type EndpointPlatform,
  type HttpEndpoint,
  type HttpEndpointOptions,
  serveHttp,
} from './http-endpoint.ts'
export { checkLimit, DEFAULT_LIMITS, type EndpointLimits } from './limits.ts'
export type { Listener, ListenFilter } from './listener.ts'
export type { RequestId } from './message.ts'
export type { Reply } from './reply.ts'
export {
  BUSY,
  CAPABILITIES_KEY,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  isLoggable,
  LOG_LEVEL_KEY,
  LOG_LEVELS,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  MODERN_VERSION,
} from './rules.ts'
export { type StdioEndpoint, type StdioEndpointOptions, serveStdio } from './stdio-endpoint.ts'
export { type AccessToken, createToken, tokenFault } from './tokens.ts'
