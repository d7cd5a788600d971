// Looks again at what plugins an account has: once per turn and account, one question at a time per thread, and never for longer than somebody waits.
import { HostError, untilAborted } from '../../base/index.ts'
import {
  type CatalogRefreshInput,
  type ExtensionStore,
  type ResourceClient,
  StoreKey,
  type ThreadStartInput,
} from '../../extensions/index.ts'
import type { PluginCatalog } from '../catalog/catalog.ts'
import { readCatalog } from '../catalog/read-catalog.ts'
import { type AnswerPlan, decideAnswer, decideRefresh, type RefreshPlan } from './decide.ts'
import { type PluginClock, type PluginProvider, type PluginQuery, PROVIDER_TIMEOUT_MS } from './provider.ts'
import {
  type AuthKey,
  type PluginsThreadState,
  type RefreshKeys,
  visibleCatalog,
  withoutGeneration,
  withPluginsEnabled,
} from './state.ts'
import { ThreadPlugins } from './thread-plugins.ts'

/** What {@link HostedPlugins} are made of. */
export interface HostedPluginsInit {
  /** Undefined: nothing is ever asked. */
  readonly provider: PluginProvider | undefined
  readonly appsServer: string
  readonly clock: PluginClock
}

/** Where the resources of the host stand in the store of a session. */
export const PLUGIN_RESOURCES: StoreKey<ResourceClient> = new StoreKey('resources for plugins')

/** Is what is contributed another now? */
export type Refreshed = 'changed' | 'unchanged'

type FetchPlan = Extract<RefreshPlan, { kind: 'fetch' }>
type Answer =
  | { readonly kind: 'answered'; readonly catalog: PluginCatalog }
  | { readonly kind: 'failed'; readonly because: string }

/** The hosted plugins of all threads. What belongs to one thread stands in its store. */
export class HostedPlugins {
  readonly #init: HostedPluginsInit
  // Keys of this object alone: another one beside it has plugins of its own.
  readonly #threads = new StoreKey<ThreadPlugins>('hosted plugins')
  readonly #accepted = new StoreKey<{ readonly auth: AuthKey }>('accepted plugins')

  constructor(init: HostedPluginsInit) {
    this.#init = init
  }

  /** The thread begins. */
  start({ thread, session, configuration, resources, metrics, warn }: ThreadStartInput): void {
    const plugins = this.#of(thread)
    plugins.hear({ metrics, warn })
    plugins.state = withPluginsEnabled(plugins.state, configuration.pluginsEnabled)
    if (resources !== undefined) session.insert(PLUGIN_RESOURCES, resources)
  }

  /** Plugins were switched on or off, or neither. */
  configure(thread: ExtensionStore, enabled: boolean): void {
    const plugins = this.#of(thread)
    plugins.state = withPluginsEnabled(plugins.state, enabled)
  }

