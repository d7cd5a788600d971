// The answer to one POST: plain JSON when nothing comes before it, an event stream otherwise.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventLog } from './event-log.ts'
import { EventWriter } from './event-writer.ts'
import type { Outlet } from './exchange.ts'
import type { HttpSession } from './legacy-session.ts'
import type { EndpointLimits } from './limits.ts'
import type { RequestId } from './message.ts'
import type { OutputBudget } from './output-budget.ts'
import { errorText, type FramedReply, oneLine } from './reply.ts'
import { BUSY } from './rules.ts'

/** Below this, head and body become one string and so one write together with the headers. */
const JOIN_BYTES_MAX = 16 * 1024

/** What all answers of an endpoint share. */
export interface AnswerServices {
  readonly limits: EndpointLimits
  readonly output: OutputBudget
  now(): number
  /** Told once for each answer, when nothing of it can follow. */
  over(answer: HttpAnswer): void
}

/** The request that is answered. */
export interface AnswerPlace {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Header lines of the response, flat. */
  readonly extraHeaders: readonly string[]
}

/** Whoever works for the client, and may stop when it is lost. */
export interface Owner {
  cancel(reason: string): void
}

const ANSWER = Symbol('answer')
type Answered = ServerResponse & { [ANSWER]?: HttpAnswer }

/** One listener for all responses: the answer is found on the response. */
function onClose(this: Answered): void {
  this[ANSWER]?.closed()
}

/** On the path of every call: no closure, and one object. */
export class HttpAnswer implements Outlet {
  /** Undefined for modern clients: their streams cannot be resumed. */
  readonly session: HttpSession | undefined
  /** Set once it is known. */
  owner: Owner | undefined
  requestId: RequestId | undefined
  readonly #services: AnswerServices
  readonly #place: AnswerPlace
  #state: 'waiting' | 'streaming' | 'over' = 'waiting'
  #writer: EventWriter | undefined
  #log: EventLog | undefined
  /** How many answers this body gets; more than one in a batch. */
  readonly #count: number
  #left: number
  #collected: string[] | undefined
  #spokenAtMs: number

  constructor(services: AnswerServices, place: AnswerPlace, session: HttpSession | undefined, count: number) {
    this.#services = services
    this.#place = place
    this.session = session
    this.#count = count
    this.#left = count
    this.#spokenAtMs = services.now()
    if (count > 1) this.#collected = []
    const response: Answered = place.response
    response[ANSWER] = this
    response.on('close', onClose)
  }

  get isOver(): boolean {
    return this.#state === 'over'
  }

  /** `*` and a missing header accept everything. */
  #accepts(type: string): boolean {
    const { accept } = this.#place.request.headers
    return accept === undefined || accept.includes(type) || accept.includes('*/*')
  }

  send(text: string): boolean {
    if (!this.#stream()) return false
    this.#spokenAtMs = this.#services.now()
    if (this.#log === undefined) return this.#writer?.event(text) === true
    this.#log.send(text)
    return true
  }

  /** Makes this an event stream, if the client takes one. */
  #stream(): boolean {
    if (this.#state !== 'waiting') return this.#state === 'streaming'
    const { response, extraHeaders } = this.#place
    if (response.destroyed || !this.#accepts('text/event-stream')) return false
    this.#state = 'streaming'
    this.#writer = new EventWriter(response, this.#services.limits.outputBytesMax, extraHeaders)
    this.#log = this.session?.openStream(this.#writer, () => this.#lost('Nobody came back for the event stream'))
    for (const text of this.#collected ?? []) this.send(text)
    this.#collected = undefined
    return true
  }

  answer(framed: FramedReply): void {
    if (this.#state === 'over') return
    this.#left--
    const asStream = this.#state === 'streaming' || !this.#accepts('application/json') || this.#count > 1
    if (asStream && this.#stream()) return this.#streamed(framed)
    if (this.#collected !== undefined) return this.#collect(framed)
    this.#over()
    this.#writeJson(framed)
  }

  /** An HTTP request is never left without a response; its client ignores it. */
  abandon(id: RequestId, reason: string): void {
    this.answer({ status: 200, head: errorText(BUSY, reason, id) })
  }

  #streamed(framed: FramedReply): void {
    const text = oneLine(framed)
    this.send(
      this.#services.output.take(this.#place.response, text.length)
        ? text
        : errorText(BUSY, 'Too many answers wait to be read'),
    )
    if (this.#left > 0) return
    this.#over()
    if (this.#log === undefined) this.#writer?.end()
    else this.#log.end()
  }

  /** A batch for a client that takes no stream: one list, when all are there. */
  #collect(framed: FramedReply): void {
    this.#collected?.push(oneLine(framed))
    if (this.#left > 0) return
    const body = `[${this.#collected?.join(',')}]`
    this.#collected = undefined
    this.#over()
    this.#writeJson({ status: 200, head: body })
  }

  #writeJson({ status, head, tail }: FramedReply): void {
    const { response, extraHeaders } = this.#place
    if (response.destroyed) return
    const length = Buffer.byteLength(head) + (tail === undefined ? 0 : tail.length + 1)
    if (!this.#services.output.take(response, length))
      return this.#writeJson({ status: 503, head: errorText(BUSY, 'Too many answers wait to be read') })
    response.writeHead(status, ['content-type', 'application/json', 'content-length', String(length), ...extraHeaders])
    if (tail === undefined) response.end(head)
    else if (length <= JOIN_BYTES_MAX) response.end(`${head}${tail.toString('utf8')}}`)
    else {
      response.cork()
      response.write(head)
      response.write(tail)
      response.end('}')
      response.uncork()
    }
  }

  /** Shows that the connection lives; a request that takes long gets its stream early. */
  keepAlive(nowMs: number): void {
    const { keepAliveCommentMs } = this.#services.limits
    if (this.#state === 'over' || nowMs - this.#spokenAtMs < keepAliveCommentMs || !this.#stream()) return
    this.#spokenAtMs = nowMs
    if (this.#log === undefined) this.#writer?.comment()
    else this.#log.comment()
  }

  /** The connection is closed: by us after the last answer, or by the client before. */
  closed(): void {
    if (this.#log === undefined || this.#writer === undefined) return this.#lost('The client hung up')
    // A broken stream of the legacy era is no cancellation: its client may come back.
    this.#log.detach(this.#writer, this.#services.now())
  }

  #lost(reason: string): void {
    if (this.#state === 'over') return
    this.#over()
    this.owner?.cancel(reason)
  }

  #over(): void {
    this.#state = 'over'
    this.#services.over(this)
  }
}
