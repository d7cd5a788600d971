export {
  aggregatePrompts,
  aggregateResources,
  aggregateTemplates,
  SERVER_META_KEY,
} from './aggregate.ts'
export { CatalogCacheEntry } from './cache-entry.ts'
export {
  type CacheDecision,
  type CacheFacts,
  type CacheScope,
  type CredentialFacts,
  cacheScope,
  type EnvironmentFacts,
  LOCAL_ENVIRONMENT,
} from './cache-scope.ts'
export {
  CATALOG_STORE_LIMITS,
  CatalogCache,
} from './catalog-cache.ts'
export { CatalogView } from './catalog-view.ts'
export { appMetaOf } from './connectors.ts'
export type {
  Aggregate,
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
} from './entries.ts'
export { type ToolLife, toolLife } from './life.ts'
export { localVersion } from './local-version.ts'
export {
  NAME_CHARS_LIMIT,
  NAME_CHARS_MIN,
  type NamespacedName,
} from './names.ts'
export { OutputSchemas } from './output-schemas.ts'
export { ServerCatalog } from './server-catalog.ts'
export type { Attribution } from './shaping.ts'
export type { ToolSnapshot } from './snapshot.ts'
export { type NamePolicy, type ToolView, toolView } from './tool-view.ts'
