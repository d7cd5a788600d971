// Why one server is as it is. Pure: everything comes from the published generation.
import type { JsonObject } from '../base/index.ts'
import type { CatalogView } from '../catalog/index.ts'
import type { DefinitionSource } from '../config/index.ts'
import type { CatalogNote, PlannedServer, ServerStatus } from '../events/index.ts'
import type { Member } from './generation.ts'

/** A failure that was told, and when. */
export interface ToldFailure {
  readonly code: string
  readonly message: string
  /** Milliseconds of the epoch. */
  readonly atMs: number
}

/** The life of one server, from its entry to what it shows. */
export interface ServerLife {
  readonly status: ServerStatus
  readonly declaredBy: { readonly source: DefinitionSource; readonly plugin?: string }
  readonly environment: string
  /** What was decided when the published generation was made, and why. */
  readonly plan: Pick<PlannedServer, 'action' | 'because'>
  readonly generation: number
  /** The last failure that was told, also if the server is well again. */
  readonly lastFailure?: ToldFailure
  readonly cache:
    | {
        readonly kind: 'kept'
        readonly listedAtMs: number
        readonly staleBecause?: string
        /** What the server declared when it was listed. */
        readonly capabilities: JsonObject
      }
    | { readonly kind: 'empty' }
    | { readonly kind: 'none'; readonly because: string }
  readonly tools: {
    /** Where they come from. */
    readonly from: 'live' | 'cached' | 'nowhere'
    readonly shown: number
    /** Shown, but not to models. */
    readonly hidden: number
    /** Left out by the configuration. */
    readonly filtered: number
  }
  readonly notes: readonly CatalogNote[]
}

/** What is known besides the member. */
export interface ServerLifeFacts {
  readonly generation: number
  readonly lastFailure: ToldFailure | undefined
}

/** The life of a member. */
export function serverLife(member: Member, { generation, lastFailure }: ServerLifeFacts): ServerLife {
  const { connection, view, plan, desired } = member
  const { source, plugin, environment } = desired.definition
  const from = view.live !== undefined ? 'live' : view.cached === undefined ? 'nowhere' : 'cached'
  const tools = (view.live ?? view.cached)?.tools ?? []
  return {
    status: connection.value.status,
    declaredBy: { source, ...(plugin === undefined ? {} : { plugin: plugin.displayName }) },
    environment,
    plan: { action: plan.kind, because: plan.because },
    generation,
    ...(lastFailure === undefined ? {} : { lastFailure }),
    cache: cacheOf(view),
    tools: {
      from,
      shown: tools.length,
      hidden: tools.filter(({ visibleToModel }) => !visibleToModel).length,
      filtered: view.notes.filter(({ kind }) => kind === 'filtered').length,
    },
    notes: view.notes,
  }
}

function cacheOf(view: CatalogView): ServerLife['cache'] {
  if (view.isCacheDisabled) return { kind: 'none', because: 'the server asks that its catalog is not kept' }
  if (view.cache === undefined)
    return { kind: 'none', because: view.uncachedBecause ?? 'nothing says where to keep it' }
  const { staleBecause } = view
  const kept = view.cache.snapshot
  if (kept === undefined) return { kind: 'empty' }
  const { capabilities } = kept.identity
  return {
    kind: 'kept',
    listedAtMs: kept.listedAtMs,
    ...(staleBecause === undefined ? {} : { staleBecause }),
    capabilities,
  }
}
