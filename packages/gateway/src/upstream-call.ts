// One request of a client, carried to one server: in either era on either side, with what comes back before the answer.
import { cleanLine, type JsonObject, type RawAnswer, type RequestOptions } from '@convoke/host'
import {
  cannotAsk,
  type Exchange,
  INVALID_PARAMS,
  type Reply,
  type RpcError,
  rpcFailure,
  unknownState,
} from '@convoke/wire/server'
import {
  answerQuestion,
  handlersOf,
  isObject,
  type QuestionTrust,
  questionFrom,
  type Unanswered,
  type Voice,
  withoutToken,
} from './asks.ts'
import { cleanProgress } from './clean-values.ts'
import { serverError } from './errors.ts'
import { upstreamParams, withoutRounds } from './params.ts'

/** The server that a request goes to. */
export interface Upstream {
  readonly server: string
  readonly era: 'legacy' | 'modern'
  /** One request of the method that was asked for; the answer as bytes. */
  send(params: JsonObject, options: RequestOptions): Promise<RawAnswer>
}

/** How requests are carried. */
export interface Carriage {
  readonly voice: Voice
  readonly trust: QuestionTrust
  readonly unanswered: Unanswered
  /** Who asks, where it is not known which server it will be. */
  readonly who?: string
  /** A log message that belongs to this request. */
  onLog(exchange: Exchange, server: string, params: JsonObject): void
  /** The server has asked something back. */
  onAsked?(server: string): void
  /** Requests to this server may wait for others: they need a way to be called off before they are sent. */
  isQueued?(server: string): boolean
}

const ROUNDS_MAX = 16
const INPUT_REQUIRED = '"input_required"'

/** Carries a request and gives its answer. Rejects as the server's connection does: `clientError` tells it. */
export function carry(exchange: Exchange, upstream: Upstream, params: JsonObject, carriage: Carriage): Promise<Reply> {
  return exchange.client.era === 'legacy' || upstream.era === 'legacy'
    ? carryByAsking(exchange, upstream, params, { carriage })
    : carryRounds(exchange, upstream, params, carriage)
}

/** Modern on both sides: rounds go through, and nothing is kept between them. */
async function carryRounds(
  exchange: Exchange,
  upstream: Upstream,
  params: JsonObject,
  carriage: Carriage,
): Promise<Reply> {
  const { server } = upstream
  const { requestState, ...rest } = params
  const own = requestState === undefined ? undefined : exchange.openState()
  if (requestState !== undefined && own?.['server'] !== server) return unknownState()
  const state = own?.['state']
  const answer = await sendOnce(
    exchange,
    upstream,
    state === undefined ? rest : { ...rest, requestState: state },
    carriage,
  )
  const asked = inputRequired(answer)
  if (asked === undefined) return replyFrom(upstream, answer, carriage.voice)
  if (!isLeftToPerson(server, asked, carriage.trust))
    return carryByAsking(exchange, upstream, rest, { carriage, first: answer })
  return { kind: 'result', result: relayed(exchange, server, asked, carriage.voice) }
}

/** Nothing of what is asked is for the host to decide: all of it can be handed on as it is. */
function isLeftToPerson(server: string, { inputRequests }: JsonObject, trust: QuestionTrust): boolean {
  return Object.values(isObject(inputRequests) ? inputRequests : {}).every((request) => {
    const { method, params } = isObject(request) ? request : {}
    return method !== 'elicitation/create' || trust.leavesToPerson(server, isObject(params) ? params : {})
  })
}

/** The questions go on; the server's state comes back only to that server, for that client and request. */
function relayed(exchange: Exchange, server: string, asked: JsonObject, voice: Voice): JsonObject {
  const { requestState, inputRequests } = asked
  return {
    ...asked,
    ...(isObject(inputRequests) ? { inputRequests: handedOn(server, inputRequests, voice) } : {}),
    ...(requestState === undefined ? {} : { requestState: exchange.sealState({ server, state: requestState }) }),
  }
}

function handedOn(server: string, inputRequests: JsonObject, voice: Voice): JsonObject {
  const entries = Object.entries(inputRequests).map(([key, request]) => {
    const { method, params } = isObject(request) ? request : {}
    if (!isObject(request) || !isObject(params)) return [key, request]
    const question = voice === 'named' ? questionFrom(called(server), String(method), params) : withoutToken(params)
    return [key, { ...request, params: question }]
  })
  return Object.fromEntries(entries) as JsonObject
}

