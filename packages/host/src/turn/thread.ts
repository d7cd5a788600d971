// One thread: its stores and settings, and the turn that runs.
import { HostError, Lane } from '../base/index.ts'
import {
  type ContextFragment,
  type ExtensionConfiguration,
  ExtensionStore,
  type SelectedPluginSnapshot,
  type ThreadScope,
  type WorldStateSection,
} from '../extensions/index.ts'
import type { Thread, ThreadOptions, Turn, TurnOptions } from './interface.ts'
import type { ThreadRuntime } from './runtime.ts'
import type { Consents } from './step.ts'
import { ThreadServers } from './thread-servers.ts'
import { inSlots, LiveTurn, ToolMemory } from './turn.ts'

/** What a thread is made of. */
export interface ThreadInit {
  readonly options: ThreadOptions
  readonly runtime: ThreadRuntime
  onClose(thread: LiveThread): void
}

/** Different warnings that a thread tells; further ones are left out. */
const WARNINGS_MAX = 256

/** One thread. */
export class LiveThread implements Thread {
  readonly #init: ThreadInit
  readonly #scope: ThreadScope
  readonly #servers: ThreadServers
  readonly #consents: Consents
  /** One turn begins after the other. */
  readonly #lane = new Lane()
  readonly #warnings = new Set<string>()
  readonly #told: { sections: readonly WorldStateSection[] } = { sections: [] }
  readonly #toolMemory = new ToolMemory()
  #configuration: ExtensionConfiguration
  #turn: LiveTurn | undefined
  #closing: Promise<void> | undefined
  #stopListening: () => void = () => {}

  private constructor(init: ThreadInit) {
    const { options, runtime } = init
    this.#init = init
    const thread = new ExtensionStore('thread', options.id ?? runtime.randomId(), options.initial)
    this.#scope = { session: runtime.session, thread }
    this.#configuration = { pluginsEnabled: true, extensions: {}, ...options.configuration }
    this.#servers = new ThreadServers({
      thread: thread.levelId,
      scope: this.#scope,
      runtime,
      configuration: () => this.#configuration,
    })
    const { approve, trust } = options
    this.#consents = {
      remembered: new Set(),
      trust,
      ...(approve === undefined ? {} : { ask: approve }),
    }
  }

  /** Tells extensions that it begins. */
  static async start(init: ThreadInit): Promise<LiveThread> {
    const thread = new LiveThread(init)
    await thread.#start()
    return thread
  }

  get id(): string {
    return this.#scope.thread.levelId
  }
  get store(): ExtensionStore {
    return this.#scope.thread
  }
  get plugins(): SelectedPluginSnapshot {
    return this.#servers.plugins
  }

  /** Somebody else is signed in to the host. */
  accountReplaced(): void {
    this.#servers.accountReplaced()
  }

  async context({ signal }: { readonly signal?: AbortSignal } = {}): Promise<readonly ContextFragment[]> {
    this.#assertOpen()
    const said = await this.#init.runtime.calls.gather<'context', readonly ContextFragment[]>({
      kind: 'context',
      callback: 'threadContext',
      signal,
      call: (one) => one.threadContext?.(this.#scope),
    })
    return inSlots(said.flat())
  }

  configure(next: Partial<ExtensionConfiguration>): void {
    this.#assertOpen()
    const previous = this.#configuration
    this.#configuration = { ...previous, ...next }
    this.#init.runtime.calls.tell({
      kind: 'configuration',
      callback: 'onConfigurationChanged',
      call: (one) => one.onConfigurationChanged({ ...this.#scope, previous, next: this.#configuration }),
    })
    this.#servers.requestReprojection()
  }

  refreshServers(): void {
    this.#assertOpen()
    this.#servers.requestRefresh()
    void this.#servers.prewarm()
  }

  async turn(options: TurnOptions = {}): Promise<Turn> {
    this.#assertOpen()
    // Also one that is only beginning: whoever comes next does not wait for its catalogs.
    void this.#turn?.abort('replaced')
    const leave = await this.#lane.enter(options.signal)
    try {
      await this.#turn?.abort('replaced')
      this.#assertOpen()
      const { runtime } = this.#init
      const turn = new LiveTurn({
        scope: { ...this.#scope, turn: new ExtensionStore('turn', options.id ?? runtime.randomId()) },
        runtime,
        servers: this.#servers,
        consents: this.#consents,
        options,
        told: this.#told,
        toolMemory: this.#toolMemory,
        onEnd: (ended, cause) => this.#ended(ended, cause),
      })
      await turn.register()
      this.#turn = turn
      if (this.#closing !== undefined) await turn.abort('closed')
      await turn.begin()
      return turn
    } finally {
      leave()
    }
  }

  prewarm(): Promise<void> {
    return this.#closing === undefined ? this.#servers.prewarm() : Promise.resolve()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #start(): Promise<void> {
    const { options, runtime } = this.#init
    const { calls, resources, metrics } = runtime
    const input = {
      ...this.#scope,
      configuration: this.#configuration,
      resources,
      metrics,
      warn: (text: string) => this.#warn(text),
    }
    await calls.gather({
      kind: 'threadLifecycle',
      callback: 'onThreadStart',
      call: async (one) => one.onThreadStart?.(input),
    })
    if (options.isResumed === true)
      await calls.gather({
        kind: 'threadLifecycle',
        callback: 'onThreadResume',
        call: async (one) => one.onThreadResume?.(this.#scope),
      })
    const { signal } = options
    if (signal === undefined) return
    const onAbort = (): void => void this.close()
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    this.#stopListening = () => signal.removeEventListener('abort', onAbort)
  }

  #warn(text: string): void {
    if (this.#warnings.has(text) || this.#warnings.size >= WARNINGS_MAX) return
    this.#warnings.add(text)
    this.#init.runtime.emit({ kind: 'thread.warned', thread: this.id, text })
  }

  #ended(turn: LiveTurn, cause: 'turn-ended' | 'turn-aborted' | 'turn-failed'): void {
    if (this.#turn !== turn) return
    this.#turn = undefined
    this.#init.runtime.calls.tell({
      kind: 'threadLifecycle',
      callback: 'onThreadIdle',
      call: (one) => one.onThreadIdle?.({ ...this.#scope, cause }),
    })
  }

  async #close(): Promise<void> {
    this.#stopListening()
    await this.#turn?.abort('closed')
    const leave = await this.#lane.enter()
    leave()
    await this.#turn?.abort('closed')
    await this.#servers.close()
    const { runtime, onClose } = this.#init
    await runtime.calls.gather({
      kind: 'threadLifecycle',
      callback: 'onThreadStop',
      call: async (one) => one.onThreadStop?.(this.#scope),
    })
    await runtime.withdraw(this.id)
    onClose(this)
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new HostError('HOST_CLOSED', 'The thread is closed')
  }
}
