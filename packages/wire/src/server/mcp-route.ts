// The MCP endpoint of an HTTP server: both eras behind one path. What passes here has been admitted by the door.
import type { IncomingMessage } from 'node:http'
import { type BodyBudget, receiveBody, refuse } from './body.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { ReplayBudget } from './event-log.ts'
import { EventWriter } from './event-writer.ts'
import type { ParameterFault } from './exchange.ts'
import { rpcErrorOf } from './failures.ts'
import { initializeResult, readInitialize } from './handshake.ts'
import { type AnswerPlace, type AnswerServices, HttpAnswer, type Owner } from './http-answer.ts'
import { LegacyBatch } from './http-batch.ts'
import { HttpSession } from './legacy-session.ts'
import { type ClientMessage, readBody } from './message.ts'
import { ModernClient } from './modern-client.ts'
import { eraOf, type HeaderOf, headerFault, isLegacyVersion, readEnvelope } from './modern-rules.ts'
import type { OutputBudget } from './output-budget.ts'
import { paramHeaderFault } from './param-headers.ts'
import { errorText, frame } from './reply.ts'
import { BATCH_VERSION, BUSY, INVALID_REQUEST, SESSION_NOT_FOUND } from './rules.ts'
import type { SessionStore } from './session-store.ts'

/** What all requests of an endpoint share. */
export interface RouteServices {
  readonly dispatcher: Dispatcher
  readonly sessions: SessionStore
  readonly bodies: BodyBudget
  readonly replay: ReplayBudget
  readonly output: OutputBudget
  readonly now: () => number
  readonly newSessionId: () => string
}

/** One admitted HTTP request. */
export interface Visit extends AnswerPlace {
  readonly principal: string
}

type Request = ClientMessage & { kind: 'request' }

export class McpRoute {
  readonly #services: RouteServices
  readonly #answerServices: AnswerServices
  /** Answers that are not complete. */
  readonly #answers = new Set<HttpAnswer>()
  /** GET streams. */
  readonly #readers = new Set<EventWriter>()
  #onIdle: (() => void) | undefined

  constructor(services: RouteServices) {
    this.#services = services
    const { dispatcher, output, now } = services
    this.#answerServices = { limits: dispatcher.limits, output, now, over: (answer) => this.#over(answer) }
  }

  #over(answer: HttpAnswer): void {
    this.#answers.delete(answer)
    if (answer.requestId !== undefined) answer.session?.inFlight.delete(answer.requestId)
    if (this.#answers.size === 0) this.#onIdle?.()
  }

  /** Requests that wait for their answer. */
  get callCount(): number {
    return this.#answers.size
  }

