// What a server asks back goes to the client whose call it is, and only as far as that client has said that it can answer.
import type { AskCallback, Host, JsonObject, RequestHandlers, ServerRequestContext } from '@convoke/host'
import { type Client, cannotAsk } from '@convoke/wire/server'
import { cleanValue } from './clean-values.ts'

/** How a question is put: `named` tells which server asks and cleans its text; `verbatim` changes nothing. */
export type Voice = 'named' | 'verbatim'

/** The trust of the host: what it decides about a question comes before any client. */
export type QuestionTrust = Pick<Host, 'judge' | 'leavesToPerson'>

/** What becomes of an elicitation that its client cannot be asked: it is declined, or stays open for `Host.answer`. */
export type Unanswered = 'decline' | 'park'

/** What happens to a question. Pure. */
export type AskDecision =
  | { readonly kind: 'ask' }
  | { readonly kind: 'answer'; readonly result: JsonObject }
  | { readonly kind: 'refuse'; readonly why: string }

/** Decides by what the client has declared: elicitation is declined, sampling refused, roots are none. */
export function decideAsk(capabilities: JsonObject, method: string, params: JsonObject): AskDecision {
  switch (method) {
    case 'elicitation/create':
      return canElicit(capabilities['elicitation'], params['mode'])
        ? { kind: 'ask' }
        : { kind: 'answer', result: declined(params['mode'] === 'url' ? 'it opens no URLs' : 'it shows no forms') }
    case 'sampling/createMessage':
      return decideSampling(capabilities['sampling'], params)
    case 'roots/list':
      return isObject(capabilities['roots']) ? { kind: 'ask' } : { kind: 'answer', result: { roots: [] } }
    default:
      return { kind: 'refuse', why: 'this is not passed on' }
  }
}

function canElicit(declared: unknown, mode: unknown): boolean {
  if (!isObject(declared)) return false
  if (mode === 'url') return isObject(declared['url'])
  // Before there were modes, an empty object meant forms.
  return isObject(declared['form']) || !isObject(declared['url'])
}

function declined(why: string): JsonObject {
  return { action: 'decline', _meta: { 'convoke/reason': `The client cannot be asked: ${why}` } }
}

function decideSampling(declared: unknown, params: JsonObject): AskDecision {
  if (!isObject(declared)) return { kind: 'refuse', why: 'it has not declared sampling' }
  if (params['tools'] !== undefined && !isObject(declared['tools']))
    return { kind: 'refuse', why: 'it samples without tools' }
  return { kind: 'ask' }
}

/** One client that a server may ask something. */
export interface Asked {
  /** Who asks, as the client reads it: `Server "files"`. */
  readonly who: string
  readonly client: Client
  readonly voice: Voice
  /** The call on whose stream it is asked, or the client itself. */
  readonly asker: Pick<Client, 'ask'>
  readonly unanswered: Unanswered
}

/** Answers one question of a server; undefined: it is to be parked. @throws {WireError} with the JSON-RPC error for the server */
export async function answerQuestion(
  asked: Asked,
  method: string,
  params: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const decision = decideAsk(asked.client.capabilities, method, params)
  if (decision.kind === 'answer')
    return method === 'elicitation/create' && asked.unanswered === 'park' ? undefined : decision.result
  if (decision.kind === 'refuse') throw cannotAsk(method, decision.why)
  const question = asked.voice === 'named' ? questionFrom(asked.who, method, params) : withoutToken(params)
  return asked.asker.ask(method, question, signal)
}

/** Handlers for what a server may ask, to be given to a connection or a call. */
export function handlersOf(
  handler: (params: JsonObject, context: ServerRequestContext) => Promise<JsonObject | undefined>,
): RequestHandlers & Record<string, AskCallback> {
  // The host gives these to its trust policy, which takes `undefined` as what it is: nobody can be shown the question.
  const given = handler as RequestHandlers[string]
  return { 'elicitation/create': given, 'sampling/createMessage': given, 'roots/list': given }
}

/** The question as the client reads it: who asks is said by us, from our configuration, not by the server. */
export function questionFrom(who: string, method: string, params: JsonObject): JsonObject {
  const clean = withoutToken(cleanValue(params) as JsonObject)
  if (method !== 'elicitation/create') return clean
  return { ...clean, message: `${who} asks: ${String(clean['message'] ?? '')}` }
}

/** Marks of an approval are not a server's to set, whoever reads them. */
const MARK = /^(convoke\/|codex[_/])/

/** Progress tokens are between two neighbours; a server can set no key of ours. */
export function withoutToken(params: JsonObject): JsonObject {
  const { _meta: meta, ...rest } = params
  if (!isObject(meta)) return rest
  const own = Object.entries(meta).filter(([key]) => key !== 'progressToken' && !MARK.test(key))
  return own.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(own) }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
