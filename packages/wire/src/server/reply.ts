// Answers, from what the application says to the text and bytes that leave. A result that came as bytes leaves as those bytes; only the envelope is ours.
import type { JsonObject, RpcError } from '../protocol.ts'
import type { RequestId } from './message.ts'
import { HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY, UNSUPPORTED_VERSION } from './rules.ts'

/** What a request is answered with. */
export type Reply =
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** A result object as JSON text in UTF-8. `typed`: it has a `resultType` of its own, or needs none. */
  | { readonly kind: 'result-bytes'; readonly body: Buffer; readonly typed: boolean }
  /** `status`: the HTTP status, if it is not the one that the code implies. */
  | { readonly kind: 'error'; readonly error: RpcError; readonly status?: number }

/** An answer on its way out. The whole is `head`, or, where there is a `tail`, `head` + `tail` + `}`: the bytes in the middle are never copied here. */
export interface FramedReply {
  readonly status: number
  readonly head: string
  readonly tail?: Buffer
  /** There are line breaks in `head`. */
  readonly hasLines?: boolean
}

/** How an answer depends on the request. */
export interface FrameContext {
  readonly era: 'legacy' | 'modern'
  /** A modern result of this method carries caching hints. */
  readonly cacheable: boolean
  /** Modern: "method not found" is about this method, not about something deeper that a tool or prompt met. */
  readonly ownMethod?: boolean
}

/** Results up to this size are parsed before they leave, which proves them well-formed; larger ones were walked by the reader that received them. */
const PARSED_BYTES_MAX = 16 * 1024
const CLOSE_OBJECT = 125
const HINTS = '"ttlMs":0,"cacheScope":"private"'

/** Puts the envelope around an answer. @throws {SyntaxError} for bytes that are no JSON. */
export function frame(id: RequestId, reply: Reply, context: FrameContext): FramedReply {
  const start = `{"jsonrpc":"2.0","id":${typeof id === 'number' ? id : JSON.stringify(id)},`
  switch (reply.kind) {
    case 'error':
      return {
        status: reply.status ?? statusOf(reply.error.code, context),
        head: `${start}"error":${JSON.stringify(reply.error)}}`,
      }
    case 'result':
      return { status: 200, head: `${start}"result":${JSON.stringify(complete(reply.result, context))}}` }
    case 'result-bytes':
      return frameBytes(start, reply, context)
    default:
      return unreachable(reply)
  }
}

function frameBytes(
  start: string,
  { body, typed }: Reply & { kind: 'result-bytes' },
  { era, cacheable }: FrameContext,
): FramedReply {
  const members =
    era === 'legacy' || typed
      ? ''
      : `"resultType":"complete"${cacheable ? `,${HINTS}` : ''}${hasMembers(body) ? ',' : ''}`
  const head = `${start}"result":${members === '' ? '' : `{${members}`}`
  if (body.length > PARSED_BYTES_MAX) return { status: 200, head, tail: members === '' ? body : body.subarray(1) }
  const text = body.toString('utf8')
  JSON.parse(text)
  const line = text.includes('\n') || text.includes('\r')
  return { status: 200, head: `${head}${members === '' ? text : text.slice(1)}}`, ...(line ? { hasLines: true } : {}) }
}

function hasMembers(body: Buffer): boolean {
  let at = 1
  while (at < body.length && (body[at] as number) <= 32) at++
  return body[at] !== CLOSE_OBJECT
}

/** A modern result says of which type it is, and how long it may be kept. What it says already stays. */
function complete(result: JsonObject, { era, cacheable }: FrameContext): JsonObject {
  if (era === 'legacy' || ('resultType' in result && !cacheable)) return result
  const hints =
    cacheable && (result['resultType'] ?? 'complete') === 'complete' ? { ttlMs: 0, cacheScope: 'private' } : {}
  return { resultType: 'complete', ...hints, ...result }
}

/** The HTTP status that goes with an error. In the legacy era errors are answers like others. */
function statusOf(code: number, { era, ownMethod = true }: FrameContext): number {
  if (era === 'legacy') return 200
  if (code === METHOD_NOT_FOUND) return ownMethod ? 404 : 200
  return code === HEADER_MISMATCH || code === MISSING_CAPABILITY || code === UNSUPPORTED_VERSION ? 400 : 200
}

/** The answer as one text without line breaks, for event streams and pipes. */
export function oneLine({ head, tail, hasLines }: FramedReply): string {
  if (tail === undefined) return hasLines === true ? JSON.stringify(JSON.parse(head)) : head
  const text = `${head}${tail.toString('utf8')}}`
  return tail.includes(10) || tail.includes(13) ? JSON.stringify(JSON.parse(text)) : text
}

/** A message that is no answer. */
export function notificationText(method: string, params: JsonObject): string {
  return `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`
}

/** A request of ours to the client. */
export function requestText(id: RequestId, method: string, params: JsonObject): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`
}

/** An error that belongs to no request. */
export function errorText(code: number, message: string, id?: RequestId): string {
  return JSON.stringify({ jsonrpc: '2.0', ...(id === undefined ? {} : { id }), error: { code, message } })
}

function unreachable(value: never): never {
  throw new TypeError(`unhandled reply: ${JSON.stringify(value)}`)
}
