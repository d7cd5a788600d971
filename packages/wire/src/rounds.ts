// Requests of the modern era that need more than one round: the server answers "input required", the handlers give it, the request goes out again.
import type { Call, CallContext, RequestOptions, ServerRequestHandler } from './call.ts'
import { WireError } from './errors.ts'
import { methodNotFound, type Peer } from './peer.ts'
import type { JsonObject } from './protocol.ts'
import { isObject } from './validate.ts'

const ROUNDS_MAX = 10

export interface Handlers {
  handlers?: Readonly<Record<string, ServerRequestHandler>>
}

interface Asked {
  method: string
  params: JsonObject
  options: RequestOptions
}

export async function requestInRounds(
  peer: Peer,
  session: Handlers,
  { method, params, options }: Asked,
): Promise<JsonObject> {
  let asked = params
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const answer = peer.request(method, asked, options)
    const call: CallContext = { id: peer.startedId, method, params: asked }
    const result = await answer
    const type = result['resultType']
    if (type === undefined || type === 'complete') return result
    if (type !== 'input_required')
      throw new WireError('malformed', `The answer to "${method}" is of the unknown type "${String(type)}"`)
    const { inputRequests = {}, requestState } = result
    const answers = await answerAll(session, options, inputRequests as JsonObject, call)
    asked = {
      ...params,
      ...(answers.length > 0 ? { inputResponses: Object.fromEntries(answers) } : {}),
      ...(requestState === undefined ? {} : { requestState }),
    }
  }
  throw new WireError('too-many-rounds', `"${method}" asked for input ${ROUNDS_MAX} times`)
}

function answerAll(
  session: Handlers,
  options: RequestOptions,
  inputRequests: JsonObject,
  call: CallContext,
): Promise<[string, JsonObject][]> {
  const signal = options.signal ?? new AbortController().signal
  return Promise.all(
    Object.entries(inputRequests).map(async ([key, wanted]) => {
      const { method, params } = isObject(wanted) ? wanted : {}
      return [
        key,
        await answerServer(session, String(method), isObject(params) ? params : {}, {
          signal,
          call,
          own: options.handlers,
        }),
      ]
    }),
  )
}

/** Finds who answers: the call's own handlers come before the session's. */
export async function answerServer(
  { handlers }: Handlers,
  method: string,
  params: JsonObject,
  context: { signal: AbortSignal; call: Call | CallContext | undefined; own?: Handlers['handlers'] },
): Promise<JsonObject> {
  const { signal, call } = context
  const own = context.own ?? (call !== undefined && 'options' in call ? call.options.handlers : undefined)
  const handler = handlerIn(own, method) ?? handlerIn(handlers, method)
  if (handler === undefined) throw methodNotFound(method)
  return handler(params, { method, signal, ...(call === undefined ? {} : { call }) })
}

function handlerIn(handlers: Handlers['handlers'], method: string): ServerRequestHandler | undefined {
  return handlers !== undefined && Object.hasOwn(handlers, method) ? handlers[method] : undefined
}
