// The session that a legacy server keeps: its id, its loss, its successor, its end.
import { ByteList } from './byte-list.ts'
import { WireError } from './errors.ts'
import type { Exchange, ExchangeSink } from './http-port.ts'
import { type Asked, planRefusal, REFUSAL_BYTES_MAX } from './http-refusal.ts'
import type { Platform } from './platform.ts'

/** What the session needs of the channel. */
export interface SessionHost {
  readonly platform: Platform
  readonly isClosing: boolean
  asked(call: undefined, hadSession: boolean): Asked
  /** Sends with the credentials of now, if there are any to be had. */
  sendAside(
    method: 'POST' | 'DELETE',
    body: string | undefined,
    sessionId: string,
  ): (sink: ExchangeSink) => Promise<Exchange>
  /** Shakes hands anew; nothing of the old session is used any more. */
  shakeHandsAnew(): Promise<void>
}

/** How long the end of a session is waited for. */
const END_MS = 1_000
const ID_CHARS_MAX = 4_096
const PING = '{"jsonrpc":"2.0","id":"session-check","method":"ping"}'

export class LegacySession {
  /** Undefined where the server gave none. */
  id: string | undefined
  /** Counts the sessions with this server. */
  generation = 0
  /** There was one, and its successor is not there yet. */
  isMissing = false
  /** While it is missing: the new handshake is over, and what has to be listed first is being listed. */
  isOpening = false
  readonly #host: SessionHost
  #renewing: Promise<void> | undefined
  #ending: Promise<void> = Promise.resolve()

  constructor(host: SessionHost) {
    this.#host = host
  }

  /** The id in an answer to `initialize`. Returns what is wrong with it. */
  saw(id: string | undefined): WireError | undefined {
    if (id !== undefined && (id.length > ID_CHARS_MAX || !/^[\x21-\x7e]+$/.test(id)))
      return new WireError('malformed', 'The server gave a session id that no header can carry', { sent: true })
    this.id = id
    return undefined
  }

  /** Resolves when there is another session than that one: one renewal for all who find out. Rejects with what that failed with. */
  after(generation: number): Promise<void> {
    if (this.#renewing !== undefined) {
      // Whoever was sent in the session that is just being made must not wait for it: the making waits for them.
      if (this.isOpening && generation === this.generation) return Promise.reject(forgottenAtOnce())
      return this.#renewing
    }
    if (generation !== this.generation && !this.isMissing) return Promise.resolve()
    return (this.#renewing = this.#renew().finally(() => {
      this.#renewing = undefined
    }))
  }

  /** Resolves when there is a session to send in; for what was not sent in any yet. Rejects with what making one failed with. */
  there(): Promise<void> {
    return this.#renewing ?? this.after(this.generation)
  }

  async #renew(): Promise<void> {
    this.generation++
    this.isMissing = true
    // Servers that allow one session at a time refuse the next one until the last is gone.
    await this.end()
    if (this.#host.isClosing) throw new WireError('closed', 'The session was closed', { sent: false })
    try {
      await this.#host.shakeHandsAnew()
      this.isMissing = false
    } finally {
      this.isOpening = false
    }
  }

  /** Tells the server that its session is over; waits for its answer 1 s at most, also when somebody else has told it already. */
  end(): Promise<void> {
    const { id } = this
    this.id = undefined
    if (id !== undefined) this.#ending = this.#delete(id)
    return this.#ending
  }

  async #delete(id: string): Promise<void> {
    const { platform } = this.#host
    let exchange: Exchange | undefined
    await new Promise<void>((resolve) => {
      const timer = platform.setTimer(resolve, END_MS)
      const done = (): void => {
        platform.clearTimer(timer)
        resolve()
      }
      this.#host
        .sendAside(
          'DELETE',
          undefined,
          id,
        )({ head: () => {}, data: () => {}, end: done, fail: done })
        .then((sent) => (exchange = sent), done)
    })
    exchange?.drop()
  }

  /**
   * A 404 on the stream alone says nothing about the session: asks with a ping whether the server still knows it. If not, a successor is made.
   * Resolves when that is settled, one way or another.
   */
  async check(): Promise<void> {
    const { id, generation } = this
    if (id === undefined) return
    let exchange: Exchange | undefined
    const isForgotten = await new Promise<boolean>((resolve) => {
      const sink = new CheckSink({ ...this.#host.asked(undefined, true), method: 'ping' }, resolve)
      this.#host
        .sendAside(
          'POST',
          PING,
          id,
        )(sink)
        .then(
          (sent) => (exchange = sent),
          () => resolve(false),
        )
    })
    exchange?.drop()
    if (isForgotten) await this.after(generation).catch(() => {}) // the next call tries again, and is told
  }
}

function forgottenAtOnce(): WireError {
  return new WireError('session-lost', 'The server has forgotten the new session at once', { sent: false })
}

/** Reads from the answer to a ping whether the session is forgotten. */
class CheckSink implements ExchangeSink {
  readonly #asked: Asked
  readonly #done: (isForgotten: boolean) => void
  #status = 0
  readonly #body: ByteList = new ByteList()

  constructor(asked: Asked, done: (isForgotten: boolean) => void) {
    this.#asked = asked
    this.#done = done
  }

  head(status: number): void {
    this.#status = status
    if (status < 300) this.#done(false)
  }

  data(chunk: Buffer): void {
    if (this.#body.length > REFUSAL_BYTES_MAX) return this.end()
    this.#body.add(chunk)
  }

  end(): void {
    const refusal = { status: this.#status, contentType: undefined, challenge: undefined, body: this.#body.join() }
    this.#done(planRefusal(refusal, this.#asked).kind === 'session-lost')
  }

  fail(): void {
    this.#done(false)
  }
}
