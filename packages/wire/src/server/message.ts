// From the bytes of a body or a line to messages whose shape is known. Parsed once, strictly; what is sent on is made from the parsed form.
import type * as NodeBuffer from 'node:buffer'
import type { JsonObject, RpcError } from '../protocol.ts'
import { isObject } from '../validate.ts'
import { isExactNumber } from './exact-number.ts'
import type { EndpointLimits } from './limits.ts'
import { INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR } from './rules.ts'
import { scanStructure } from './structure.ts'

/** A request id. Numbers are whole and exact. */
export type RequestId = string | number

/** One message of a client. */
export type ClientMessage =
  | { readonly kind: 'request'; readonly id: RequestId; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'response'; readonly id: RequestId; readonly result?: JsonObject; readonly error?: RpcError }
  /** `id` is there when it could be read. */
  | { readonly kind: 'invalid'; readonly id?: RequestId; readonly code: number; readonly reason: string }

/** What a body holds. */
export type Body =
  | { readonly kind: 'one'; readonly message: ClientMessage }
  | { readonly kind: 'batch'; readonly messages: readonly ClientMessage[] }

export type MessageLimits = Pick<EndpointLimits, 'depthMax' | 'membersMax' | 'batchMessagesMax' | 'idCharsMax'>

const { isUtf8 } = process.getBuiltinModule('node:buffer') as typeof NodeBuffer
const METHOD_CHARS_MAX = 256

/** Reads a body. Never throws. */
export function readBody(bytes: Buffer, limits: MessageLimits): Body {
  const { fault, lossy } = scanStructure(bytes, limits)
  if (fault !== undefined) return invalidBody(INVALID_REQUEST, `The request is refused: ${fault}`)
  let value: unknown
  try {
    if (!isUtf8(bytes)) return invalidBody(PARSE_ERROR, 'The body is not UTF-8')
    value = parse(bytes.toString('utf8'), lossy)
  } catch {
    return invalidBody(PARSE_ERROR, 'The body is not JSON')
  }
  if (!Array.isArray(value)) return { kind: 'one', message: readMessage(value, limits) }
  if (value.length === 0) return invalidBody(INVALID_REQUEST, 'The batch is empty')
  if (value.length > limits.batchMessagesMax)
    return invalidBody(INVALID_REQUEST, `The batch has more than ${limits.batchMessagesMax} messages`)
  return { kind: 'batch', messages: value.map((one) => readMessage(one, limits)) }
}

function invalidBody(code: number, reason: string): Body {
  return { kind: 'one', message: { kind: 'invalid', code, reason } }
}

/** Numbers that a double would change are kept as their text, and written as it. */
function parse(text: string, lossy: boolean): unknown {
  if (!lossy) return JSON.parse(text)
  const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }
  const reviver = (_key: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' && context?.source !== undefined && !isExactNumber(context.source)
      ? rawJSON(context.source)
      : value
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown)
}

function readMessage(value: unknown, limits: MessageLimits): ClientMessage {
  if (!isObject(value)) return invalid(undefined, 'A message must be an object')
  const { id, method, params } = value
  const known = isRequestId(id, limits.idCharsMax) ? id : undefined
  if (value['jsonrpc'] !== '2.0') return invalid(known, '"jsonrpc" must be "2.0"')
  if (id !== undefined && known === undefined)
    return invalid(undefined, `"id" must be a whole number or a string of at most ${limits.idCharsMax} characters`)
  if (method === undefined) return readResponse(known, value)
  if (typeof method !== 'string' || method.length > METHOD_CHARS_MAX)
    return invalid(known, '"method" must be a short string')
  if (params !== undefined && !isObject(params))
    return { ...invalid(known, '"params" must be an object'), code: INVALID_PARAMS }
  return known === undefined
    ? { kind: 'notification', method, params: params ?? {} }
    : { kind: 'request', id: known, method, params: params ?? {} }
}

function readResponse(id: RequestId | undefined, { result, error }: JsonObject): ClientMessage {
  if (id === undefined) return invalid(undefined, 'Neither a request nor a response')
  if (isObject(error) && typeof error['code'] === 'number')
    return { kind: 'response', id, error: { ...error, code: error['code'], message: String(error['message']) } }
  return isObject(result) ? { kind: 'response', id, result } : invalid(id, 'A response must have a result or an error')
}

function invalid(id: RequestId | undefined, reason: string): ClientMessage & { kind: 'invalid' } {
  return { kind: 'invalid', code: INVALID_REQUEST, reason, ...(id === undefined ? {} : { id }) }
}

/** Is this a request id, or a progress token, that can be sent back as it is? */
export function isRequestId(value: unknown, charsMax: number): value is RequestId {
  return typeof value === 'string' ? value.length <= charsMax : Number.isSafeInteger(value)
}
