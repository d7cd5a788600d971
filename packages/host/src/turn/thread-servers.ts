// Keeps what a thread contributes to the servers of its host up to date: a mark that something may be another now, and one publication at a time.
import { Lane } from '../base/index.ts'
import {
  connectorSnapshot,
  type ExtensionConfiguration,
  NO_PLUGINS,
  SELECTED_PLUGINS,
  type SelectedPluginSnapshot,
  type ServerContributionInput,
  type ThreadScope,
} from '../extensions/index.ts'
import { Perspective } from '../set/index.ts'
import { type Contributed, type LoadedPlugin, projectThread, type ThreadProjection } from './projection.ts'
import type { ThreadRuntime } from './runtime.ts'

/** What {@link ThreadServers} are made of. */
export interface ThreadServersInit {
  readonly thread: string
  readonly scope: ThreadScope
  readonly runtime: ThreadRuntime
  /** The settings of now. */
  configuration(): ExtensionConfiguration
}

/** Publications in a row, when every one of them is outdated at once; then the next step goes on. */
const ROUNDS_MAX = 8

/** The servers of one thread. */
export class ThreadServers {
  readonly #init: ThreadServersInit
  readonly #lane = new Lane()
  #isDirty = true
  #reconnects = false
  #isPublishing = false
  /** That of what is published. */
  #authKey: object | undefined
  /** That which contributors have heard of. */
  #heardAuthKey: object | undefined
  #perspective: Perspective
  #projection: string | undefined
  #warming: Promise<void> | undefined
  readonly #closed = new AbortController()

  constructor(init: ThreadServersInit) {
    this.#init = init
    this.#authKey = init.runtime.authKey()
    this.#heardAuthKey = this.#authKey
    this.#perspective = this.#look([])
  }

  /** What bindings of this thread see. */
  get perspective(): Perspective {
    return this.#perspective
  }

  get plugins(): SelectedPluginSnapshot {
    return this.#init.scope.thread.get(SELECTED_PLUGINS) ?? NO_PLUGINS
  }

  /** What is contributed may be another now. */
  requestReprojection(): void {
    this.#isDirty = true
  }

  /** The servers are to be connected anew. */
  requestRefresh(): void {
    this.#isDirty = true
    this.#reconnects = true
  }

  /** Somebody else is signed in to the host: contributors drop what they know, at once, and are asked anew in the background. */
  accountReplaced(): void {
    this.#tellAuthChange()
    this.requestReprojection()
    void this.prewarm()
  }

  /** In the background; whoever asks while it runs shares it. Never rejects. */
  prewarm(): Promise<void> {
    if (this.#closed.signal.aborted) return Promise.resolve()
    this.#warming ??= this.refreshIfDirty(this.#closed.signal)
      .catch(() => {}) // the next step tries again, and is told
      .finally(() => {
        this.#warming = undefined
      })
    return this.#warming
  }

  /** Ends what runs in the background. Never rejects. */
  async close(): Promise<void> {
    this.#closed.abort()
    await this.#warming
  }

  /**
   * Publishes what is contributed if it may be another now.
   * @throws {HostError} `CANCELLED`, `HOST_CLOSED`; it is tried again by the next one then.
   */
  async refreshIfDirty(signal?: AbortSignal): Promise<void> {
    if (!this.#isOutdated && !this.#isPublishing) return
    const leave = await this.#lane.enter(signal)
    try {
      for (let round = 0; round < ROUNDS_MAX && this.#isOutdated; round++) await this.#publish(signal)
    } finally {
      leave()
    }
  }

  get #isOutdated(): boolean {
    return this.#isDirty || this.#authKey !== this.#init.runtime.authKey()
  }

  async #publish(signal: AbortSignal | undefined): Promise<void> {
    const { runtime, thread, scope } = this.#init
    const authKey = runtime.authKey()
    const reconnect = this.#reconnects
    this.#isDirty = false
    this.#reconnects = false
    this.#isPublishing = true
    let isPublished = false
    try {
      const projection = await this.#project(authKey !== this.#authKey, signal)
      await runtime.contribute(thread, projection.registrations, { reconnect, signal })
      isPublished = true
      this.#authKey = authKey
      this.#use(projection, scope)
    } finally {
      this.#isPublishing = false
      if (!isPublished) {
        this.#isDirty = true
        this.#reconnects ||= reconnect
      }
    }
  }

  #use({ connectors, plugins }: ThreadProjection, { thread }: ThreadScope): void {
    const seen = JSON.stringify(connectors)
    // Bindings of one perspective share what they see.
    if (seen !== this.#projection) this.#perspective = this.#look(connectors)
    this.#projection = seen
    const before = JSON.stringify(this.plugins)
    if (before === JSON.stringify(plugins)) return
    thread.insert(SELECTED_PLUGINS, plugins)
    this.#init.runtime.emit({
      kind: 'thread.plugins-changed',
      thread: this.#init.thread,
      plugins: plugins.plugins.map(({ pluginId }) => pluginId),
    })
  }

  #look(connectors: ThreadProjection['connectors']): Perspective {
    const { runtime, thread } = this.#init
    return new Perspective({
      attribution: connectorSnapshot(connectors).attribution,
      sees: ({ name }) => runtime.sees(thread, name),
    })
  }

  async #project(authChanged: boolean, signal: AbortSignal = NEVER): Promise<ThreadProjection> {
    const { scope } = this.#init
    const { calls } = this.#init.runtime
    this.#tellAuthChange()
    const configuration = this.#init.configuration()
    const input: ServerContributionInput = { ...scope, configuration, authChanged, signal }
    const selected = await this.#selected(input)
    const contributed = await calls.gather<'servers', Contributed>({
      kind: 'servers',
      callback: 'contribute',
      signal,
      call: async (one, extension) => ({ extension, said: (await one.contribute?.(input)) ?? [] }),
    })
    return projectThread({ selected, contributed, pluginsEnabled: configuration.pluginsEnabled })
  }

  #tellAuthChange(): void {
    const { runtime, scope } = this.#init
    const authKey = runtime.authKey()
    if (authKey === this.#heardAuthKey) return
    this.#heardAuthKey = authKey
    runtime.calls.tell({ kind: 'servers', callback: 'onAuthChanged', call: (one) => one.onAuthChanged?.(scope) })
  }

  async #selected(input: ServerContributionInput): Promise<LoadedPlugin[]> {
    const { calls } = this.#init.runtime
    const { signal } = input
    const loaded: LoadedPlugin[] = []
    for (const contributor of calls.all('servers')) {
      const plugins = await calls.one(contributor, {
        kind: 'servers',
        callback: 'selectedPlugins',
        signal,
        call: (one) => one.selectedPlugins?.(input),
      })
      for (const plugin of plugins ?? []) {
        if (!input.configuration.pluginsEnabled) {
          loaded.push({ plugin, content: undefined })
          continue
        }
        const content = await calls.one(contributor, {
          kind: 'servers',
          callback: 'load',
          signal,
          call: () => plugin.load({ signal }),
        })
        loaded.push({ plugin, content })
      }
    }
    return loaded
  }
}

const NEVER: AbortSignal = new AbortController().signal
