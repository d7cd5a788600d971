import type { ToolPolicy } from '../config/index.ts'

/** Does the configuration allow the tool of this raw name? */
export type ToolFilter = (rawName: string) => boolean

/** Exact raw names, no patterns; `deny` wins; an empty `allow` allows nothing. */
export function toolFilter({ allow, deny }: ToolPolicy): ToolFilter {
  if (allow === undefined && deny === undefined) return () => true
  const allowed = allow === undefined ? undefined : new Set(allow)
  const denied = new Set(deny)
  return (rawName) => (allowed === undefined || allowed.has(rawName)) && !denied.has(rawName)
}
