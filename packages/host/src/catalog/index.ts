export {
  aggregatePrompts,
  aggregateResources,
  aggregateTemplates,
  SERVER_META_KEY,
} from './aggregate.ts'
export { type CatalogTraits, CatalogView, type CatalogViewInit } from './catalog-view.ts'
export type {
  Aggregate,
  CatalogConnector,
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
} from './entries.ts'
export {
  NAME_CHARS_LIMIT,
  NAME_CHARS_MIN,
  type NamespacedName,
} from './names.ts'
export { OutputSchemas } from './output-schemas.ts'
export { ServerCatalog } from './server-catalog.ts'
export type { ToolSnapshot } from './snapshot.ts'
export { type ToolView, toolView } from './tool-view.ts'
