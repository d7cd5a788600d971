// Which view of the host is served. It follows what the host tells: in bursts, one step at a time, and never under a running call.
import type { Host, HostEvent } from '@convoke/host'
import { View } from './view.ts'

/** What may have changed for clients. */
export interface ViewChange {
  readonly tools: boolean
  readonly prompts: boolean
  readonly resources: boolean
}

export interface CurrentViewOptions {
  readonly host: Host
  readonly onChanged: (change: ViewChange) => void
  /** Changes that come within this time are taken together, in ms. */
  readonly debounceMs: number
  /** Is there anybody who waits for servers to come back? */
  readonly isWatched: () => boolean
}

const LOOK_MS_MIN = 1_000
/** A server that fails so often in a row is started again only when somebody asks for it. */
const RETRIES_MAX = 8

export class CurrentView implements AsyncDisposable {
  readonly #options: CurrentViewOptions
  readonly #unsubscribe: () => void
  #view: View | undefined
  #refreshing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #retryTimer: NodeJS.Timeout | undefined
  /** How often each server was started again for those who watch. */
  readonly #retries = new Map<string, number>()
  #offersChanged = { prompts: false, resources: false }
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #isClosed = false

  private constructor(options: CurrentViewOptions) {
    this.#options = options
    this.#unsubscribe = options.host.subscribe((event) => this.#heard(event))
  }

  /** Takes the first view. @throws {HostError} `HOST_CLOSED` */
  static async open(options: CurrentViewOptions): Promise<CurrentView> {
    const current = new CurrentView(options)
    try {
      current.#view = await takeView(options.host)
      return current
    } catch (error) {
      current.#unsubscribe()
      throw error
    }
  }

  get view(): View {
    return this.#view as View
  }

  #heard(event: HostEvent): void {
    switch (event.kind) {
      case 'tool-catalog.changed':
        return this.#later()
      case 'set.published':
        // Whoever came or went has more than tools.
        this.#offersChanged = { prompts: true, resources: true }
        return this.#later()
      case 'prompt-catalog.changed':
        this.#offersChanged.prompts = true
        return this.#later()
      case 'resource-catalog.changed':
        this.#offersChanged.resources = true
        return this.#later()
      case 'server.state-changed':
        if (event.status.state === 'ready') this.#retries.delete(event.status.name)
        if (event.status.state === 'failed') this.#retryLater()
        // Whoever comes or goes brings or takes all that it offers.
        if (this.#wasReady(event.status.name) !== (event.status.state === 'ready')) {
          this.#offersChanged = { prompts: true, resources: true }
          this.#later()
        }
        return
      default:
    }
  }

  #wasReady(server: string): boolean {
    return this.#view?.port(server) !== undefined
  }

  #later(): void {
    if (this.#isClosed || this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.refresh()
    }, this.#options.debounceMs)
  }

  /** Those who watch see a failed server's tools vanish; they come back without anybody calling them. */
  #retryLater(): void {
    if (this.#isClosed || !this.#options.isWatched()) return
    const failed = this.#options.host.statuses.filter(
      ({ name, state }) => state === 'failed' && (this.#retries.get(name) ?? 0) < RETRIES_MAX,
    )
    clearTimeout(this.#retryTimer)
    if (failed.length === 0) return
    const dueAtMs = Math.min(...failed.map(({ nextRetryAtMs }) => nextRetryAtMs ?? 0))
    this.#retryTimer = setTimeout(
      () => {
        const nowMs = Date.now()
        for (const { name, nextRetryAtMs } of failed)
          if ((nextRetryAtMs ?? 0) <= nowMs) this.#retries.set(name, (this.#retries.get(name) ?? 0) + 1)
        void this.refresh().then(() => this.#retryLater())
      },
      Math.max(this.#options.debounceMs, dueAtMs - Date.now()),
    )
  }

  /** A server that failed is started again when somebody looks and its time has come. At most one look a second. */
  lookAgain(): void {
    const nowMs = performance.now()
    if (nowMs - this.#lookedAtMs < LOOK_MS_MIN) return
    this.#lookedAtMs = nowMs
    const dateMs = Date.now()
    const isDue = this.#options.host.statuses.some(
      ({ state, nextRetryAtMs }) => state === 'failed' && (nextRetryAtMs ?? 0) <= dateMs,
    )
    if (isDue) void this.refresh()
  }

  /** Takes the view of now. One at a time; never rejects. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #refresh(): Promise<void> {
    if (this.#isClosed) return
    const changed = this.#offersChanged
    this.#offersChanged = { prompts: false, resources: false }
    let next: View
    try {
      next = await takeView(this.#options.host)
    } catch {
      return // the host is closing
    }
    if (this.#isClosed) return void next[Symbol.asyncDispose]()
    const previous = this.view
    next.inherit(previous)
    this.#view = next
    previous.retire()
    const change = { tools: !next.showsAs(previous), ...changed }
    if (change.tools || change.prompts || change.resources) this.#options.onChanged(change)
  }

  /** Stops following and lets go. Calls that still run keep their view until the host closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    clearTimeout(this.#retryTimer)
    this.#unsubscribe()
    await this.#refreshing
    await this.#view?.[Symbol.asyncDispose]()
  }
}

async function takeView(host: Host): Promise<View> {
  const binding = await host.bind({ grace: 'none' })
  return new View(binding, host.definitions)
}
