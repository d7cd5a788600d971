// Streams that are opened with GET (legacy era): the one on which a server sends what no call asked for, and the rest of a call's stream that broke.
import type { Call } from './call.ts'
import type { Receiver } from './channel.ts'
import { WireError } from './errors.ts'
import { EventStream, RETRY_MS } from './event-stream.ts'
import type { Attached } from './http-credentials.ts'
import type { Exchange, ExchangeSink } from './http-port.ts'
import { isNoAnswer } from './http-post.ts'
import { type Challenge, newRenewals, type Renewals } from './http-renewal.ts'
import { mediaType } from './outbound-rules.ts'
import type { Platform, TimerHandle } from './platform.ts'

/** What a stream needs of the channel. */
export interface StreamOffice {
  readonly isClosed: boolean
  readonly platform: Platform
  readonly messageBytesMax: number
  receiver(): Receiver
  /** Asks for a stream, with the credentials and the session of now. Calls back later if they have to be waited for. */
  get(request: StreamRequest, sink: ExchangeSink, started: (exchange: Exchange, attached: Attached) => void): void
  /** What to ask again with after a refusal; undefined: the refusal stands. */
  renew(
    refused: Attached,
    challenge: Challenge,
    renewals: Renewals,
    call: Call | undefined,
  ): Promise<Attached | undefined>
  /** A 404 on the stream alone does not end a session: asks the server whether it still knows it, and makes another if not. */
  checkSession(): Promise<void>
}

/** Which stream is asked for, and with what. */
export interface StreamRequest {
  readonly lastEventId: string | undefined
  /** The call that waits for it. */
  readonly call: Call | undefined
  /** Credentials that are there already; default: those of now. */
  readonly ready?: Attached | undefined
}

/** How one attempt to read such a stream ended. */
export type StreamOutcome =
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'over'; readonly opened: boolean; readonly progressed: boolean; readonly livedMs: number }

/** Resumptions of one call's stream in a row that brought nothing. */
const RESUMPTIONS_MAX = 5
/** Attempts to open the stream in a row that failed. */
const LISTEN_FAILURES_MAX = 12
const LISTEN_DELAY_MS_MAX = 30_000
/** A stream that lived so long was a good one, whatever came on it. */
const GOOD_STREAM_MS = 5_000

/** When to open the standalone stream again: after so many ms, or never. Pure. */
export function planListening(
  outcome: StreamOutcome,
  failures: number,
  retryMs: number | undefined,
): { kind: 'again'; afterMs: number; failures: number } | { kind: 'check' } | { kind: 'stop' } {
  if (outcome.kind === 'refused' && outcome.status === 404) return { kind: 'check' }
  // 405: no such stream here. 401 and 403: asking again with the same credentials would only be refused again.
  if (outcome.kind === 'refused' && outcome.status < 500 && outcome.status !== 429 && outcome.status !== 408)
    return { kind: 'stop' }
  const isGood = outcome.kind === 'over' && outcome.opened && (outcome.progressed || outcome.livedMs >= GOOD_STREAM_MS)
  if (isGood) return { kind: 'again', afterMs: retryMs ?? RETRY_MS, failures: 0 }
  if (failures + 1 >= LISTEN_FAILURES_MAX) return { kind: 'stop' }
  const backoffMs = Math.min(RETRY_MS * 2 ** failures, LISTEN_DELAY_MS_MAX)
  return { kind: 'again', afterMs: Math.max(backoffMs, retryMs ?? 0), failures: failures + 1 }
}

/** One attempt. */
class Stream implements ExchangeSink {
  readonly #office: StreamOffice
  readonly #call: Call | undefined
  readonly #over: (outcome: StreamOutcome) => void
  readonly events: EventStream
  #openedAtMs: number | undefined

  constructor(office: StreamOffice, call: Call | undefined, over: (outcome: StreamOutcome) => void) {
    this.#office = office
    this.#call = call
    this.#over = over
    this.events = new EventStream(
      {
        message: (bytes, start, end) => {
          if (!office.isClosed) office.receiver().receive(bytes, start, end, call)
        },
        oversized: (head, tail, length) => {
          if (call !== undefined && !isNoAnswer(head)) office.receiver().receiveOversized(head, tail, length, call)
        },
      },
      office.messageBytesMax,
    )
  }

  #exchange: Exchange | undefined
  /** What it was asked for with. */
  attached: Attached | undefined
  /** What the server said when it refused it. */
  challenge: string | undefined

  start(lastEventId: string | undefined, ready?: Attached): void {
    this.events.lastEventId = lastEventId
    const started = (exchange: Exchange, attached: Attached): void => {
      this.attached = attached
      if (this.#dropped) exchange.drop()
      else this.#exchange = exchange
    }
    this.#office.get({ lastEventId, call: this.#call, ready }, this, started)
  }

  #dropped = false

  get sent(): boolean {
    return true // what is resumed was sent before
  }

  drop(): void {
    this.#dropped = true
    this.#exchange?.drop()
  }

  head(status: number, header: (name: string) => string | undefined): void {
    if (status >= 200 && status < 300 && mediaType(header('content-type')) === 'text/event-stream') {
      this.#openedAtMs = this.#office.platform.now()
      return
    }
    this.drop()
    this.challenge = header('www-authenticate')
    this.#over({ kind: 'refused', status: status < 300 ? 405 : status })
  }

  data(chunk: Buffer): void {
    if (this.#dropped) return
    this.events.push(chunk)
    if (this.#call !== undefined && !this.#office.receiver().isPending(this.#call)) {
      this.drop()
      this.#end()
    }
  }

  end(): void {
    this.#end()
  }

  fail(): void {
    this.#end()
  }

  #end(): void {
    this.events.end()
    const openedAtMs = this.#openedAtMs
    const livedMs = openedAtMs === undefined ? 0 : this.#office.platform.now() - openedAtMs
    this.#over({ kind: 'over', opened: openedAtMs !== undefined, progressed: this.events.progressed, livedMs })
  }
}

/** The standalone stream of one session, opened again and again. A drop is no error: idle streams are cut everywhere. */
export class Listener {
  readonly #office: StreamOffice
  #stream: Stream | undefined
  #timer: TimerHandle | undefined
  #failures = 0
  #stopped = false
  #isActive = true
  /** With what it was refused for want of credentials: worth another try once the server has taken a call with others. */
  #refused: Attached | undefined
  /** With what the server took a call last. */
  #accepted: Attached | undefined

