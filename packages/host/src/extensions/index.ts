export { ContributorCalls } from './calls.ts'
export { type ConnectorSource, connectorSnapshot } from './connector-snapshot.ts'
export type * from './contributors.ts'
export {
  type Extension,
  ExtensionRegistry,
  type Registered,
  type Registrar,
} from './registry.ts'
export type { ConnectionKey, ResourceClient, ResourcePage, ResourceRequestOptions } from './resource-client.ts'
export {
  NO_PLUGINS,
  SELECTED_PLUGINS,
  type SelectedPluginIdentity,
  type SelectedPluginSnapshot,
} from './selected-plugins.ts'
export { ExtensionStore, type StoreEntry, StoreKey, type StoreLevel, storeEntry } from './stores.ts'
