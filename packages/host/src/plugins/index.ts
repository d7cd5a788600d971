export {
  EMPTY_CATALOG,
  type PluginCatalog,
  type PluginEntry,
  type PluginIdentity,
  type PluginLocation,
} from './catalog/catalog.ts'
export { type PluginsExtensionOptions, pluginsExtension } from './hosted/extension.ts'
export { hostedPluginProvider } from './hosted/hosted-provider.ts'
export type { PluginClock, PluginProvider, PluginQuery } from './hosted/provider.ts'
export { type ConnectorSnapshot, type ConnectorSource, connectorSnapshot } from './projection/connector-snapshot.ts'
