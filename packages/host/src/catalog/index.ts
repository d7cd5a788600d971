export type { Aggregate, CatalogPrompt, CatalogResource, CatalogResourceTemplate, CatalogTool } from './entries.ts'