  /** Nothing of what was listed is shown any more; an answer that is on its way is refused. */
  drop(thread: ExtensionStore): void {
    const plugins = thread.get(this.#threads)
    if (plugins !== undefined) plugins.state = withoutGeneration(plugins.state)
  }

  /** The thread has ended. */
  stop(thread: ExtensionStore): void {
    thread.get(this.#threads)?.stop()
  }

  /** Do turns of this thread ask? */
  asks(thread: ExtensionStore): boolean {
    return this.#init.provider !== undefined && thread.get(this.#threads)?.state.kind === 'on'
  }

  /** What may be shown now; undefined: nothing was listed for whoever the host is now. */
  catalog(thread: ExtensionStore): PluginCatalog | undefined {
    const state = thread.get(this.#threads)?.state
    return state === undefined ? undefined : visibleCatalog(state, this.#authNow(state))
  }

  /** A turn begins: what was accepted before in it does not count. */
  async startTurn(input: CatalogRefreshInput): Promise<void> {
    input.turn.remove(this.#accepted)
    await this.refresh(input)
  }

  /**
   * Asks the provider, unless that is not needed, or too soon.
   * @throws {HostError} `CANCELLED` on abort; whoever waits behind asks at once.
   */
  async refresh(input: CatalogRefreshInput): Promise<Refreshed> {
    const { provider } = this.#init
    const plugins = input.thread.get(this.#threads)
    if (provider === undefined || plugins === undefined) return 'unchanged'
    const hasWaited = plugins.isBusy
    const leave = await plugins.enter(input.signal)
    try {
      return await this.#refresh(input, { plugins, provider, hasWaited })
    } finally {
      leave()
    }
  }

  async #refresh(
    input: CatalogRefreshInput,
    { plugins, provider, hasWaited }: { plugins: ThreadPlugins; provider: PluginProvider; hasWaited: boolean },
  ): Promise<Refreshed> {
    const { session, thread, turn, turnId, signal } = input
    const { appsServer, clock } = this.#init
    const resources = session.get(PLUGIN_RESOURCES)
    const keys = this.#keysOf(resources)
    const facts = {
      client: resources,
      keys,
      generationAuthNow: this.#authNow(plugins.state),
      accepted: turn.get(this.#accepted),
      hasWaited,
      lastSucceeded: plugins.lastSucceeded,
    }
    const plan = decideRefresh(plugins.state, facts, clock.now())
    if (plan.kind !== 'fetch') return this.#skip(plan, { plugins, turn, keys })
    this.#begin(plan, plugins, turn)
    const query: PluginQuery = { threadId: thread.levelId, turnId, resources, appsServer }
    const answer = await this.#ask(provider, query, { signal, stopped: plugins.stopped })
    const generationAuthNow = this.#authNow(plugins.state)
    const become = decideAnswer(plugins.state, { keys, generationAuthNow, outcome: answer }, clock.now())
    this.#settle(become, answer, plugins)
    if (become.kind === 'published') {
      plugins.lastSucceeded = true
      turn.insert(this.#accepted, { auth: keys.auth })
    }
    return plan.hasCleared || become.kind === 'published' ? 'changed' : 'unchanged'
  }

  #skip(
    plan: Exclude<RefreshPlan, FetchPlan>,
    { plugins, turn, keys }: { plugins: ThreadPlugins; turn: ExtensionStore; keys: RefreshKeys },
  ): Refreshed {
    if (plan.kind === 'cooldown') plugins.count('plugins.cooldown-hits')
    if (plan.kind === 'reuse') {
      if (plan.because === 'waited') plugins.count('plugins.coalesced')
      turn.insert(this.#accepted, { auth: keys.auth })
    }
    return 'unchanged'
  }

  /** From here on nobody takes this refresh for one that has succeeded, also if it never comes back. */
  #begin(plan: FetchPlan, plugins: ThreadPlugins, turn: ExtensionStore): void {
    plugins.state = plan.state
    plugins.lastSucceeded = false
    turn.remove(this.#accepted)
    plugins.count('plugins.calls')
  }

  #settle(become: AnswerPlan, answer: Answer, plugins: ThreadPlugins): void {
    if (become.kind === 'refused') return plugins.count('plugins.refused-late')
    plugins.state = become.state
    const told = answer.kind === 'answered' ? answer.catalog.warnings : [answer.because]
    for (const text of told) plugins.warn(`Plugins of server "${this.#init.appsServer}": ${text}`)
    if (become.kind === 'failed') plugins.count('plugins.failures')
    else if (become.hasKeptPrevious) plugins.count('plugins.partial-kept')
  }

  /** @throws {HostError} `CANCELLED` when `signal` aborts. */
  async #ask(
    provider: PluginProvider,
    query: PluginQuery,
    { signal, stopped }: { readonly signal: AbortSignal; readonly stopped: AbortSignal },
  ): Promise<Answer> {
    const { clock } = this.#init
    const abort = new AbortController()
    const onAbort = (): void => abort.abort()
    let isLate = false
    const timer = clock.setTimer(() => {
      isLate = true
      onAbort()
    }, PROVIDER_TIMEOUT_MS)
    for (const one of [signal, stopped]) one.addEventListener('abort', onAbort, { once: true })
    try {
      if (signal.aborted || stopped.aborted) onAbort()
      const listed = async (): Promise<unknown> => provider.list(query, { signal: abort.signal })
      const catalog = readCatalog(await untilAborted(listed(), abort.signal))
      return catalog === undefined
        ? { kind: 'failed', because: 'the answer is no catalog' }
        : { kind: 'answered', catalog }
    } catch (error) {
      if (signal.aborted) throw new HostError('CANCELLED', 'Cancelled by the caller', { cause: error })
      // What the provider said is its own: it may name what nobody else is to see.
      return {
        kind: 'failed',
        because: isLate ? `they were not listed within ${PROVIDER_TIMEOUT_MS} ms` : 'they could not be listed',
      }
    } finally {
      clock.clearTimer(timer)
      for (const one of [signal, stopped]) one.removeEventListener('abort', onAbort)
    }
  }

  #of(thread: ExtensionStore): ThreadPlugins {
    return thread.getOrInit(this.#threads, () => new ThreadPlugins())
  }

  #keysOf(resources: ResourceClient | undefined): RefreshKeys {
    return { auth: this.#authOf(resources), connection: resources?.connectionKey(this.#init.appsServer) }
  }

  #authOf(resources: ResourceClient | undefined): AuthKey {
    const { appsServer } = this.#init
    return resources === undefined
      ? null
      : { scope: resources.authScopeKey(appsServer), hasServer: resources.hasServer(appsServer) }
  }

  /** By the client of what is there, which may be another than that of now. */
  #authNow(state: PluginsThreadState): AuthKey {
    return this.#authOf(state.kind === 'on' ? state.generation?.client : undefined)
  }
}
