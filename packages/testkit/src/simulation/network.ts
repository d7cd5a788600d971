// The simulated network: HTTP servers that forget sessions, refuse, break off and dawdle, behind the port that the wire sends its requests through.
import { type Exchange, type ExchangeRequest, type ExchangeSink, type HttpClient, WireError } from '@convoke/wire'
import { HOSTED, type Program, type Programs } from './programs.ts'
import { type Incoming, ServerBrain, type ServerLine, type ServerWorld } from './server-brain.ts'
import { Pipe } from './timeline.ts'

/** Everything that is connected. */
export class SimulatedNetwork {
  readonly #world: ServerWorld
  readonly #programs: Programs
  readonly #clients = new Set<SimulatedClient>()
  #clientCount = 0
  /** How many requests were ever put on the wire. */
  requests = 0

  constructor(world: ServerWorld, programs: Programs) {
    this.#world = world
    this.#programs = programs
  }

  /** Clients that the host has not closed. */
  get clients(): readonly SimulatedClient[] {
    return [...this.#clients]
  }

  /** Exchanges that are neither over nor dropped. */
  get exchangeCount(): number {
    return this.clients.reduce((sum, { exchanges }) => sum + exchanges.size, 0)
  }

  connect(url: URL): HttpClient {
    this.#clientCount += 1
    const program = this.#programs.of(url.host + url.pathname)
    const client = new SimulatedClient(this.#world, program, {
      number: this.#clientCount,
      sent: () => {
        this.requests += 1
      },
      closed: () => this.#clients.delete(client),
    })
    this.#clients.add(client)
    this.#world.note(`client ${client.number} for ${program.key}`)
    return client
  }

  /** The servers behind an address lose every session, as after a restart. */
  forgetSessions(program: Program): void {
    program.sessions.clear()
  }

