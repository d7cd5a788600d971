// Hosted plugins as an extension: one contributor for threads, settings, turns and servers.
import type {
  CatalogRefreshInput,
  ConfigurationContributor,
  Extension,
  ServerContribution,
  ServerContributionInput,
  ServerContributor,
  ThreadLifecycleContributor,
  ThreadScope,
  ThreadStartInput,
  TurnLifecycleContributor,
  TurnStartInput,
  TurnStartPhase,
} from '../../extensions/index.ts'
import { pluginConnectors } from '../projection/plugin-connectors.ts'
import { type PluginClock, type PluginProvider, processClock } from './provider.ts'
import { HostedPlugins } from './refresh.ts'

/** How {@link pluginsExtension} is made. */
export interface PluginsExtensionOptions {
  /** Who lists the plugins of the account. Absent: nothing is listed. */
  readonly provider?: PluginProvider
  /** The server that speaks for the account, by its key in the configuration. Default `apps`. */
  readonly appsServer?: string
  /** Default: the time of this process. */
  readonly clock?: PluginClock
  /** Id of the extension. Default `plugins`. */
  readonly id?: string
}

/**
 * The plugins that an account has at its apps server. They start nothing: they say which plugins the connectors of hosted servers belong to.
 *
 * Each turn looks at them anew as its first work, each step only if the account has changed since. What was listed for one account is never shown to another one.
 */
export function pluginsExtension(options: PluginsExtensionOptions = {}): Extension {
  const { provider, appsServer = 'apps', clock = processClock, id = 'plugins' } = options
  return {
    id,
    install(registrar) {
      const contributor = new HostedPluginsContributor(new HostedPlugins({ provider, appsServer, clock }))
      registrar.register('threadLifecycle', contributor)
      registrar.register('configuration', contributor)
      registrar.register('turnLifecycle', contributor)
      registrar.register('servers', contributor)
    },
  }
}

/** Takes part in threads, settings, turns and servers. */
export class HostedPluginsContributor
  implements ThreadLifecycleContributor, ConfigurationContributor, TurnLifecycleContributor, ServerContributor
{
  readonly #plugins: HostedPlugins
  /** Threads that are told of a change of the account before they are asked what they contribute. */
  readonly #told = new WeakSet<object>()

  constructor(plugins: HostedPlugins) {
    this.#plugins = plugins
  }

  onThreadStart(input: ThreadStartInput): void {
    this.#plugins.start(input)
  }

  onThreadStop({ thread }: ThreadScope): void {
    this.#plugins.stop(thread)
  }

  onConfigurationChanged({ thread, next }: Parameters<ConfigurationContributor['onConfigurationChanged']>[0]): void {
    this.#plugins.configure(thread, next.pluginsEnabled)
  }

  turnStartPhase(thread: ThreadScope['thread']): TurnStartPhase {
    return this.#plugins.asks(thread) ? 'task-start' : 'before-registration'
  }

  requiresRuntime(thread: ThreadScope['thread']): boolean {
    return this.#plugins.asks(thread)
  }

  onTurnStart(input: TurnStartInput): Promise<void> {
    return this.#plugins.startTurn(input)
  }

  refreshCatalogForStep(input: CatalogRefreshInput): Promise<'changed' | 'unchanged'> {
    return this.#plugins.refresh(input)
  }

  onAuthChanged({ thread }: ThreadScope): void {
    this.#told.add(thread)
    this.#plugins.drop(thread)
  }

  contribute({ thread, configuration, authChanged }: ServerContributionInput): readonly ServerContribution[] {
    // Who was told has dropped it then; what has been listed since is the new account's.
    if (!configuration.pluginsEnabled || (authChanged && !this.#told.has(thread))) this.#plugins.drop(thread)
    const catalog = this.#plugins.catalog(thread)
    return catalog === undefined ? [] : pluginConnectors(catalog)
  }
}
