// Is the live tool still the one that was shown? Pure.
import { isObject, type JsonObject, sameJson } from '../base/index.ts'
import type { CatalogTool, ToolSnapshot } from '../catalog/index.ts'

/** What a call of a tool depends on. Titles, descriptions, names for models and connectors are not part of it. */
export type ToolContract = Pick<
  CatalogTool,
  'rawName' | 'inputSchema' | 'outputSchema' | 'annotations' | 'meta' | 'parallelToolCalls'
>

/**
 * Which policy hints of the advertised tool are known. `without-read-only`: the cache took the read-only hint away; `none`: it took them all, so that
 * nothing can be said about them, and consent was asked for as for a tool that says nothing.
 */
export type KnownHints = 'all' | 'without-read-only' | 'none'

/** In what two tools differ. */
export type ContractDifference =
  | 'its name'
  | 'its arguments'
  | 'its result'
  | 'its policy hints'
  | 'its _meta'
  | 'whether calls may run side by side'

const HINTS = ['destructiveHint', 'idempotentHint', 'openWorldHint'] as const

/** May the live tool run in place of the advertised one? */
export function sameContract(advertised: ToolContract, live: ToolContract, known: KnownHints): boolean {
  return contractDifference(advertised, live, known) === undefined
}

/** The first difference that matters; undefined when there is none. */
export function contractDifference(
  advertised: ToolContract,
  live: ToolContract,
  known: KnownHints,
): ContractDifference | undefined {
  if (advertised.rawName !== live.rawName) return 'its name'
  if (!sameJson(advertised.inputSchema, live.inputSchema)) return 'its arguments'
  if (!sameJson(advertised.outputSchema, live.outputSchema)) return 'its result'
  if (!sameHints(advertised.annotations, live.annotations, known)) return 'its policy hints'
  if (!sameJson(advertised.meta ?? {}, live.meta ?? {})) return 'its _meta'
  return advertised.parallelToolCalls === live.parallelToolCalls ? undefined : 'whether calls may run side by side'
}

/** Which hints of a tool are known, by where it was listed from. */
export function knownHints(state: CatalogTool['state'], { isHosted }: { readonly isHosted: boolean }): KnownHints {
  if (state === 'live') return 'all'
  return isHosted ? 'without-read-only' : 'none'
}

/** No annotations are empty ones: a hint that appears is a difference. */
function sameHints(one: unknown, other: unknown, known: KnownHints): boolean {
  if (known === 'none') return true
  const names: readonly string[] = known === 'all' ? [...HINTS, 'readOnlyHint'] : HINTS
  const [before, now] = [membersOf(one), membersOf(other)]
  return names.every((name) => sameJson(before[name], now[name]))
}

function membersOf(annotations: unknown): JsonObject {
  return isObject(annotations) ? annotations : {}
}

/** What a call of the listed tool depends on. */
export function contractIn(listed: ToolSnapshot | undefined, rawName: string): ToolContract | undefined {
  const tool = listed?.tools.find((one) => one.rawName === rawName)
  if (listed === undefined || tool === undefined) return undefined
  const { inputSchema, outputSchema, annotations, _meta: meta } = tool.definition
  return {
    rawName,
    inputSchema: inputSchema as JsonObject,
    parallelToolCalls: listed.facts.parallelToolCalls,
    ...(isObject(outputSchema) ? { outputSchema } : {}),
    ...(isObject(annotations) ? { annotations } : {}),
    ...(isObject(meta) ? { meta } : {}),
  }
}
