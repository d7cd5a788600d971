// Plugins for a host (`@convoke/host/plugins`): made with these, and handed to it as an extension. Explicit named exports only.
export {
  hostedPluginProvider,
  type PluginCatalog,
  type PluginClock,
  type PluginEntry,
  type PluginIdentity,
  type PluginLocation,
  type PluginProvider,
  type PluginQuery,
  type PluginsExtensionOptions,
  pluginsExtension,
} from './plugins/index.ts'