/** One side is older: whoever asks is answered by asking the client on the call's stream, or by letting it come back. */
async function carryByAsking(
  exchange: Exchange,
  upstream: Upstream,
  params: JsonObject,
  { carriage, first }: { readonly carriage: Carriage; readonly first?: RawAnswer },
): Promise<Reply> {
  const bare = withoutRounds(params)
  // A state here is not that of a parked call, and nobody else's of ours either.
  if (exchange.client.era === 'modern' && params['requestState'] !== undefined) return unknownState()
  let asked = bare
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const answer = round === 0 && first !== undefined ? first : await sendOnce(exchange, upstream, asked, carriage)
    const wanted = upstream.era === 'modern' ? inputRequired(answer) : undefined
    if (wanted === undefined) return replyFrom(upstream, answer, carriage.voice)
    const { requestState } = wanted
    asked = {
      ...bare,
      inputResponses: await answersTo(exchange, upstream.server, wanted, carriage),
      ...(requestState === undefined ? {} : { requestState }),
    }
  }
  throw rpcFailure(INVALID_PARAMS, `Server "${upstream.server}" asked for input ${ROUNDS_MAX} times`)
}

async function answersTo(
  exchange: Exchange,
  server: string,
  { inputRequests }: JsonObject,
  carriage: Carriage,
): Promise<JsonObject> {
  const signal = signalOf(exchange)
  const judged = carriage.trust.judge(
    server,
    handlersOf((params, { method }) => answer(exchange, server, { method, params }, { carriage, signal })),
  )
  const answers = Object.entries(isObject(inputRequests) ? inputRequests : {}).map(async ([key, request]) => {
    const { method, params } = isObject(request) ? request : {}
    const name = String(method)
    const handler = Object.hasOwn(judged, name) ? judged[name] : undefined
    if (handler === undefined) throw cannotAsk(name, 'this is not passed on')
    return [key, await handler(isObject(params) ? params : {}, { method: name, signal })] as const
  })
  return Object.fromEntries(await Promise.all(answers))
}

function answer(
  exchange: Exchange,
  server: string,
  { method, params }: { readonly method: string; readonly params: JsonObject },
  { carriage, signal }: { readonly carriage: Carriage; readonly signal: AbortSignal },
): Promise<JsonObject | undefined> {
  carriage.onAsked?.(server)
  const who = carriage.who ?? called(server)
  return answerQuestion(
    { who, client: exchange.client, voice: carriage.voice, asker: exchange, unanswered: carriage.unanswered },
    method,
    params,
    signal,
  )
}

function sendOnce(exchange: Exchange, upstream: Upstream, params: JsonObject, carriage: Carriage): Promise<RawAnswer> {
  const { era } = upstream
  const sent = upstreamParams(params, { era, logLevel: exchange.logLevel })
  return upstream.send(sent, requestOptions(exchange, upstream, carriage))
}

const names = new Map<string, string>()
const NAMES_MAX = 1_024

/** A server as clients read of it. */
export function called(server: string): string {
  let name = names.get(server)
  if (name !== undefined) return name
  name = `Server "${cleanLine(server, 128)}"`
  if (names.size < NAMES_MAX) names.set(server, name)
  return name
}

/** How the call is watched. Only what this client can use is asked for. */
export function requestOptions(
  exchange: Exchange,
  { server, era }: Pick<Upstream, 'server' | 'era'>,
  carriage: Carriage,
): RequestOptions {
  const options: RequestOptions = {
    onStarted: (cancel) => exchange.whenCancelled(cancel),
    handlers: handlersOf((params, { method, signal }) =>
      answer(exchange, server, { method, params }, { carriage, signal }),
    ),
    onNotification: (method, params) => {
      if (method === 'notifications/message') carriage.onLog(exchange, server, params)
    },
  }
  if (exchange.wantsProgress)
    options.onProgress =
      carriage.voice === 'named'
        ? (progress) => exchange.progress(cleanProgress(progress))
        : (progress) => exchange.progress(progress)
  if (era === 'modern') options.capabilities = exchange.client.capabilities
  if (carriage.isQueued?.(server) === true) options.signal = signalOf(exchange)
  return options
}

/** Costs more than a callback, so only for calls that may have to be called off while they wait. */
export function signalOf(exchange: Exchange): AbortSignal {
  const controller = new AbortController()
  exchange.whenCancelled((reason) => controller.abort(reason))
  return controller.signal
}

/** The result that asks for input; undefined for every other answer. */
function inputRequired({ kind, typed, body }: RawAnswer): JsonObject | undefined {
  if (kind !== 'result' || !typed || !body.includes(INPUT_REQUIRED)) return undefined
  const result: unknown = JSON.parse(body.toString('utf8'))
  return isObject(result) && result['resultType'] === 'input_required' ? result : undefined
}

/** The answer for the client. Results stay bytes. */
export function replyFrom({ server }: Pick<Upstream, 'server'>, { kind, body, typed }: RawAnswer, voice: Voice): Reply {
  if (kind === 'result') return { kind: 'result-bytes', body, typed }
  const error = JSON.parse(body.toString('utf8')) as RpcError
  return { kind: 'error', error: voice === 'named' ? serverError(server, error) : error }
}
