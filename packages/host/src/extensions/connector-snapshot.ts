// Which connectors plugins bring, which of them are off, and whose they are. Pure.
import type { Attribution } from '../catalog/index.ts'

/** What one plugin says of connectors and servers. */
export interface ConnectorSource {
  readonly pluginId: string
  /** For people and models. */
  readonly pluginName: string
  readonly connectorIds: readonly string[]
  /** Those of its connectors that are its own: when the plugin is off so are they, whoever else uses them. Default none. */
  readonly ownConnectorIds?: readonly string[]
  /** Servers that belong to it. Default none. */
  readonly servers?: readonly string[]
}

/** All sources, put together. */
export interface ConnectorSnapshot {
  /** All that are named, each once, in the order in which they were first named; those that are off included. */
  readonly connectorIds: readonly string[]
  /** Those whose tools are not shown. */
  readonly disabledConnectorIds: readonly string[]
  readonly attribution: Attribution
}

/**
 * Blank ids are nobody's. A connector is off when a plugin is off that it is the own one of, or when every plugin that names it is off; plugins that are off are named on
 * nothing.
 */
export function connectorSnapshot(
  sources: readonly ConnectorSource[],
  disabledPluginIds: ReadonlySet<string> = new Set(),
): ConnectorSnapshot {
  const isOff = ({ pluginId }: ConnectorSource): boolean => disabledPluginIds.has(pluginId)
  const on = sources.filter((source) => !isOff(source))
  const off = sources.filter(isOff)
  const shared = namesBy(on, ({ connectorIds }) => connectorIds)
  const owned = namesBy(off, ({ ownConnectorIds = [] }) => ownConnectorIds)
  const known = namesBy(sources, ({ connectorIds }) => connectorIds)
  const disabled = new Set([...known.keys()].filter((id) => owned.has(id) || !shared.has(id)))
  const byServer = namesBy(on, ({ servers = [] }) => servers)
  return {
    connectorIds: [...known.keys()],
    disabledConnectorIds: [...disabled],
    attribution: {
      pluginsOfServer: (server) => byServer.get(server) ?? [],
      pluginsOfConnector: (connectorId) => shared.get(connectorId.trim()) ?? [],
      allowsConnector: (connectorId) => !disabled.has(connectorId.trim()),
    },
  }
}

/** The names of the plugins that name a thing, sorted, by what they name. */
function namesBy(
  sources: readonly ConnectorSource[],
  thingsOf: (source: ConnectorSource) => readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, Set<string>>()
  for (const source of sources)
    for (const thing of thingsOf(source)) {
      const id = thing.trim()
      if (id !== '') names.set(id, (names.get(id) ?? new Set()).add(source.pluginName))
    }
  return new Map([...names].map(([id, all]) => [id, [...all].sort()]))
}
