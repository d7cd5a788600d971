// The channel's side of HTTP+SSE (2024-11-05): when it is chosen, its stream, what waits on it, and its return after a loss.
import type { Call } from './call.ts'
import type { Receiver } from './channel.ts'
import { WireError } from './errors.ts'
import type { Attached } from './http-credentials.ts'
import type { StreamRequest } from './http-listen.ts'
import type { Exchange, ExchangeSink } from './http-port.ts'
import type { Post } from './http-post.ts'
import { type Asked, redact } from './http-refusal.ts'
import { type Challenge, newRenewals, type Renewals } from './http-renewal.ts'
import { OlderStream } from './legacy-sse.ts'
import type { Platform, TimerHandle } from './platform.ts'
import { METHOD_NOT_FOUND } from './rpc-error.ts'

export interface OlderHost {
  readonly isClosed: boolean
  readonly platform: Platform
  readonly url: URL
  readonly messageBytesMax: number
  readonly sessionGeneration: number
  receiver(): Receiver
  attach(method: 'GET', call: Call | undefined, ready?: Attached): Attached | Promise<Attached>
  renew(
    refused: Attached,
    challenge: Challenge,
    renewals: Renewals,
    call: Call | undefined,
  ): Promise<Attached | undefined>
  get(request: StreamRequest, sink: ExchangeSink, started: (exchange: Exchange) => void): void
  asked(call: Call | undefined, hadSession: boolean, attached: Attached): Asked
  /** The stream, and with it the session, is gone. */
  sessionGone(): void
  sessionAfter(generation: number): Promise<void>
}

const RETURN_MS = 1_000
const RETURN_MS_MAX = 30_000
/** Attempts to come back on its own; afterwards the next call tries. */
const RETURNS_MAX = 5
const CALLS_CHECKED_AT = 256

export class OlderTransport {
  /** The server speaks this and nothing newer. */
  isChosen = false
  /** Where to post; undefined while there is no stream. */
  path: string | undefined
  /** It was tried in vain. */
  #isAbsent = false
  readonly #host: OlderHost
  #stream: OlderStream | undefined
  #opening: Promise<void> | undefined
  /** Posted on this stream; some may be settled. */
  #calls = new Set<Call>()
  #checkAt = CALLS_CHECKED_AT
  #timer: TimerHandle | undefined
  #returns = 0

  constructor(host: OlderHost) {
    this.#host = host
  }

  choose(): void {
    this.isChosen = true
  }

  /** After the newer transport was refused. False: this is not there either. */
  async fallBack(call: Call | undefined): Promise<boolean> {
    if (this.#isAbsent) return false
    try {
      await this.#open(call)
      this.isChosen = true
    } catch {
      this.#isAbsent = true
      this.#leave()
    }
    return this.isChosen
  }

  send(post: Post): void {
    // Nothing of the modern era ever came over this transport.
    if (post.call?.method === 'server/discover') return post.refuse(unknown())
    if (this.path !== undefined) return this.#go(post)
    if (post.call !== undefined && post.call.method !== 'initialize') return post.refuse(gone())
    this.#open(post.call).then(
      () => this.#go(post),
      (error: WireError) => post.refuse(error),
    )
  }

  #go(post: Post): void {
    const { call } = post
    if (call !== undefined) {
      this.#calls.add(call)
      if (this.#calls.size >= this.#checkAt) this.#forgetSettled()
    }
    post.start()
  }

  #forgetSettled(): void {
    for (const call of this.#calls) if (!this.#host.receiver().isPending(call)) this.#calls.delete(call)
    this.#checkAt = Math.max(CALLS_CHECKED_AT, this.#calls.size * 2)
  }

  /** On behalf of a call, which is `initialize`: nothing else makes a session. */
  #open(call: Call | undefined): Promise<void> {
    return (this.#opening ??= this.#openSignedIn(call).finally(() => {
      this.#opening = undefined
    }))
  }

  async #openSignedIn(call: Call | undefined): Promise<void> {
    const renewals = newRenewals('call')
    let renewed: Attached | undefined
    for (;;) {
      const attached = await this.#host.attach('GET', call, renewed)
      const stream = new OlderStream({
        platform: this.#host.platform,
        url: this.#host.url,
        messageBytesMax: this.#host.messageBytesMax,
        get: (sink, started) =>
          this.#host.get({ lastEventId: undefined, call: undefined, ready: attached }, sink, started),
        message: (bytes, start, end) => this.#host.receiver().receive(bytes, start, end),
        oversized: (head, tail, length) => this.#host.receiver().receiveOversized(head, tail, length),
        lost: (error) => this.#lost(stream, error),
      })
      this.#stream = stream
      try {
        this.path = await stream.open()
        this.#returns = 0
        return
      } catch (error) {
        if (!(error instanceof WireError) || error.code !== 'unauthorized') throw error
        const { status = 401, challenge } = error.details
        renewed = await this.#host.renew(attached, { status, wwwAuthenticate: challenge }, renewals, call)
        if (renewed === undefined) throw shown(error, this.#host.asked(undefined, false, attached))
      }
    }
  }

  #lost(stream: OlderStream, error: WireError): void {
    if (this.#stream !== stream || this.#host.isClosed) return
    this.#leave()
    const calls = this.#calls
    this.#calls = new Set()
    this.#host.sessionGone()
    const receiver = this.#host.receiver()
    for (const call of calls)
      if (receiver.isPending(call))
        receiver.fail(
          call,
          new WireError('closed', `The event stream broke before the answer to "${call.method}": ${error.message}`, {
            sent: true,
            cause: error,
          }),
        )
    this.#comeBack()
  }

  /** On its own as well: notifications are wanted even when nobody calls. */
  #comeBack(): void {
    if (this.#returns >= RETURNS_MAX) return
    const delayMs = Math.min(RETURN_MS * 2 ** this.#returns++, RETURN_MS_MAX)
    const generation = this.#host.sessionGeneration
    this.#timer = this.#host.platform.setTimer(
      () => {
        if (this.#host.isClosed || this.path !== undefined) return
        this.#host.sessionAfter(generation).catch(() => this.#comeBack())
      },
      delayMs,
      'background',
    )
  }

  /** The session is to be made anew: on a stream of its own. */
  reset(): void {
    this.#leave()
  }

  #leave(): void {
    const stream = this.#stream
    this.#stream = undefined
    this.path = undefined
    this.#host.platform.clearTimer(this.#timer)
    stream?.close()
  }

  close(): void {
    this.#leave()
  }
}

function unknown(): WireError {
  return new WireError('remote', 'Method not found: server/discover', {
    rpc: { code: METHOD_NOT_FOUND, message: 'Method not found' },
    sent: false,
  })
}

/** The server may have repeated what it was sent. */
function shown(error: WireError, { secrets }: Asked): WireError {
  const { challenge } = error.details
  if (challenge === undefined) return error
  return new WireError(error.code, error.message, { ...error.details, challenge: redact(challenge, secrets) })
}

function gone(): WireError {
  return new WireError('closed', 'The event stream is gone', { sent: false })
}
