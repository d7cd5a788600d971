export type { PluginCatalog, PluginEntry, PluginIdentity, PluginLocation } from './catalog/catalog.ts'
export { type PluginsExtensionOptions, pluginsExtension } from './hosted/extension.ts'
export { hostedPluginProvider } from './hosted/hosted-provider.ts'
export type { PluginClock, PluginProvider, PluginQuery } from './hosted/provider.ts'
