// What contributors say of servers and plugins, put together for one thread. Pure.
import type { RegistrationAction, ServerDefinition } from '../config/index.ts'
import type {
  ConnectorSource,
  SelectedPlugin,
  SelectedPluginContent,
  SelectedPluginSnapshot,
  ServerContribution,
} from '../extensions/index.ts'

/** What one contributor said. */
export interface Contributed {
  readonly extension: string
  readonly said: readonly ServerContribution[]
}

/** A selected plugin with what it brings; without, if that could not be had. */
export interface LoadedPlugin {
  readonly plugin: SelectedPlugin
  readonly content: SelectedPluginContent | undefined
}

/** What a thread makes of its servers. */
export interface ThreadProjection {
  readonly registrations: readonly RegistrationAction[]
  readonly plugins: SelectedPluginSnapshot
  readonly connectors: readonly ConnectorSource[]
}

/** Puts it together: selected plugins first, in their order, then the contributions in the order of their contributors. */
export function projectThread({
  selected,
  contributed,
  pluginsEnabled,
}: {
  readonly selected: readonly LoadedPlugin[]
  readonly contributed: readonly Contributed[]
  readonly pluginsEnabled: boolean
}): ThreadProjection {
  const loaded = pluginsEnabled ? selected : []
  const said = contributed.flatMap(({ extension, said: all }) => all.map((one) => ({ extension, one })))
  const hosted = said.flatMap(({ one }) => (one.kind === 'plugin-connectors' && pluginsEnabled ? [one] : []))
  return {
    registrations: [
      ...loaded.flatMap(({ plugin, content }, order) =>
        (content?.definitions ?? []).map((definition): RegistrationAction => {
          const source = { kind: 'selected-plugin', plugin: plugin.pluginId, order } as const
          return { kind: 'declare', source, definition: ofPlugin(definition, plugin, content?.displayName) }
        }),
      ),
      ...said.flatMap(({ extension, one }, order): RegistrationAction[] => {
        const source = { kind: 'extension', extension, order } as const
        if (one.kind === 'set') return [{ kind: 'declare', source, definition: one.definition }]
        return one.kind === 'remove' ? [{ kind: 'remove', source, name: one.server }] : []
      }),
    ],
    plugins: {
      plugins: [
        ...loaded.map(({ plugin: { pluginId, rootId } }) => ({ pluginId, rootId })),
        ...hosted.map(({ pluginId }) => ({ pluginId })),
      ],
      disabledRoots: pluginsEnabled ? [] : selected.map(({ plugin }) => plugin.rootId),
    },
    connectors: [
      ...loaded.flatMap(({ plugin: { pluginId }, content }) =>
        content === undefined
          ? []
          : [{ pluginId, pluginName: content.displayName, connectorIds: content.connectorIds }],
      ),
      ...hosted.map(({ pluginId, pluginName, connectorIds }) => ({ pluginId, pluginName, connectorIds })),
    ],
  }
}

/** It says itself whose it is; only a plugin that forgot it is helped. */
function ofPlugin(
  definition: ServerDefinition,
  { pluginId, rootId }: SelectedPlugin,
  displayName: string | undefined,
): ServerDefinition {
  const { plugin } = definition
  const named = plugin ?? { id: pluginId, displayName: displayName ?? pluginId, root: rootId, isSelected: true }
  return { ...definition, plugin: { ...named, isSelected: true } }
}
