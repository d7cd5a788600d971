import type { Platform, TimerHandle } from '../protocol/index.ts'
import { CALM, decideRefresh, type RefreshAction, type RefreshEvent, type RefreshState } from './decide.ts'

/** What a {@link Refresher} does when its time has come. */
export interface RefresherOptions {
  readonly platform: Platform
  /** Never rejects. */
  refresh(): Promise<void>
  /** A storm was broken; nothing is asked for `ms`. */
  onPause(refreshes: number, ms: number): void
  /** A pause is over: refreshing again. */
  onResume(): void
}

/** Carries out what `decide.ts` decides: one timer, one refresh at a time. */
export class Refresher {
  readonly #options: RefresherOptions
  #state: RefreshState = CALM
  #timer: TimerHandle | undefined
  #isStopped = false

  constructor(options: RefresherOptions) {
    this.#options = options
  }

  /** The server says that something changed. */
  notice(): void {
    this.#decide('noticed')
  }

  /** Nothing is asked any more; a refresh that runs is not waited for. */
  stop(): void {
    this.#isStopped = true
    this.#options.platform.clearTimer(this.#timer)
    this.#timer = undefined
  }

  #decide(kind: RefreshEvent['kind']): void {
    if (this.#isStopped) return
    const wasPaused = this.#state.pausedUntilMs !== undefined
    const { state, action } = decideRefresh(this.#state, { kind, nowMs: this.#options.platform.now() })
    this.#state = state
    if (wasPaused && state.pausedUntilMs === undefined) this.#options.onResume()
    this.#act(action)
  }

  #act(action: RefreshAction): void {
    switch (action.kind) {
      case 'wait':
        break
      case 'ring-in':
        this.#ringIn(action.ms)
        break
      case 'pause':
        this.#options.onPause(action.refreshes, action.ms)
        this.#ringIn(action.ms)
        break
      case 'refresh':
        void this.#options.refresh().then(() => this.#decide('done'))
        break
    }
  }

  #ringIn(ms: number): void {
    const { platform } = this.#options
    platform.clearTimer(this.#timer)
    this.#timer = platform.setTimer(() => this.#decide('due'), ms, 'background')
  }
}
