// The error object of a JSON-RPC answer, read from bytes that need not hold one.
import type { RpcError } from './protocol.ts'

export const METHOD_NOT_FOUND = -32601
/** The headers of a modern request do not say what its body says: list the tools again, then ask again. */
export const HEADER_MISMATCH = -32020

/** The `error` member, if these bytes are a JSON-RPC error answer. */
export function rpcErrorIn(body: Buffer): RpcError | undefined {
  let message: unknown
  try {
    message = JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
  const error = (message as { error?: unknown } | null)?.error as
    | Partial<Record<'code' | 'message' | 'data', unknown>>
    | null
    | undefined
  if (typeof error !== 'object' || error === null || typeof error.code !== 'number') return undefined
  return {
    code: error.code,
    message: typeof error.message === 'string' ? error.message : `Error ${error.code}`,
    ...(error.data === undefined ? {} : { data: error.data }),
  }
}
