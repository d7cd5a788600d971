// How failures travel between the application and the wire: as `WireError`s that carry the JSON-RPC error to answer with.
import { WireError } from '../errors.ts'
import type { RpcError } from '../protocol.ts'
import { INTERNAL_ERROR, METHOD_NOT_FOUND } from './rules.ts'

/** An error that is answered as this JSON-RPC error. */
export function rpcFailure(code: number, message: string, data?: unknown): WireError {
  return new WireError('remote', message, { rpc: { code, message, ...(data === undefined ? {} : { data }) } })
}

/** The client cannot be asked this. */
export function cannotAsk(method: string, why: string): WireError {
  return rpcFailure(METHOD_NOT_FOUND, `The client cannot be asked "${method}": ${why}`)
}

/** The call is over before it was answered. */
export function cancelledFailure(reason: string): WireError {
  return new WireError('cancelled', reason)
}

/** What the client is told of an error. What is not made for it says nothing about our insides. */
export function rpcErrorOf(error: unknown): RpcError {
  const rpc = error instanceof WireError ? error.details.rpc : undefined
  return rpc ?? { code: INTERNAL_ERROR, message: 'Internal error' }
}
