// The mind of a simulated server: JSON-RPC in, JSON-RPC out, in both eras. How messages travel is the business of its line.
import type { JsonObject } from '@convoke/wire'
import type { Invariant } from './invariants.ts'
import type { Ledger } from './ledger.ts'
import type { Act, Beginning, Program } from './programs.ts'
import type { Random } from './random.ts'
import type { Timeline } from './timeline.ts'

/** What every simulated server needs of its world. */
export interface ServerWorld {
  readonly random: Random
  readonly timeline: Timeline
  readonly ledger: Ledger
  note(line: string): void
  /** The host has done what no host should. */
  fault(invariant: Invariant, message: string): void
}

/** Where a message goes: on the stream of the request it belongs to, or aside. */
export interface ServerLine {
  /** The process or the HTTP client. */
  readonly instance: string
  send(message: object): void
  aside(message: object): void
  /** The server is gone; `half`: after a part of this message. */
  crash(half?: object): void
}

/** A message of the host. */
export interface Incoming {
  readonly id?: string | number
  readonly method?: string
  readonly params?: JsonObject
  readonly result?: unknown
  readonly error?: unknown
}

const META = 'io.modelcontextprotocol/'
const MODERN_VERSION = '2026-07-28'
const METHOD_NOT_FOUND = -32601
const UNSUPPORTED_VERSION = -32022
const INTERNAL_ERROR = -32603
/** Longer than the hosts of a simulation allow. */
export const HUGE_CHARS = 40_000

class Refusal extends Error {
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

interface Request {
  readonly id: string | number
  readonly method: string
  readonly params: JsonObject
  readonly isModern: boolean
  readonly line: ServerLine
}

/** One running server, or one HTTP endpoint as one client sees it. */
export class ServerBrain {
  readonly program: Program
  readonly beginning: Beginning
  readonly #world: ServerWorld
  readonly #instance: string
  readonly #asked = new Map<string, (reply: unknown) => void>()
  readonly #listeners = new Map<string | number, ServerLine>()
  #askCount = 0
  #isOver = false
  /** The revision that was listed last. */
  listedRevision = -1

  constructor(world: ServerWorld, program: Program, instance: string) {
    this.#world = world
    this.program = program
    this.#instance = instance
    this.beginning = program.beginning(world.random)
  }

  /** Nothing is answered any more. */
  end(): void {
    this.#isOver = true
    this.#asked.clear()
    this.#listeners.clear()
  }

  /** The stream of this subscription is gone. */
  hangUp(line: ServerLine): void {
    for (const [id, one] of this.#listeners) if (one === line) this.#listeners.delete(id)
  }

  receive(message: Incoming, line: ServerLine): void {
    if (this.#isOver) return
    const { id, method, params = {} } = message
    if (method === undefined) return this.#answered(message)
    if (id === undefined) return
    const isModern = `${META}protocolVersion` in ((params['_meta'] as JsonObject | undefined) ?? {})
    const request: Request = { id, method, params, isModern, line }
    if (this.#dies(request)) return line.crash()
    if (this.#isDeaf(method)) return
    this.#soon(this.program.thinkMs(this.#world.random), () => this.#take(request))
  }

  /** Tells every host that hears it that its tools changed. */
  announce(aside: ServerLine | undefined): void {
    const method = 'notifications/tools/list_changed'
    if (aside !== undefined && this.program.eras !== 'modern') aside.aside({ jsonrpc: '2.0', method })
    for (const [id, line] of this.#listeners)
      line.send({ jsonrpc: '2.0', method, params: { _meta: { [`${META}subscriptionId`]: id } } })
  }

  #dies({ method }: Request): boolean {
    if (this.beginning === 'exit-on-first') return true
    return this.beginning === 'exit-on-unknown' && method === 'server/discover' && this.program.eras === 'legacy'
  }

  #isDeaf(method: string): boolean {
    return this.beginning === 'silent' && method !== 'tools/call'
  }

  #take(request: Request): void {
    try {
      const result = this.#result(request)
      if (result !== undefined) this.#reply(request, result)
    } catch (error) {
      const { code, message, data } = error as Refusal
      request.line.send({
        jsonrpc: '2.0',
        id: request.id,
        error: { code, message, ...(data === undefined ? {} : { data }) },
      })
    }
  }

  #reply({ id, isModern, line }: Request, result: JsonObject): void {
    const dressed = isModern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result } : result
    line.send({ jsonrpc: '2.0', id, result: dressed })
  }

