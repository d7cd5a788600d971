// What is kept when a provider has answered again. Pure.
import type { PluginCatalog } from './catalog.ts'

/**
 * The catalog that counts from now on: the answer, unless it is partial and has entries and what is there is complete. Nothing is ever put together from two answers.
 *
 * An empty partial answer replaces everything: when a remote side cannot name a single plugin, none is shown.
 */
export function mergeCatalog(previous: PluginCatalog | undefined, next: PluginCatalog): PluginCatalog {
  const keepsPrevious = previous !== undefined && !previous.isPartial && next.isPartial && next.entries.length > 0
  return keepsPrevious ? previous : next
}
