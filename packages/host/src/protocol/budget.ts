import type { Platform, TimerHandle } from '@convoke/wire'
import { HostError } from '../base/index.ts'

/** What a {@link StartupBudget} is made of. */
export interface StartupBudgetOptions {
  readonly server: string
  readonly platform: Platform
  /** In milliseconds. */
  readonly startupTimeoutMs: number
  /** The clock that runs until the first output, in milliseconds; undefined when nothing has to be installed. */
  readonly installTimeoutMs?: number
  /** The package runner that may be installing. */
  readonly runner?: string
  /** The longer clock has given way to the ordinary one. */
  onInstalled?(): void
}

/**
 * The wire and the listing get what is left and say more when it is over (they know the last words of the process); this clock ends
 * what they do not watch, so it is a little late.
 */
const SLACK_MS = 100

/**
 * The one clock of an attempt to start a server, from the first step to the last page of its tools. A package runner has a longer clock
 * of its own until the server itself says something; then the ordinary clock starts.
 */
export class StartupBudget {
  readonly #options: StartupBudgetOptions
  readonly #abort = new AbortController()
  #timer: TimerHandle | undefined
  #endsAtMs: number
  /** How many waits the clock stands still for. */
  #pauses = 0
  /** What was left when the clock was stopped, in milliseconds. */
  #leftMs = 0
  #isStopped = false
  #phase: 'installing' | 'starting'
  /** What is being waited for, for the message of a timeout. */
  waitingFor = ''

  constructor(options: StartupBudgetOptions) {
    this.#options = options
    this.#phase = options.installTimeoutMs === undefined ? 'starting' : 'installing'
    this.#endsAtMs = this.#arm(options.installTimeoutMs ?? options.startupTimeoutMs)
  }

  /** Aborts when the time is over or the attempt is cancelled; the reason is a `HostError`. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** What is left, in milliseconds; at least 1. */
  get leftMs(): number {
    return Math.max(1, this.#pauses > 0 ? this.#leftMs : this.#endsAtMs - this.#options.platform.now())
  }

  /** The whole of the clock that is running, in milliseconds. */
  get limitMs(): number {
    const { installTimeoutMs, startupTimeoutMs } = this.#options
    return this.#phase === 'installing' && installTimeoutMs !== undefined ? installTimeoutMs : startupTimeoutMs
  }

  /** The server itself has said something: nothing is being installed any more. */
  sawOutput(): void {
    if (this.#phase === 'starting' || this.#abort.signal.aborted) return
    this.#phase = 'starting'
    const { startupTimeoutMs } = this.#options
    if (this.#pauses > 0) this.#leftMs = startupTimeoutMs
    else this.#endsAtMs = this.#arm(startupTimeoutMs)
    this.#options.onInstalled?.()
  }

  /** Somebody has to be asked for credentials: the clock stands still until as many `resume` have come. */
  pause(): void {
    if (this.#pauses++ > 0) return
    const { platform } = this.#options
    this.#leftMs = this.#endsAtMs - platform.now()
    platform.clearTimer(this.#timer)
    this.#timer = undefined
  }

  resume(): void {
    if (--this.#pauses > 0 || this.#isStopped) return
    this.#endsAtMs = this.#arm(this.#leftMs)
  }

  /** Ends the attempt with `CANCELLED`. */
  cancel(why: string): void {
    this.#end(new HostError('CANCELLED', `Server "${this.#options.server}": ${why}`))
  }

  /** Stops the clock; the signal never aborts afterwards. */
  stop(): void {
    this.#isStopped = true
    this.#options.platform.clearTimer(this.#timer)
    this.#timer = undefined
  }

  #arm(limitMs: number): number {
    const { platform } = this.#options
    platform.clearTimer(this.#timer)
    this.#timer = platform.setTimer(() => this.#end(this.timeout()), limitMs + SLACK_MS)
    return platform.now() + limitMs
  }

  /** The failure of an attempt whose time is over. */
  timeout(): HostError {
    const { server, runner } = this.#options
    const details = { limitMs: this.limitMs }
    return this.#phase === 'installing'
      ? new HostError(
          'INSTALL_TIMEOUT',
          `Server "${server}": "${runner ?? 'the package runner'}" did not finish installing within ${this.limitMs} ms (installTimeoutMs)`,
          { details },
        )
      : new HostError(
          'STARTUP_TIMEOUT',
          `Server "${server}" did not start within ${this.limitMs} ms${this.waitingFor === '' ? '' : `: no answer to ${this.waitingFor}`}`,
          { details },
        )
  }

  #end(reason: HostError): void {
    this.stop()
    this.#abort.abort(reason)
  }
}
