export {
  aggregatePrompts,
  aggregateResources,
  aggregateTemplates,
  type OfferSource,
  SERVER_META_KEY,
} from './aggregate.ts'
export type { Aggregate, CatalogPrompt, CatalogResource, CatalogResourceTemplate, CatalogTool } from './entries.ts'
export { type ToolFilter, toolFilter } from './filter.ts'
export {
  assignNames,
  FLAT_STYLE,
  flatName,
  NAME_CHARS_LIMIT,
  NAME_CHARS_MIN,
  NAMESPACED_STYLE,
  type NameIdentity,
  type NameStyle,
  type NamespacedName,
} from './names.ts'
export { type OutputCheck, OutputSchemas } from './output-schemas.ts'
export { ServerCatalog, type ServerCatalogOptions } from './server-catalog.ts'
export type { ListedTool, ToolSnapshot } from './snapshot.ts'
export { type ToolView, toolView } from './tool-view.ts'