  /** Undefined: the answer comes later, or never. */
  #result(request: Request): JsonObject | undefined {
    this.#checkEra(request)
    switch (request.method) {
      case 'initialize':
        return this.#initialize(request)
      case 'server/discover':
        return { supportedVersions: [MODERN_VERSION], ...this.#hello() }
      case 'ping':
        return {}
      case 'tools/list':
        return this.#list(request)
      case 'tools/call':
        return this.#call(request)
      case 'resources/list':
        return { resources: [{ uri: `sim://${this.program.key}`, name: 'one' }] }
      case 'subscriptions/listen':
        return this.#listen(request)
      default:
        throw new Refusal(METHOD_NOT_FOUND, `Method not found: ${request.method}`)
    }
  }

  #checkEra({ method, isModern, params }: Request): void {
    const { eras } = this.program
    if (eras === 'legacy' && method === 'server/discover')
      throw new Refusal(METHOD_NOT_FOUND, 'Method not found: server/discover')
    if (isModern ? eras !== 'legacy' : eras !== 'modern') return
    const supported = eras === 'modern' ? [MODERN_VERSION] : ['2025-11-25']
    throw new Refusal(UNSUPPORTED_VERSION, 'Unsupported protocol version', {
      supported,
      requested: params['protocolVersion'] ?? 'none',
    })
  }

  #hello(): JsonObject {
    return {
      capabilities: { tools: { listChanged: true }, resources: {} },
      serverInfo: { name: this.program.key, version: this.#instance },
    }
  }

  #initialize({ params }: Request): JsonObject {
    if (this.beginning === 'error') throw new Refusal(INTERNAL_ERROR, 'No initialization today')
    return { protocolVersion: params['protocolVersion'], ...this.#hello() }
  }