  constructor(office: StreamOffice) {
    this.#office = office
  }

  /** There is a stream, or there will be one. */
  get isActive(): boolean {
    return this.#isActive && !this.#stopped
  }

  start(lastEventId?: string): void {
    if (this.#stopped || this.#office.isClosed) return
    this.#isActive = true
    const stream = new Stream(this.#office, undefined, (outcome) => this.#over(stream, outcome))
    this.#stream = stream
    stream.start(lastEventId)
  }

  /** For good. */
  stop(): void {
    this.#stopped = true
    this.#office.platform.clearTimer(this.#timer)
    this.#stream?.drop()
  }

  /** The server has taken a call with these credentials. */
  accepted(attached: Attached): void {
    this.#accepted = attached
    if (this.isActive || this.#refused === undefined || isAlike(this.#refused, attached)) return
    this.start()
  }

  #over(stream: Stream, outcome: StreamOutcome): void {
    if (this.#stopped || this.#stream !== stream) return
    this.#stream = undefined
    const { lastEventId, retryMs } = stream.events
    const plan = planListening(outcome, this.#failures, retryMs)
    switch (plan.kind) {
      case 'again':
        this.#failures = plan.failures
        return this.#later(plan.afterMs, lastEventId)
      case 'check':
        return this.#check()
      case 'stop':
        this.#isActive = false
        if (outcome.kind === 'refused' && (outcome.status === 401 || outcome.status === 403))
          this.#unauthorized(stream.attached)
    }
  }

  /** Never asked for twice with the same credentials. They may have been renewed while it was being refused. */
  #unauthorized(refused: Attached | undefined): void {
    const before = this.#refused
    const accepted = this.#accepted
    this.#refused = refused
    if (refused === undefined || accepted === undefined || isAlike(refused, accepted)) return
    if (before === undefined || !isAlike(before, refused)) this.start()
  }

  #later(ms: number, lastEventId: string | undefined): void {
    const { platform } = this.#office
    this.#timer = platform.setTimer(() => this.start(lastEventId), ms, 'background')
  }

  /** If the session is gone, its successor brings a listener of its own and stops this one. */
  #check(): void {
    if (++this.#failures >= LISTEN_FAILURES_MAX) {
      this.#isActive = false
      return
    }
    const delayMs = Math.min(RETRY_MS * 2 ** (this.#failures - 1), LISTEN_DELAY_MS_MAX)
    const again = (): void => {
      if (!this.#stopped) this.#later(delayMs, undefined)
    }
    this.#office.checkSession().then(again, again)
  }
}

function isAlike(one: Attached, other: Attached): boolean {
  return one.authorization === other.authorization && one.generation === other.generation
}

/** Reads the rest of a call's stream, from an event id on. Gives up after 5 attempts in a row that brought nothing. */
export function resumeCall(
  office: StreamOffice,
  call: Call,
  from: { lastEventId: string; retryMs: number | undefined },
): void {
  let attempts = 0
  let { lastEventId, retryMs = RETRY_MS } = from
  const renewals = newRenewals('call')
  const fail = (reason: string): void =>
    office
      .receiver()
      .fail(call, new WireError('closed', `The event stream of "${call.method}" broke, and ${reason}`, { sent: true }))
  const over = (stream: Stream, outcome: StreamOutcome): void => {
    if (office.isClosed || !office.receiver().isPending(call)) return
    if (outcome.kind === 'refused' && outcome.status < 500) return refused(stream, outcome.status)
    const { events } = stream
    attempts = events.progressed ? 0 : attempts + 1
    if (attempts >= RESUMPTIONS_MAX) return fail(`${attempts} attempts to resume it brought nothing`)
    lastEventId = events.lastEventId ?? lastEventId
    retryMs = events.retryMs ?? retryMs
    wait()
  }
  /** It is the call's own stream: what the call may ask for, this may. */
  const refused = (stream: Stream, status: number): void => {
    const none = (): void => fail(`its rest is not to be had (HTTP ${status})`)
    if ((status !== 401 && status !== 403) || stream.attached === undefined) return none()
    const challenge = { status, wwwAuthenticate: stream.challenge }
    office.renew(stream.attached, challenge, renewals, call).then((renewed) => {
      if (renewed === undefined) none()
      else start(renewed)
    }, none)
  }
  const start = (renewed?: Attached): void => {
    if (office.isClosed || !office.receiver().isPending(call)) return
    const stream: Stream = new Stream(office, call, (outcome) => over(stream, outcome))
    call.exchange = stream
    stream.start(lastEventId, renewed)
  }
  const wait = (): void => {
    const timer = office.platform.setTimer(() => start(), retryMs)
    call.exchange = { sent: true, drop: () => office.platform.clearTimer(timer) }
  }
  wait()
}
