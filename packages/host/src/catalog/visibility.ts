import { isObject, type JsonObject } from '../base/index.ts'

/**
 * May models see the tool? Only a list in `_meta.ui.visibility` counts, and only one without `model` hides; a hidden tool can still be
 * called by name.
 */
export function isVisibleToModel({ _meta: meta }: JsonObject): boolean {
  const ui = isObject(meta) ? meta['ui'] : undefined
  const visibility = isObject(ui) ? ui['visibility'] : undefined
  return !Array.isArray(visibility) || visibility.includes('model')
}