  #list({ params }: Request): JsonObject | undefined {
    const { random } = this.#world
    if (this.program.mood === 'list-fails') {
      if (random.chance(30)) return undefined
      if (random.chance(50)) throw new Refusal(INTERNAL_ERROR, 'The list is not available')
      return { tools: [], nextCursor: 'again' }
    }
    const { endless } = this.program
    if (endless !== undefined) return { tools: [], nextCursor: endless() }
    // A cursor names the revision that its listing began with, so that all pages fit together.
    const [revision = this.program.revision, at = 0] = String(params['cursor'] ?? '')
      .split('/')
      .filter((part) => part !== '')
      .map(Number)
    const names = this.program.listings[revision] ?? []
    const count = at === 0 && random.chance(80) ? names.length : 2
    if (at + count >= names.length) this.listedRevision = Math.max(this.listedRevision, revision)
    return {
      tools: names.slice(at, at + count).map((name) => ({ ...toolOf(name, revision), ...this.program.toolExtras })),
      ...(at + count < names.length ? { nextCursor: `${revision}/${at + count}` } : {}),
    }
  }

  #listen({ id, line, params }: Request): undefined {
    this.#listeners.set(id, line)
    const notifications = params['notifications'] ?? {}
    line.send({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications, _meta: { [`${META}subscriptionId`]: id } },
    })
    return undefined
  }

  #call(request: Request): JsonObject | undefined {
    const { params, line } = request
    const args = (params['arguments'] ?? {}) as JsonObject
    const token = Number(args['token'])
    const tool = String(params['name'])
    const { ledger, timeline } = this.#world
    // The second round of a call that asked back is the same call.
    if (params['inputResponses'] === undefined)
      ledger.arrived(token, { instance: line.instance, tool, atMs: timeline.nowMs })
    if (params['inputResponses'] !== undefined)
      ledger.of(token).reply = (params['inputResponses'] as JsonObject)['question']
    if (!this.program.tools.includes(tool)) throw new Refusal(-32602, `Unknown tool: ${tool}`)
    const act = params['inputResponses'] === undefined ? this.program.act(this.#world.random) : 'answer'
    this.#world.note(`${this.#instance} ${tool} #${token} ${act}`)
    return this.#perform(act, request, token)
  }

  #perform(act: Act, request: Request, token: number): JsonObject | undefined {
    const { random } = this.#world
    switch (act) {
      case 'answer':
        return this.#done(token)
      case 'tool-error':
        return { ...this.#done(token), isError: true }
      case 'slow':
        return this.#finish(request, token, random.between(50, 6_000))
      case 'progress':
        return this.#progress(request, token, random.between(1, 4))
      case 'ask':
        return this.#ask(request, token)
      case 'huge':
        return { ...this.#done(token), content: [{ type: 'text', text: 'x'.repeat(HUGE_CHARS) }] }
      case 'silent':
        return undefined
      case 'rpc-error':
        throw new Refusal(-32000, 'Not today')
      case 'malformed':
        this.#done(token)
        return { content: 'no list' }
      case 'crash-before':
        request.line.crash()
        return undefined
      case 'crash-after':
      case 'half':
        return this.#crashAfter(act, request, token)
    }
  }

  #crashAfter(act: 'crash-after' | 'half', { id, line }: Request, token: number): undefined {
    const record = this.#world.ledger.of(token)
    record.ran += 1
    line.crash(act === 'half' ? { jsonrpc: '2.0', id, result: { content: [] } } : undefined)
  }

  #done(token: number): JsonObject {
    const record = this.#world.ledger.of(token)
    record.ran += 1
    record.answered += 1
    return { content: [{ type: 'text', text: `${this.#instance} ${token}` }] }
  }

  #finish(request: Request, token: number, ms: number): undefined {
    this.#soon(ms, () => this.#reply(request, this.#done(token)))
  }

  #progress(request: Request, token: number, left: number): undefined {
    const meta = request.params['_meta'] as JsonObject | undefined
    const progressToken = meta?.['progressToken']
    this.#soon(this.#world.random.between(5, 2_000), () => {
      if (left === 0) return this.#reply(request, this.#done(token))
      if (progressToken !== undefined)
        request.line.send({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken, progress: 10 - left },
        })
      this.#progress(request, token, left - 1)
    })
  }

  #ask(request: Request, token: number): JsonObject | undefined {
    const question = { message: `For ${token}?`, requestedSchema: { type: 'object', properties: {} } }
    if (request.isModern)
      return {
        resultType: 'input_required',
        inputRequests: { question: { method: 'elicitation/create', params: question } },
        requestState: `state-${token}`,
      }
    this.#askCount += 1
    const id = `ask-${this.#askCount}`
    this.#asked.set(id, (reply) => {
      this.#world.ledger.of(token).reply = reply
      this.#reply(request, this.#done(token))
    })
    request.line.send({ jsonrpc: '2.0', id, method: 'elicitation/create', params: question })
    return undefined
  }

  #answered({ id, result, error }: Incoming): void {
    const settle = this.#asked.get(String(id))
    this.#asked.delete(String(id))
    settle?.(result ?? error)
  }

  #soon(ms: number, run: () => void): void {
    this.#world.timeline.later(ms, ms, () => {
      if (!this.#isOver) run()
    })
  }
}

/** The revision shows only where the host does not compare contracts: a description may change without a new contract. */
function toolOf(name: string, revision: number): JsonObject {
  return {
    name,
    description: `${name}, revision ${revision}`,
    inputSchema: { type: 'object', properties: { token: { type: 'number' } } },
    ...(name === 'read' ? { annotations: { readOnlyHint: true } } : {}),
  }
}
