// One message on its way to a streamable HTTP server: its POST, what comes back, and how often it is sent again.
import { ByteList } from './byte-list.ts'
import type { Call } from './call.ts'
import type { Receiver } from './channel.ts'
import { WireError } from './errors.ts'
import { EventStream } from './event-stream.ts'
import type { Attached } from './http-credentials.ts'
import type { Exchange, ExchangeSink, FailureFacts } from './http-port.ts'
import {
  type Asked,
  planRefusal,
  REFUSAL_BYTES_MAX,
  type Refusal,
  refusalError,
  saysForgotten,
  wrongBodyError,
} from './http-refusal.ts'
import { type Challenge, newRenewals, type Renewals } from './http-renewal.ts'
import { mediaType } from './outbound-rules.ts'
import type { Era } from './protocol.ts'

/** What a post needs of the channel. */
export interface PostOffice {
  readonly isClosed: boolean
  readonly era: Era
  /** The handshake is over. */
  readonly greeted: boolean
  /** Requests carry the id of a session now. */
  readonly hasSession: boolean
  /** Answers come on the stream of the older transport, never to the POST. */
  readonly isOlder: boolean
  /** Counts the sessions with this server. */
  readonly sessionGeneration: number
  readonly messageBytesMax: number
  receiver(): Receiver
  /** The headers of a POST that is sent now; `ready`: with what `renew` gave. */
  attach(method: 'POST', call: Call | undefined, ready?: Attached): Attached | Promise<Attached>
  /** What to send again with after a refusal; undefined: the refusal stands. */
  renew(
    refused: Attached,
    challenge: Challenge,
    renewals: Renewals,
    call: Call | undefined,
  ): Promise<Attached | undefined>
  /** The server has taken a call with these credentials. */
  accepted(attached: Attached): void
  /** Puts it on the wire. */
  dispatch(post: Post, attached: Attached): Exchange
  /** What the meaning of a refusal depends on. */
  asked(call: Call | undefined, hadSession: boolean, attached?: Attached): Asked
  /** Doing it twice does no harm. */
  isRepeatable(call: Call | undefined): boolean
  /** Takes the session id out of the answer to `initialize`. */
  sawSession(id: string | undefined): WireError | undefined
  /** Resolves when there is another session than this one, for a call that waits for it. */
  sessionAfter(generation: number, call: Call | undefined): Promise<void>
  /** Tries the older HTTP+SSE on behalf of a call; resolves when it is there, false when not. */
  fallBack(call: Call | undefined): Promise<boolean>
  /** Sends the message in a session that was not there when it was made, unless its caller objects. */
  move(post: Post): void
  /** Sends the message again over whatever the channel speaks now. */
  again(post: Post): void
  /** Goes on reading the stream of a call elsewhere. */
  resume(call: Call, lastEventId: string, retryMs: number | undefined): void
  /** The server may now send the answer on another stream, as answers to 202 are. */
  readonly answersElsewhere: boolean
  /** The stream of a settled call; closed soon if the server does not. */
  linger(post: Post): void
  over(post: Post): void
}

type Body =
  | { kind: 'none' }
  | { kind: 'message'; bytes: ByteList }
  | { kind: 'events'; stream: EventStream }
  | { kind: 'refusal'; bytes: ByteList; wrong: boolean }

const NONE: Body = { kind: 'none' }
/** How often a request with a proof is sent again because an idle connection turned out to be closed. */
const REPEATS_MAX = 2
/** Notifications are written so, answers are not. */
const NOTIFICATION = '{"jsonrpc":"2.0","method":'

export class Post implements ExchangeSink {
  readonly text: string
  readonly call: Call | undefined
  readonly #office: PostOffice
  #attached: Attached | undefined
  /** What to send it again with. */
  #renewed: Attached | undefined
  #exchange: Exchange | undefined
  #generation = 0
  #hadSession = false
  #body: Body = NONE
  #status = 0
  #header: (name: string) => string | undefined = () => undefined
  #renewals: Renewals | undefined
  #newSessions = 0
  #repeats = 0
  #over = false

  constructor(office: PostOffice, text: string, call: Call | undefined) {
    this.#office = office
    this.text = text
    this.call = call
  }

  /** Sends it, now or as soon as its credentials are there. Called again for each repetition. */
  start(): void {
    const renewed = this.#renewed
    this.#renewed = undefined
    let attached: Attached | Promise<Attached>
    try {
      attached = this.#office.attach('POST', this.call, renewed)
    } catch (error) {
      return this.#fail(error as WireError)
    }
    if (!(attached instanceof Promise)) return this.#go(attached)
    attached.then(
      (late) => this.#go(late),
      (error: WireError) => this.#fail(error),
    )
  }

  #go(attached: Attached): void {
    const { call } = this
    if (this.#isAbandoned) return this.#finish()
    this.#attached = attached
    this.#status = 0
    this.#generation = this.#office.sessionGeneration
    this.#hadSession = this.#office.hasSession
    this.#body = NONE
    this.#exchange = this.#office.dispatch(this, attached)
    if (call !== undefined) call.exchange = this.#exchange
  }

