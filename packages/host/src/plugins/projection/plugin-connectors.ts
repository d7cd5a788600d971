// What a catalog of hosted plugins contributes: which connectors belong to which plugin. It starts nothing. Pure.
import type { ServerContribution } from '../../extensions/index.ts'
import type { PluginCatalog, PluginEntry } from '../catalog/catalog.ts'
import { shownPluginName } from './plugin-name.ts'

/** Most plugins that are shown. Those that are off, or not hosted, do not count. */
export const PLUGINS_SHOWN_MAX = 100
/** Most connectors of one plugin; the same one counts once. */
export const CONNECTORS_SHOWN_MAX = 64

/** Connectors of one plugin. */
export type PluginConnectors = Extract<ServerContribution, { kind: 'plugin-connectors' }>

/** In the order of the catalog: its first 100 hosted plugins that are on, with 64 connectors each. */
export function pluginConnectors(catalog: PluginCatalog): readonly PluginConnectors[] {
  return catalog.entries
    .filter(({ enabled }) => enabled)
    .flatMap((entry) => (entry.id.kind === 'remote' ? [connectorsOf(entry, entry.id.remotePluginId)] : []))
    .slice(0, PLUGINS_SHOWN_MAX)
}

function connectorsOf({ displayName, connectorIds }: PluginEntry, pluginId: string): PluginConnectors {
  const known = new Set(connectorIds.filter((id) => id !== ''))
  return {
    kind: 'plugin-connectors',
    pluginId,
    pluginName: shownPluginName(displayName) || shownPluginName(pluginId),
    connectorIds: [...known].slice(0, CONNECTORS_SHOWN_MAX),
  }
}