  /** Every open stream of a program is cut. */
  cut(program: Program): void {
    for (const client of this.#clients) if (client.program === program) client.cut()
  }

  /** Tells every client that listens that the tools changed. */
  announce(program: Program): void {
    for (const client of this.#clients) if (client.program === program) client.announce()
  }
}

interface ClientInit {
  readonly number: number
  sent(): void
  closed(): void
}

/** One client of the host, and the server as it shows itself to that client. */
export class SimulatedClient implements HttpClient {
  readonly number: number
  readonly program: Program
  readonly instance: string
  readonly exchanges: Set<SimulatedExchange> = new Set()
  /** Answers of streams that broke, by the event id from which they can be resumed. */
  readonly rests: Map<string, object> = new Map()
  readonly world: ServerWorld
  brain: ServerBrain
  /** The stream for what no request asked for. */
  aside: SimulatedExchange | undefined
  readonly #init: ClientInit

  constructor(world: ServerWorld, program: Program, init: ClientInit) {
    this.world = world
    this.program = program
    this.number = init.number
    this.instance = `http ${init.number}`
    this.#init = init
    this.brain = new ServerBrain(world, program, this.instance)
  }

  exchange(request: ExchangeRequest, sink: ExchangeSink): Exchange {
    this.#init.sent()
    const exchange = new SimulatedExchange(this, request, sink)
    this.exchanges.add(exchange)
    exchange.begin()
    return exchange
  }

  /** A new session meets a new mood of the server. */
  greet(by: SimulatedExchange): void {
    // One that was cut off is sent again, and the first may arrive all the same: that is one handshake.
    for (const other of this.exchanges)
      if (by.opens && other !== by && other.opens)
        this.world.fault('one recovery for all who need it', `${this.instance} shakes hands twice at the same time`)
    this.brain.end()
    this.brain = new ServerBrain(this.world, this.program, this.instance)
  }

  cut(): void {
    for (const exchange of [...this.exchanges]) exchange.cut()
  }

  announce(): void {
    this.brain.announce(this.aside?.line)
  }

  close(): void {
    const { random, timeline } = this.world
    this.world.note(`client ${this.number} closed`)
    for (const exchange of [...this.exchanges]) {
      // Some implementations tell what was open, some do not.
      if (random.chance(50)) timeline.later(0, 2, () => exchange.fail('closed'))
      exchange.forget()
    }
    this.#init.closed()
  }
}

type Step = () => void

/** One request and its answer. */
export class SimulatedExchange implements Exchange {
  sent = false
  readonly line: ServerLine
  readonly #client: SimulatedClient
  readonly #request: ExchangeRequest
  readonly #sink: ExchangeSink
  readonly #message: Incoming
  readonly #held: Step[] = []
  readonly #usesEvents: boolean
  #isPaused = false
  #isOver = false
  #hasHead = false
  readonly #answer: Pipe

  constructor(client: SimulatedClient, request: ExchangeRequest, sink: ExchangeSink) {
    const { random, timeline } = client.world
    this.#answer = new Pipe(timeline)
    this.#client = client
    this.#request = request
    this.#sink = sink
    this.#message = request.body === undefined ? {} : (JSON.parse(request.body) as Incoming)
    const { method } = this.#message
    this.#usesEvents =
      request.method === 'GET' || method === 'tools/call' || method === 'subscriptions/listen' || random.chance(40)
    this.line = {
      instance: client.instance,
      send: (message) => this.#say(message),
      aside: (message) => this.#event(message),
      crash: () => this.#crash(),
    }
  }

  /** It begins a session, and its answer is not there yet. */
  get opens(): boolean {
    return !this.#isOver && this.sent && this.#message.method === 'initialize'
  }

  begin(): void {
    const { random, timeline } = this.#client.world
    timeline.later(0, 6, () => {
      if (this.#isOver) return
      if (this.#cannotConnect()) return this.fail('unreachable')
      this.sent = true
      // From now on the server may act on it, whether the client still listens or not.
      timeline.later(0, random.chance(5) ? 120 : 4, () => this.#arrive())
    })
  }

  drop(): void {
    if (this.#isOver) return
    this.forget()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    while (!this.#isPaused && this.#held.length > 0) this.#held.shift()?.()
  }

  /** The connection breaks. */
  cut(): void {
    if (this.sent) this.fail('closed')
  }

  fail(code: 'closed' | 'unreachable'): void {
    if (this.#isOver) return
    this.forget()
    // An idle connection that the server had closed meanwhile breaks before anything comes back.
    const reused = !this.#hasHead && this.#client.world.random.chance(30)
    this.#sink.fail(new WireError(code, 'The simulated connection broke'), { sent: this.sent, reused })
  }

  /** It is over, and its sink hears nothing more. */
  forget(): void {
    this.#isOver = true
    this.#client.exchanges.delete(this)
    this.#client.brain.hangUp(this.line)
    if (this.#client.aside === this) this.#client.aside = undefined
  }

  #cannotConnect(): boolean {
    const { program, world } = this.#client
    return program.mood === 'gone' || (program.mood === 'flaky' && world.random.chance(3))
  }

  #arrive(): void {
    const { program, world } = this.#client
    world.note(
      `${this.#client.instance} ${this.#request.method} ${this.#message.method ?? ''} ${this.#message.id ?? ''}`,
    )
    this.#checkCredentials()
    if (this.#request.method === 'DELETE') return this.#deleted()
    const refusal = this.#refusal()
    if (refusal !== undefined) return this.#refuse(refusal)
    if (this.#request.method === 'GET') return this.#listen()
    if (this.#message.id === undefined || this.#message.method === undefined) {
      this.#client.brain.receive(this.#message, this.line)
      return this.#refuse({ status: 202 })
    }
    if (program.mood === 'start-hangs' && isOpening(this.#message.method)) return
    if (isOpening(this.#message.method)) this.#client.greet(this)
    this.#client.brain.receive(this.#message, this.line)
  }

  #refusal(): { status: number; text?: string; challenge?: boolean } | undefined {
    const { program, world } = this.#client
    const { random } = world
    const { method } = this.#message
    if (program.mood === 'refuses') return { status: 401, challenge: random.chance(60) }
    if (program.mood === 'start-fails' && isOpening(method))
      // Some servers repeat what they were sent.
      return {
        status: random.pick([500, 503, 404, 400, 403]),
        text: `Simulated trouble ${this.#header('authorization') ?? ''}`,
      }
    if (program.mood === 'flaky' && random.chance(6))
      return { status: random.pick([500, 502, 503, 429]), text: 'Simulated trouble' }
    return this.#sessionFault()
  }

  /** Servers of the session era know only those whom they have greeted. */
  #sessionFault(): { status: number; text: string } | undefined {
    const { program, world } = this.#client
    const { method, params } = this.#message
    const isModern = JSON.stringify(params ?? {}).includes('io.modelcontextprotocol/protocolVersion')
    if (program.eras === 'modern' || isModern || method === 'initialize') return undefined
    const id = this.#header('mcp-session-id')
    if (id !== undefined && program.sessions.has(id)) return undefined
    if (id !== undefined && world.random.chance(60)) return { status: 404, text: '' }
    return { status: 400, text: 'Bad Request: No valid session ID provided' }
  }

  #header(name: string): string | undefined {
    const { headers } = this.#request
    for (let at = 0; at < headers.length; at += 2) if (headers[at] === name) return headers[at + 1]
    return undefined
  }

  /** The token of an account is shown to the servers of its origins, and to nobody else. */
  #checkCredentials(): void {
    const shown = this.#header('authorization')
    const { program, world } = this.#client
    program.lastAuthorization = shown
    if (shown?.startsWith('Bearer grant-') === true && !program.key.startsWith(HOSTED))
      world.fault('a token goes only to its origins', `${shown} arrives at ${program.key}`)
  }

  #deleted(): void {
    const id = this.#header('mcp-session-id')
    if (id !== undefined) this.#client.program.sessions.delete(id)
    if (this.#client.program.mood === 'start-hangs') return
    this.#refuse({ status: 200 })
  }

  #listen(): void {
    const { program, rests } = this.#client
    const rest = rests.get(this.#header('last-event-id') ?? '')
    if (rest !== undefined) {
      rests.delete(this.#header('last-event-id') ?? '')
      return this.#event(rest, 'last')
    }
    if (program.key.length % 5 === 0) return this.#refuse({ status: 405 })
    this.#client.aside = this
    this.#head(200, { 'content-type': 'text/event-stream' })
  }

  #refuse({ status, text = '', challenge = false }: { status: number; text?: string; challenge?: boolean }): void {
    const body = text === '' ? '' : JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: text } })
    this.#head(status, {
      ...(body === '' ? {} : { 'content-type': 'application/json' }),
      ...(challenge ? { 'www-authenticate': 'Bearer realm="simulated"' } : {}),
    })
    if (body !== '') this.#deliver(() => this.#sink.data(Buffer.from(body)))
    this.#finish()
  }

  /** A message of the server for this request: on its stream, or as the whole answer. */
  #say(message: object): void {
    const isAnswer = 'result' in message || 'error' in message
    if (!this.#usesEvents && !isAnswer) return
    if (this.#usesEvents) return this.#event(message, isAnswer ? 'last' : 'more')
    this.#head(this.#status(message), { 'content-type': 'application/json', ...this.#session(message) })
    this.#deliver(() => this.#sink.data(Buffer.from(JSON.stringify(message))))
    this.#finish()
  }

  #event(message: object, which: 'last' | 'more' = 'more'): void {
    if (this.#breaksBefore(message, which)) return
    this.#head(200, { 'content-type': 'text/event-stream', ...this.#session(message) })
    const text = `event: message\ndata: ${JSON.stringify(message)}\n\n`
    const { random } = this.#client.world
    const at = random.chance(10) ? random.below(text.length) : 0
    if (at > 0) this.#deliver(() => this.#sink.data(Buffer.from(text.slice(0, at))))
    this.#deliver(() => this.#sink.data(Buffer.from(text.slice(at))))
    if (which === 'last') this.#finish()
  }

  /** The stream of a call may end before its answer, with or without a way to have the rest. */
  #breaksBefore(message: object, which: 'last' | 'more'): boolean {
    const { program, world, rests } = this.#client
    const { random } = world
    if (this.#message.method !== 'tools/call' || which === 'more' || program.mood !== 'flaky' || !random.chance(15))
      return false
    this.#head(200, { 'content-type': 'text/event-stream' })
    if (random.chance(50)) {
      const id = `${this.#client.number}-${String(this.#message.id)}-${random.below(1_000)}`
      rests.set(id, message)
      this.#deliver(() => this.#sink.data(Buffer.from(`id: ${id}\ndata:\n\n`)))
    }
    if (random.chance(50)) this.#finish()
    else this.#deliver(() => this.fail('closed'))
    return true
  }

  #status(message: object): number {
    const code = 'error' in message ? (message.error as { code?: number }).code : undefined
    return code === -32022 || (code === -32601 && this.#message.method === 'server/discover') ? 400 : 200
  }

  /** The answer to `initialize` brings a session. */
  #session(message: object): Record<string, string> {
    if (this.#message.method !== 'initialize' || !('result' in message)) return {}
    const { program, instance } = this.#client
    program.sessionCount += 1
    const id = `session-${program.sessionCount}`
    program.sessions.set(id, instance)
    return { 'mcp-session-id': id }
  }

  #crash(): void {
    const { program, world } = this.#client
    if (world.random.chance(50)) program.sessions.clear()
    if (world.random.chance(50)) return this.#deliver(() => this.fail('closed'))
    this.#head(200, { 'content-type': 'text/event-stream' })
    this.#finish()
  }

  #head(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.#hasHead) return
    this.#hasHead = true
    this.#deliver(() => this.#sink.head(status, (name) => headers[name]))
  }

  #finish(): void {
    this.#deliver(() => {
      this.forget()
      this.#sink.end()
    })
  }

  /** In order, and not while the reader is paused. */
  #deliver(step: Step): void {
    const run = (): void => {
      if (!this.#isOver) step()
    }
    this.#answer.put(this.#client.world.random.below(4), () => {
      if (this.#isPaused || this.#held.length > 0) this.#held.push(run)
      else run()
    })
  }
}

function isOpening(method: string | undefined): boolean {
  return method === 'initialize' || method === 'server/discover'
}
