// Serves a host as one MCP server, over HTTP or stdio, to clients of both eras.
export { createToken } from '@convoke/wire/server'
export { GATEWAY_ERROR_CODES, GatewayError, type GatewayErrorCode } from './errors.ts'
export { gatewayHandlers, parkingHandlers } from './host-handlers.ts'
export {
  type Gateway,
  type GatewayCounts,
  type GatewayHttpOptions,
  type GatewayLimits,
  type GatewayOptions,
  type GatewayStdioOptions,
  serveGateway,
} from './serve.ts'
