// What is under way when a host is closed: it is given up, or waited for, and nothing of it goes on afterwards.
import { HostError } from '../base/index.ts'

/** The work of one host that takes the time of somebody else: a person, or an authorization server. */
export class OpenWork {
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  /**
   * Does it with a signal that aborts with the caller's and with the close; it ends soon after that.
   * @throws {HostError} `HOST_CLOSED` when it was given up for the close; else what `work` throws.
   */
  async run<Value>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const closing = this.#closing.signal
    if (closing.aborted) throw closed()
    try {
      return await this.#follow(work(signal === undefined ? closing : AbortSignal.any([closing, signal])))
    } catch (error) {
      const isOurs = closing.aborted && signal?.aborted !== true
      throw isOurs && HostError.is(error, 'CANCELLED') ? closed(error) : error
    }
  }

  /** What has a limit of its own and is worth waiting for: it is not aborted, and nobody but the close waits for it. Never rejects. */
  async finish(work: Promise<unknown>): Promise<void> {
    await this.#follow(work).catch(() => {})
  }

  /** Aborts what can be, and resolves when nothing is under way. Never rejects. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#running)
  }

  async #follow<Value>(running: Promise<Value>): Promise<Value> {
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }
}

function closed(cause?: unknown): HostError {
  return new HostError('HOST_CLOSED', 'The host is closed', cause === undefined ? {} : { cause })
}