  /** Nobody waits for it any more. */
  get #isAbandoned(): boolean {
    return (
      this.#over || this.#office.isClosed || (this.call !== undefined && !this.#office.receiver().isPending(this.call))
    )
  }

  /** Not to be sent at all. */
  refuse(error: WireError): void {
    this.#fail(error)
  }

  drop(): void {
    this.#exchange?.drop()
    this.#finish()
  }

  head(status: number, header: (name: string) => string | undefined): void {
    this.#status = status
    this.#header = header
    if (status >= 300) {
      this.#body = { kind: 'refusal', bytes: new ByteList(), wrong: false }
      return
    }
    if (this.call !== undefined && this.#attached !== undefined) this.#office.accepted(this.#attached)
    if (this.call?.method === 'initialize') {
      const fault = this.#office.sawSession(header('mcp-session-id'))
      if (fault !== undefined) return this.#stop(fault)
    }
    if (status !== 202 && status !== 204 && !this.#office.isOlder) this.#begin(mediaType(header('content-type')))
  }

  #begin(type: string): void {
    if (type === 'text/event-stream') this.#body = { kind: 'events', stream: this.#events() }
    else if (type === 'application/json') {
      const declared = Number(this.#header('content-length') ?? 0)
      if (declared > this.#office.messageBytesMax) this.#tooLarge(declared)
      else this.#body = { kind: 'message', bytes: new ByteList() }
    } else if (this.call !== undefined) this.#body = { kind: 'refusal', bytes: new ByteList(), wrong: true }
  }

  #events(): EventStream {
    return new EventStream(
      {
        message: (bytes, start, end) => this.#message(bytes, start, end),
        oversized: (head, tail, length) => this.#oversized(head, tail, length),
      },
      this.#office.messageBytesMax,
    )
  }

  data(chunk: Buffer): void {
    const body = this.#body
    switch (body.kind) {
      case 'events':
        return body.stream.push(chunk)
      case 'message':
        body.bytes.add(chunk)
        if (body.bytes.length > this.#office.messageBytesMax) this.#tooLarge(body.bytes.length)
        return
      case 'refusal':
        body.bytes.add(chunk)
        if (body.bytes.length <= REFUSAL_BYTES_MAX) return
        this.#exchange?.drop() // enough to know what it is
        return this.end()
      case 'none':
        return
    }
  }

  /** One message on the stream of this answer. */
  #message(bytes: Buffer, start: number, end: number): void {
    if (this.#over) return
    if (this.#isForgotten(bytes, start, end)) {
      this.#exchange?.drop()
      return this.#afterSession()
    }
    this.#office.receiver().receive(bytes, start, end, this.call)
    this.#lingerIfSettled()
  }

  #lingerIfSettled(): void {
    if (this.call !== undefined && !this.#over && !this.#office.receiver().isPending(this.call))
      this.#office.linger(this)
  }

  #isForgotten(bytes: Buffer, start: number, end: number): boolean {
    const { era, greeted } = this.#office
    return (
      era === 'legacy' &&
      greeted &&
      this.call !== undefined &&
      this.call.method !== 'initialize' &&
      saysForgotten(bytes, start, end)
    )
  }

  /** An event over the cap. A message that is no answer is only lost; which one it was shows at its edges. */
  #oversized(head: Buffer, tail: Buffer, length: number): void {
    if (this.call === undefined || isNoAnswer(head)) return
    this.#office.receiver().receiveOversized(head, tail, length, this.call)
    this.#lingerIfSettled()
  }

  #tooLarge(length: number): void {
    const { messageBytesMax } = this.#office
    this.#stop(
      new WireError(
        'too-large',
        `The answer to "${this.call?.method ?? 'a message'}" has ${length} bytes or more, more than ${messageBytesMax}`,
        {
          sent: true,
          status: this.#status,
        },
      ),
    )
  }

  end(): void {
    if (this.#over) return
    const body = this.#body
    this.#body = NONE
    switch (body.kind) {
      case 'refusal':
        return this.#refused(body.bytes.join(), body.wrong)
      case 'events':
        body.stream.end()
        return this.#streamOver(body.stream)
      case 'message':
        return this.#wholeAnswer(body.bytes.join())
      case 'none':
        return this.#answered()
    }
  }

  #wholeAnswer(bytes: Buffer): void {
    if (this.#isForgotten(bytes, 0, bytes.length)) return this.#afterSession()
    if (bytes.length > 0) this.#office.receiver().receive(bytes, 0, bytes.length, this.call)
    this.#answered()
  }

  /** The whole answer was there. A call that still waits was not answered, unless this server answers on its other stream. */
  #answered(): void {
    const { call } = this
    if (this.#over) return
    // Asked first: an Error that nobody needs costs a stack trace per call.
    if (call === undefined || !this.#office.receiver().isPending(call)) return this.#finish()
    const accepted = this.#status === 202 || this.#status === 204
    if (this.#office.isOlder || (accepted && this.#office.answersElsewhere)) return this.#finish()
    this.#fail(
      new WireError('malformed', `HTTP ${this.#status} without an answer to "${call.method}"`, {
        sent: true,
        status: this.#status,
      }),
    )
  }

  #refused(bytes: Buffer, wrong: boolean): void {
    const header = this.#header
    const refusal: Refusal = {
      status: this.#status,
      contentType: header('content-type'),
      challenge: header('www-authenticate'),
      body: bytes,
    }
    const asked = this.#office.asked(this.call, this.#hadSession, this.#attached)
    if (wrong) return this.#fail(wrongBodyError(refusal, asked))
    const plan = planRefusal(refusal, asked)
    switch (plan.kind) {
      case 'authorize':
        return this.#authorize(refusal, asked)
      case 'session-lost':
        return this.#afterSession()
      case 'fall-back':
        return this.#olderTransport(refusal, asked)
      case 'fail':
        return this.#fail(refusalError(refusal, asked))
    }
  }

  #authorize(refusal: Refusal, asked: Asked): void {
    const refused = this.#attached
    if (refused === undefined) return
    const { status, challenge } = refusal
    const { call } = this
    if (call !== undefined) call.exchange = undefined // the server has not acted on it, whatever ends the call now
    this.#renewals ??= newRenewals(
      call !== undefined ? 'call' : this.text.startsWith(NOTIFICATION) ? 'notification' : 'answer',
    )
    this.#office.renew(refused, { status, wwwAuthenticate: challenge }, this.#renewals, call).then(
      (renewed) => {
        if (renewed === undefined) return this.#fail(refusalError(refusal, asked))
        if (this.#isAbandoned) return this.#finish()
        this.#renewed = renewed
        this.#office.again(this)
      },
      (cause: unknown) =>
        this.#fail(
          cause instanceof WireError
            ? cause
            : new WireError('unauthorized', `The sign-in at ${asked.server} failed`, { status, sent: true, cause }),
        ),
    )
  }

  /** The server has forgotten the session, so it has not acted on this message: one new session for all that were refused, and one repetition each. */
  #afterSession(): void {
    if (this.#newSessions > 0)
      return this.#fail(
        new WireError('session-lost', 'The server has forgotten the session, and the new one at once', {
          sent: true,
          status: this.#status,
        }),
      )
    this.#newSessions++
    if (this.call !== undefined) this.call.exchange = undefined // what was refused so has not been sent, whatever ends the call now
    this.#office.sessionAfter(this.#generation, this.call).then(
      () => this.#office.move(this),
      (cause: unknown) =>
        this.#fail(
          new WireError(
            'session-lost',
            `The server has forgotten the session, and a new one could not be made: ${cause instanceof Error ? cause.message : String(cause)}`,
            {
              sent: false,
              cause,
            },
          ),
        ),
    )
  }

  #olderTransport(refusal: Refusal, asked: Asked): void {
    this.#office.fallBack(this.call).then(
      (found) => (found ? this.#office.again(this) : this.#fail(refusalError(refusal, asked))),
      (error: WireError) => this.#fail(error),
    )
  }

  /** The stream is over. Legacy servers may hand out the rest of it from an event id on. */
  #streamOver(stream: EventStream, cause?: WireError): void {
    const { call } = this
    if (call === undefined || !this.#office.receiver().isPending(call)) return this.#finish()
    if (this.#office.era === 'legacy' && stream.lastEventId !== undefined) {
      this.#office.resume(call, stream.lastEventId, stream.retryMs)
      return this.#finish()
    }
    this.#fail(
      cause ?? new WireError('closed', `The event stream ended before the answer to "${call.method}"`, { sent: true }),
    )
  }

  fail(error: WireError, facts: FailureFacts): void {
    if (this.#over) return
    const body = this.#body
    this.#body = NONE
    if (body.kind === 'events') return this.#streamOver(body.stream, error)
    if (this.#mayProveAgain(facts)) {
      this.#repeats++
      // Not from within the client's own callback.
      setImmediate(() => this.start())
      return
    }
    this.#fail(
      error.details.sent === undefined
        ? new WireError(error.code, error.message, { ...error.details, sent: facts.sent })
        : error,
    )
  }

  /** Met a connection that was closed while idle. Without a proof the door repeats it; a proof must not go out twice. */
  #mayProveAgain({ sent, reused }: FailureFacts): boolean {
    return (
      reused &&
      sent &&
      this.#status === 0 &&
      this.#attached?.proof !== undefined &&
      this.#repeats < REPEATS_MAX &&
      this.#office.isRepeatable(this.call)
    )
  }

  #stop(error: WireError): void {
    this.#exchange?.drop()
    this.#fail(error)
  }

  #fail(error: WireError): void {
    if (this.#over) return
    this.#finish()
    if (this.call !== undefined) this.#office.receiver().fail(this.call, error)
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    this.#office.over(this)
  }
}

/** A request or notification of the server: its `method` stands before any payload. */
export function isNoAnswer(head: Buffer): boolean {
  const text = head.toString('latin1')
  const payload = /"(?:result|error)"\s*:/.exec(text)
  const method = /"method"\s*:/.exec(text)
  return method !== null && (payload === null || method.index < payload.index)
}
