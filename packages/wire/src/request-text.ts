// A request as the text that goes over the wire.
import type { Call } from './call.ts'
import type { JsonObject } from './protocol.ts'

/** `_meta` members that every request of the modern era carries, as JSON text without braces; depends on the capabilities of the one request. */
export type RequestMeta = (capabilities: JsonObject | undefined) => string

/** @throws {TypeError} for parameters that are no JSON. */
export function requestText(call: Call, requestMeta: RequestMeta | undefined): string {
  const { onProgress, totalTimeoutMs, capabilities } = call.options
  let meta = requestMeta?.(capabilities) ?? ''
  // A server reports progress only where a token asks for it, and a long call lives by its reports.
  if (onProgress !== undefined || totalTimeoutMs !== undefined)
    meta = meta === '' ? `"progressToken":${call.id}` : `${meta},"progressToken":${call.id}`
  let { params } = call
  if (params['_meta'] !== undefined) {
    params = withMeta(params, meta)
    meta = ''
  }
  let body = JSON.stringify(params)
  if (meta !== '') body = body === '{}' ? `{"_meta":{${meta}}}` : `{"_meta":{${meta}},${body.slice(1)}`
  return `{"jsonrpc":"2.0","id":${call.id},"method":${JSON.stringify(call.method)},"params":${body}}`
}

/** Rare: the caller brings members of its own. Ours win, and a token of a foreign counter must not be mistaken for one of ours. */
function withMeta(params: JsonObject, meta: string): JsonObject {
  const { progressToken: _, ...own } = params['_meta'] as JsonObject
  return { ...params, _meta: { ...own, ...(JSON.parse(`{${meta}}`) as JsonObject) } }
}
