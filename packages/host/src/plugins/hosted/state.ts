// What one thread knows of the hosted plugins of its account. Pure data.
import type { ConnectionKey, ResourceClient } from '../../extensions/index.ts'
import type { PluginCatalog } from '../catalog/catalog.ts'

/**
 * Who the host is to the apps server: what its resources say, and whether the server is there. Null: there are no resources to ask, which is a scope like any other. Two are
 * the same if their parts are the same objects; see {@link sameAuthKey}. Never a token.
 */
export type AuthKey = { readonly scope: object | undefined; readonly hasServer: boolean } | null

/** The two keys that a failure is remembered by. */
export interface RefreshKeys {
  readonly auth: AuthKey
  /** Undefined: there is no such server, or nobody to ask. */
  readonly connection: ConnectionKey | undefined
}

/** After a failure: nothing is asked before the time has come, as long as both keys are the same. */
export interface Backoff {
  readonly keys: RefreshKeys
  readonly delayMs: number
  /** Free from this moment on; monotonic milliseconds. */
  readonly freeAtMs: number
}

/** One catalog, bound to who it was listed for. */
export interface CatalogGeneration {
  readonly auth: AuthKey
  /** Where `auth` is looked up again. */
  readonly client: ResourceClient | undefined
  /** Undefined: nothing was ever published in it. An empty one is an answer. */
  readonly catalog: PluginCatalog | undefined
}

/** Plugins of one thread: off, or with what was learned last. */
export type PluginsThreadState =
  | { readonly kind: 'off' }
  | {
      readonly kind: 'on'
      readonly generation: CatalogGeneration | undefined
      readonly retry: Backoff | undefined
    }

/** Plugins take part, and nothing is known yet. */
export const FRESH: PluginsThreadState = { kind: 'on', generation: undefined, retry: undefined }
/** Plugins take no part. */
export const OFF: PluginsThreadState = { kind: 'off' }

/** Are these the same scope? */
export function sameAuthKey(one: AuthKey, other: AuthKey): boolean {
  if (one === null || other === null) return one === other
  return one.scope === other.scope && one.hasServer === other.hasServer
}

/**
 * What may be shown: the catalog, as long as the host is still who it was listed for.
 * @param authNow The scope of now, looked up with the client of the generation.
 */
export function visibleCatalog(state: PluginsThreadState, authNow: AuthKey): PluginCatalog | undefined {
  if (state.kind === 'off' || state.generation === undefined) return undefined
  return sameAuthKey(state.generation.auth, authNow) ? state.generation.catalog : undefined
}

/** The setting is another, or the same. A period that begins anew knows nothing of the one before. */
export function withPluginsEnabled(state: PluginsThreadState, enabled: boolean): PluginsThreadState {
  if (!enabled) return OFF
  return state.kind === 'off' ? FRESH : state
}

/** Nothing of the generation may be shown any more; an answer that is still on its way finds it gone. */
export function withoutGeneration(state: PluginsThreadState): PluginsThreadState {
  return state.kind === 'off' ? state : { ...state, generation: undefined }
}
