// The time that credentials take: whose clocks stand still meanwhile, how long it may be, and what ends it early.
import type { Call } from './call.ts'
import type { Receiver } from './channel.ts'
import { WireError } from './errors.ts'
import type { Platform } from './platform.ts'

/** What waiting needs of the channel. */
export interface WaitingHost {
  readonly platform: Platform
  receiver(): Receiver
  /** Others wait until this call has been answered: it makes their session. */
  isMaking(call: Call): boolean
  /** Told when the first waiting begins and when the last one is over. */
  onCredentials(phase: 'waiting' | 'over'): void
}

/** For one answer of whoever has the credentials. */
export const CREDENTIALS_MS_MAX = 120_000

export class Waiting {
  readonly #host: WaitingHost
  #open = 0
  #sinceMs = 0
  #totalMs = 0
  /** Waits on behalf of calls that make a session. */
  #making = 0
  /** Calls that wait for the session that is being made. */
  readonly #behind = new Set<Call>()
  readonly #limits = new Set<() => void>()
  #closed = false

  constructor(host: WaitingHost) {
    this.#host = host
  }

  /** How long somebody has waited so far, in ms, the present waiting included. */
  get totalMs(): number {
    return this.#totalMs + (this.#open > 0 ? this.#host.platform.now() - this.#sinceMs : 0)
  }

  /**
   * Waits for `work` on behalf of a call, whose clocks stand still meanwhile. The end of the call ends the waiting, never the
   * work.
   */
  wait<Value>(call: Call | undefined, work: Promise<Value>): Promise<Value> {
    if (call === undefined) return work
    return new Promise((resolve, reject) => {
      const goOn = this.#standStill(call)
      const before = call.exchange
      const over = (): void => {
        if (call.exchange === handle) call.exchange = before
        goOn()
      }
      const handle = {
        sent: before?.sent ?? false,
        drop: () => {
          over()
          before?.drop()
          reject(new WireError('cancelled', 'Nobody waits for the credentials any more', { sent: false }))
        },
      }
      call.exchange = handle
      settleWith(work, { resolve, reject, over })
    })
  }

  #standStill(call: Call): () => void {
    const { platform } = this.#host
    const isMaking = this.#host.isMaking(call)
    this.#host.receiver().pause(call)
    if (isMaking && this.#making++ === 0) for (const one of this.#behind) this.#host.receiver().pause(one)
    if (this.#open++ === 0) {
      this.#sinceMs = platform.now()
      this.#host.onCredentials('waiting')
    }
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      if (--this.#open === 0) {
        this.#totalMs += platform.now() - this.#sinceMs
        this.#host.onCredentials('over')
      }
      this.#host.receiver().resume(call)
      if (isMaking && --this.#making === 0) for (const one of this.#behind) this.#host.receiver().resume(one)
    }
  }

  /** The call waits until there is a session: what its making waits for is not the time of the call either. */
  async behind(call: Call | undefined, made: Promise<void>): Promise<void> {
    if (call === undefined) return made
    this.#behind.add(call)
    if (this.#making > 0) this.#host.receiver().pause(call)
    try {
      await made
    } finally {
      this.#behind.delete(call)
      if (this.#making > 0) this.#host.receiver().resume(call)
    }
  }

  /** Rejects with `unauthorized` when `work` takes longer than anybody should wait; with `closed` at the end of the connection. */
  limited<Value>(work: Promise<Value>): Promise<Value> {
    const { platform } = this.#host
    return new Promise((resolve, reject) => {
      const stop = (error: WireError): void => {
        over()
        reject(error)
      }
      const timer = platform.setTimer(() => stop(tooLate()), CREDENTIALS_MS_MAX, 'background')
      const onClose = (): void => stop(closed())
      const over = (): void => {
        platform.clearTimer(timer)
        this.#limits.delete(onClose)
      }
      this.#limits.add(onClose)
      settleWith(work, { resolve, reject, over })
      if (this.#closed) onClose()
    })
  }

  /** Nobody waits any more. */
  close(): void {
    this.#closed = true
    for (const stop of [...this.#limits]) stop()
  }
}

interface Settling<Value> {
  resolve(value: Value): void
  reject(error: unknown): void
  /** Before whoever waits goes on. */
  over(): void
}

function settleWith<Value>(work: Promise<Value>, { resolve, reject, over }: Settling<Value>): void {
  work.then(
    (value) => {
      over()
      resolve(value)
    },
    (error: unknown) => {
      over()
      reject(error)
    },
  )
}

function tooLate(): WireError {
  return new WireError(
    'unauthorized',
    `No credentials were to be had for this server within ${CREDENTIALS_MS_MAX} ms`,
    {
      sent: false,
    },
  )
}

function closed(): WireError {
  return new WireError('closed', 'The session was closed', { sent: false })
}
