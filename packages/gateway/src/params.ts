// What goes up to a server of what a client has sent. Pure: the parts that are between the client and us stay here.
import type { JsonObject } from '@convoke/host'
import { LOG_LEVEL_KEY } from '@convoke/wire/server'

const OURS = 'convoke/'
const ENVELOPE = 'io.modelcontextprotocol/'
/** Of the envelope's namespace these are the client's own business with the server. */
const PASSED = new Set(['io.modelcontextprotocol/related-task', 'io.modelcontextprotocol/model-immediate-response'])

/** What a call looks like to its server. */
export interface UpstreamParams {
  readonly era: 'legacy' | 'modern'
  /** For a modern server: the least severe log messages that are wanted. */
  readonly logLevel: string | undefined
}

/** `params` with the client's envelope, progress token and our own keys taken out of `_meta`. */
export function upstreamParams(params: JsonObject, { era, logLevel }: UpstreamParams): JsonObject {
  const level = era === 'modern' && logLevel !== undefined ? { [LOG_LEVEL_KEY]: logLevel } : undefined
  if (params['_meta'] === undefined && level === undefined) return params
  const { _meta: meta, ...rest } = params
  const own = meta === undefined ? {} : upstreamMeta(meta as JsonObject)
  const whole = level === undefined ? own : { ...own, ...level }
  return Object.keys(whole).length === 0 ? rest : { ...rest, _meta: whole }
}

/** `_meta` for a server. */
export function upstreamMeta(meta: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => isPassed(key)))
}

function isPassed(key: string): boolean {
  if (key === 'progressToken' || key.startsWith(OURS)) return false
  return !key.startsWith(ENVELOPE) || PASSED.has(key)
}

/** A modern client's answers and state belong to its retry; an older client has none, whatever it writes there. */
export function withoutRounds(params: JsonObject): JsonObject {
  if (params['inputResponses'] === undefined && params['requestState'] === undefined) return params
  const { inputResponses: _, requestState: __, ...rest } = params
  return rest
}