  post(visit: Visit): void {
    receiveBody(visit.request, this.#services.bodies, {
      refused: (refusal) => refuse(visit.request, visit.response, refusal),
      body: (bytes) => this.#read(bytes, visit),
    })
  }

  #read(bytes: Buffer, visit: Visit): void {
    const body = readBody(bytes, this.#services.dispatcher.limits)
    if (body.kind === 'batch') return this.#batch(body.messages, visit)
    const { message } = body
    switch (message.kind) {
      case 'request':
        return this.#request(message, visit)
      case 'notification':
        return this.#notification(message, visit)
      case 'response':
        return this.#response(message, visit)
      case 'invalid':
        return write(visit, 400, errorText(message.code, message.reason, message.id))
    }
  }

  #request(message: Request, visit: Visit): void {
    const era = eraOf(message.method, message.params, versionOf(visit))
    if (this.#answers.size >= this.#services.dispatcher.limits.callsMax)
      return write(
        visit,
        429,
        errorText(BUSY, `More than ${this.#services.dispatcher.limits.callsMax} requests at once`, message.id),
      )
    if (era === 'modern') this.#modern(message, visit, headerOf(visit.request))
    else if (message.method === 'initialize') void this.#initialize(message, visit)
    else this.#legacy(message, visit)
  }

  #modern(message: Request, visit: Visit, header: HeaderOf): void {
    const { id, method, params } = message
    const { dispatcher } = this.#services
    const fault = headerFault(method, params, header)
    if (fault !== undefined) return write(visit, 400, errorOf(fault, id))
    const envelope = readEnvelope(params)
    if ('error' in envelope) return write(visit, 400, errorOf(envelope.error, id))
    const client = new ModernClient(envelope, visit.principal)
    const schema =
      method === 'tools/call' ? dispatcher.application.inputSchema?.(String(params['name']), client) : undefined
    const parameterFault: ParameterFault = (late) => paramHeaderFault(late, params, header)
    const paramFault = schema === undefined ? undefined : parameterFault(schema)
    if (paramFault !== undefined) return write(visit, 400, errorOf(paramFault, id))
    const answer = this.#open(visit, undefined, 1)
    const own = method === 'tools/call' && schema === undefined ? { parameterFault } : {}
    answer.owner = dispatcher.begin({ client, id, method, params, outlet: answer, ...own })
  }

  #legacy(message: Request, visit: Visit): void {
    const session = this.#session(visit)
    if (session === undefined) return
    const { id, method, params } = message
    const { callsPerSessionMax } = this.#services.dispatcher.limits
    if (session.inFlight.has(id))
      return write(visit, 400, errorText(INVALID_REQUEST, 'A request with this id is still open', id))
    if (session.inFlight.size >= callsPerSessionMax)
      return write(visit, 429, errorText(BUSY, `More than ${callsPerSessionMax} requests of one session at once`, id))
    const answer = this.#open(visit, session, 1)
    const exchange = this.#services.dispatcher.begin({
      client: session,
      legacy: session,
      id,
      method,
      params,
      outlet: answer,
    })
    if (exchange.isOver) return
    answer.owner = exchange
    answer.requestId = id
    session.inFlight.set(id, exchange)
  }

  #open(visit: Visit, session: HttpSession | undefined, count: number): HttpAnswer {
    const answer = new HttpAnswer(this.#answerServices, visit, session, count)
    this.#answers.add(answer)
    return answer
  }

  /** The session that the request belongs to. Undefined: it has been refused. */
  #session(visit: Visit): HttpSession | undefined {
    const { headers } = visit.request
    const version = versionOf(visit)
    if (version !== undefined && !isLegacyVersion(version))
      return void write(visit, 400, errorText(INVALID_REQUEST, 'Unsupported protocol version'))
    const id = headers['mcp-session-id'] as string | undefined
    if (id === undefined)
      return void write(
        visit,
        400,
        errorText(INVALID_REQUEST, 'No session: begin with "initialize", or state the protocol version in _meta'),
      )
    const session = this.#services.sessions.find(id, visit.principal, this.#services.now())
    if (session === undefined) return void write(visit, 404, errorText(SESSION_NOT_FOUND, 'Session not found'))
    return session
  }

  /** Never rejects. */
  async #initialize({ id, params }: Request, visit: Visit): Promise<void> {
    const { sessions, dispatcher, now, newSessionId, replay } = this.#services
    const address = visit.request.socket.remoteAddress ?? ''
    const full = sessions.fullFor(address)
    if (full !== undefined) return write(visit, 429, errorText(BUSY, full, id))
    const session = new HttpSession(
      { ...readInitialize(params), principal: visit.principal, now, limits: dispatcher.limits },
      { id: newSessionId(), address, budget: replay },
    )
    sessions.add(session)
    const named = { ...visit, extraHeaders: [...visit.extraHeaders, 'mcp-session-id', session.id] }
    const answer = this.#open(named, undefined, 1)
    const owner: Owner = { cancel: (reason) => sessions.close(session, reason) }
    answer.owner = owner
    try {
      const result = await initializeResult(dispatcher.application, session)
      answer.answer(frame(id, { kind: 'result', result }, { era: 'legacy', cacheable: false }))
    } catch (error) {
      sessions.close(session, 'The handshake failed')
      answer.answer(frame(id, { kind: 'error', error: rpcErrorOf(error) }, { era: 'legacy', cacheable: false }))
    }
  }

  #notification({ method, params }: ClientMessage & { kind: 'notification' }, visit: Visit): void {
    // The modern era has no notifications over HTTP; they are taken and mean nothing.
    if (eraOf(method, params, versionOf(visit)) === 'modern') return write(visit, 202)
    const session = this.#session(visit)
    if (session === undefined) return
    this.#services.dispatcher.tell(session, method, params)
    write(visit, 202)
  }

  #response(message: ClientMessage & { kind: 'response' }, visit: Visit): void {
    const session = this.#session(visit)
    if (session === undefined) return
    session.questions.answer(message)
    write(visit, 202)
  }

  #batch(messages: readonly ClientMessage[], visit: Visit): void {
    const session = this.#session(visit)
    if (session === undefined) return
    if (session.version !== BATCH_VERSION)
      return write(visit, 400, errorText(INVALID_REQUEST, `Batches are served in version ${BATCH_VERSION} only`))
    const batch = new LegacyBatch(messages, session, this.#services.dispatcher)
    if (batch.answerCount === 0) {
      batch.start(undefined)
      return write(visit, 202)
    }
    const answer = this.#open(visit, session, batch.answerCount)
    answer.owner = batch
    batch.start(answer)
  }

  /** GET: the stream of a session for what belongs to no request, or the rest of a broken stream. */
  get(visit: Visit): void {
    const { request, response } = visit
    if (request.headers['mcp-session-id'] === undefined) return write(visit, 405, undefined, ['allow', 'POST'])
    if (request.headers.accept?.includes('text/event-stream') !== true)
      return write(visit, 406, errorText(INVALID_REQUEST, 'GET needs "Accept: text/event-stream"'))
    const session = this.#session(visit)
    if (session === undefined) return
    const { limits } = this.#services.dispatcher
    if (this.#readers.size >= limits.streamsMax)
      return write(visit, 429, errorText(BUSY, `More than ${limits.streamsMax} event streams`))
    const lastEventId = request.headers['last-event-id']
    const place =
      typeof lastEventId === 'string'
        ? session.streamOf(lastEventId)
        : { log: session.standing, number: session.standing.deliveredNumber }
    if (place === undefined) return write(visit, 400, errorText(INVALID_REQUEST, 'Unknown or expired event id'))
    const writer = new EventWriter(response, limits.outputBytesMax, visit.extraHeaders)
    this.#readers.add(writer)
    response.once('close', () => {
      this.#readers.delete(writer)
      place.log.detach(writer, this.#services.now())
    })
    writer.comment()
    place.log.attach(writer, place.number, session.primes)
  }

  /** DELETE: the client ends its session. */
  delete(visit: Visit): void {
    if (visit.request.headers['mcp-session-id'] === undefined) return write(visit, 405, undefined, ['allow', 'POST'])
    const session = this.#session(visit)
    if (session === undefined) return
    this.#services.sessions.close(session, 'The client ended the session')
    write(visit, 204)
  }

  /** Comments on quiet streams. `readers`: also on GET streams, which say nothing themselves. */
  keepAlive(nowMs: number, readers: boolean): void {
    for (const answer of this.#answers) answer.keepAlive(nowMs)
    if (readers) for (const writer of this.#readers) writer.comment()
  }

  /** Ends what waits for nothing in particular: GET streams. */
  endReaders(): void {
    for (const writer of this.#readers) writer.end()
  }

  /** Resolves when no request waits for its answer. */
  whenIdle(): Promise<void> {
    return this.#answers.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#onIdle = resolve
        })
  }
}

function versionOf({ request }: Visit): string | undefined {
  return request.headers['mcp-protocol-version'] as string | undefined
}

function headerOf({ headers }: IncomingMessage): HeaderOf {
  return (name) => {
    const value = headers[name]
    return typeof value === 'string' ? value : value?.join(', ')
  }
}

function errorOf(error: { code: number; message: string; data?: unknown }, id: string | number): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error })
}

function write(
  { response, extraHeaders }: Visit,
  status: number,
  body?: string,
  headers: readonly string[] = [],
): void {
  if (body === undefined) return void response.writeHead(status, [...headers, ...extraHeaders]).end()
  response.writeHead(status, [
    'content-type',
    'application/json',
    'content-length',
    String(Buffer.byteLength(body)),
    ...headers,
    ...extraHeaders,
  ])
  response.end(body)
}
