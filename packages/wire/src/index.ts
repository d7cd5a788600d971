export { type RpcError, WireError, type WireErrorCode } from './errors.ts'
export type { Era, EraVerdict } from './handshake.ts'
export type { Authorization, HttpTarget } from './http.ts'
export type { JsonObject, RawAnswer, RequestOptions } from './peer.ts'
export {
  type ListOptions,
  type ServerRequestHandler,
  Session,
  type SessionOptions,
  type ToolListing,
} from './session.ts'
export type { StdioTarget } from './stdio.ts'
export type { Tool, ToolResult } from './validate.ts'
