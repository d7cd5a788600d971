// Reads what a server asks: its limits, its shape, and what of it a server cannot say. Pure.
import { cleanJson, cleanText, isObject, type JsonObject, namesSecret, withoutReservedKeys } from '../base/index.ts'
import type { QuestionFacts } from './policy.ts'

/** Message, schema and context of one question, in bytes of JSON. */
export const QUESTION_BYTES_MAX: number = 256 * 1024
const URL_CHARS_MAX = 8_192
const ID_CHARS_MAX = 1_024

/** The marks by which the servers of one family say what an approval is about, or who is to give it: not theirs to set here. */
const FAMILY_MARK = /^codex[_/]/
const APPROVAL_MARK = 'codex_approval_kind'

/** What a question shows, without who asks and when. */
export interface QuestionContent {
  readonly mode: 'form' | 'url'
  readonly message: string
  readonly requestedSchema?: JsonObject
  readonly secretFields: readonly string[]
  readonly url?: string
  readonly elicitationId?: string
  readonly asksForApproval: boolean
}

/** A question as it was understood, or why it was not. */
export type ReadQuestion =
  | {
      readonly kind: 'question'
      readonly content: QuestionContent
      readonly facts: QuestionFacts
      /** The question without what a server cannot set, for whoever passes it on. */
      readonly params: JsonObject
    }
  | { readonly kind: 'refused'; readonly mode: 'form' | 'url'; readonly why: string }
  /** An address that nobody is to be sent to. */
  | { readonly kind: 'unsafe'; readonly mode: 'url' }

/** Reads the parameters of `elicitation/create`. One without a mode is a form. */
export function readQuestion(params: JsonObject): ReadQuestion {
  const { mode = 'form' } = params
  const refuse = (why: string): ReadQuestion => ({ kind: 'refused', mode: mode === 'url' ? 'url' : 'form', why })
  if (mode !== 'form' && mode !== 'url') return refuse('invalid elicitation mode')
  const tooLarge = sizeFault(params)
  if (tooLarge !== undefined) return refuse(tooLarge)
  if (typeof params['message'] !== 'string') return refuse('a question needs a message')
  const asksForApproval = isObject(params['_meta']) && params['_meta'][APPROVAL_MARK] !== undefined
  const common = { message: cleanText(params['message']).text, asksForApproval }
  const passed = withoutMarks(params)
  if (mode === 'url') {
    if (typeof params['url'] !== 'string') return refuse('a question of mode url needs an address')
    const address = readAddress(params['url'], params['elicitationId'])
    if (address === undefined) return { kind: 'unsafe', mode }
    const content: QuestionContent = { ...common, mode, secretFields: [], ...address }
    return { kind: 'question', content, params: passed, facts: { mode, fieldCount: 0, asksForApproval } }
  }
  const form = readForm(params['requestedSchema'])
  if (typeof form === 'string') return refuse(form)
  const { requestedSchema, fields } = form
  return {
    kind: 'question',
    content: { ...common, mode, requestedSchema, secretFields: fields.filter(namesSecret) },
    params: passed,
    facts: { mode, fieldCount: fields.length, asksForApproval },
  }
}

function sizeFault(params: JsonObject): string | undefined {
  try {
    cleanJson(params, { charsMax: QUESTION_BYTES_MAX })
  } catch (error) {
    return `a question is not ${(error as RangeError).message}`
  }
  const bytes = Buffer.byteLength(JSON.stringify(params))
  return bytes > QUESTION_BYTES_MAX ? `a question has at most ${QUESTION_BYTES_MAX} bytes` : undefined
}

/** The schema with its defaults, and the names it speaks of; or what is wrong with it. A form without a schema has no fields. */
function readForm(schema: unknown): { requestedSchema: JsonObject; fields: readonly string[] } | string {
  if (schema === undefined) return { requestedSchema: { type: 'object', properties: {} }, fields: [] }
  if (!isObject(schema)) return 'requestedSchema is an object'
  const { properties = {}, required = [] } = schema
  if (!isObject(properties) || !Object.values(properties).every(isObject)) return 'every property has a schema'
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string'))
    return 'required is a list of names'
  return {
    requestedSchema: cleanJson(schema).value,
    fields: [...new Set([...Object.keys(properties), ...(required as string[])])],
  }
}

/** Only what a browser may be sent to: `https`, or `http` on this machine, without credentials. */
function readAddress(url: string, elicitationId: unknown): { url: string; elicitationId?: string } | undefined {
  if (url.length > URL_CHARS_MAX || !URL.canParse(url)) return undefined
  const { protocol, hostname, username, password, href } = new URL(url)
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback)) return undefined
  if (username !== '' || password !== '') return undefined
  return {
    url: href,
    ...(typeof elicitationId === 'string'
      ? { elicitationId: cleanText(elicitationId).text.slice(0, ID_CHARS_MAX) }
      : {}),
  }
}

/** Progress tokens are between two neighbours, our own keys and the family's marks are not a server's to set; the rest stays. */
function withoutMarks(params: JsonObject): JsonObject {
  const { _meta: meta, ...rest } = params
  if (meta === undefined) return params
  if (!isObject(meta)) return rest
  const kept = Object.entries(withoutReservedKeys(meta)).filter(
    ([key]) => key !== 'progressToken' && !FAMILY_MARK.test(key),
  )
  return kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) }
}
