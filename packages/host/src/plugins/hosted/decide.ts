// Whether a provider is asked, and what becomes of its answer. Pure; time is an argument.
import type { ResourceClient } from '../../extensions/index.ts'
import type { PluginCatalog } from '../catalog/catalog.ts'
import { mergeCatalog } from '../catalog/merge-catalog.ts'
import { backoffNext, isPending } from './backoff.ts'
import {
  type AuthKey,
  type CatalogGeneration,
  type PluginsThreadState,
  type RefreshKeys,
  sameAuthKey,
} from './state.ts'

/** What is known when a refresh has its turn. */
export interface RefreshFacts {
  /** The resources of now, and what they say. */
  readonly client: ResourceClient | undefined
  readonly keys: RefreshKeys
  /** The scope of now by the client of the generation; anything, where there is none. */
  readonly generationAuthNow: AuthKey
  /** The scope whose catalog this turn has accepted; undefined: none. */
  readonly accepted: { readonly auth: AuthKey } | undefined
  /** Another refresh ran when this one came. */
  readonly hasWaited: boolean
  /** The refresh that ran last has published its answer. */
  readonly lastSucceeded: boolean
}

/** What to do. */
export type RefreshPlan =
  | { readonly kind: 'off' }
  /** What is there is as new as it has to be. */
  | {
      readonly kind: 'reuse'
      /** This turn has accepted it already, or another refresh has just brought it. */
      readonly because: 'accepted' | 'waited'
    }
  /** It failed a short while ago. */
  | { readonly kind: 'cooldown' }
  | {
      readonly kind: 'fetch'
      /** Holds from now on, whatever comes of it. */
      readonly state: PluginsThreadState
      /** A catalog of another scope is gone with it. */
      readonly hasCleared: boolean
    }

/** Asks at most once per turn and scope, not while somebody else's answer will do, and not too soon after a failure. */
export function decideRefresh(state: PluginsThreadState, facts: RefreshFacts, nowMs: number): RefreshPlan {
  if (state.kind === 'off') return { kind: 'off' }
  const { keys, generationAuthNow } = facts
  const { generation } = state
  const isCurrent = isOf(generation, keys.auth) && sameAuthKey(keys.auth, generationAuthNow)
  const because = whySkip(facts)
  if (because !== undefined && isCurrent && generation?.catalog !== undefined) return { kind: 'reuse', because }
  if (isPending(state.retry, keys, nowMs)) return { kind: 'cooldown' }
  if (isCurrent) return { kind: 'fetch', state, hasCleared: false }
  return {
    kind: 'fetch',
    state: { ...state, generation: { auth: keys.auth, client: facts.client, catalog: undefined } },
    hasCleared: generation?.catalog !== undefined,
  }
}

/** How a provider answered. */
export type ProviderOutcome =
  | { readonly kind: 'answered'; readonly catalog: PluginCatalog }
  | { readonly kind: 'failed' }

/** What is known when it has. */
export interface AnswerFacts {
  /** As they were when it was asked. */
  readonly keys: RefreshKeys
  /** The scope of now by the client of the generation; anything, where there is none. */
  readonly generationAuthNow: AuthKey
  readonly outcome: ProviderOutcome
}

/** What becomes of it. */
export type AnswerPlan =
  | { readonly kind: 'published'; readonly state: PluginsThreadState; readonly hasKeptPrevious: boolean }
  /** It belongs to somebody who is not there any more. Nothing changes. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly state: PluginsThreadState }

/** An answer counts for the scope it was asked for, and only as long as that is the scope of now. */
export function decideAnswer(state: PluginsThreadState, facts: AnswerFacts, nowMs: number): AnswerPlan {
  const { keys, generationAuthNow, outcome } = facts
  if (state.kind === 'off') return { kind: 'refused' }
  const { generation, retry } = state
  if (!isOf(generation, keys.auth) || !sameAuthKey(keys.auth, generationAuthNow)) return { kind: 'refused' }
  if (outcome.kind === 'failed') return { kind: 'failed', state: { ...state, retry: backoffNext(retry, keys, nowMs) } }
  const catalog = mergeCatalog(generation.catalog, outcome.catalog)
  return {
    kind: 'published',
    state: { kind: 'on', generation: { ...generation, catalog }, retry: undefined },
    hasKeptPrevious: catalog !== outcome.catalog,
  }
}

function whySkip({ hasWaited, lastSucceeded, accepted, keys }: RefreshFacts): 'accepted' | 'waited' | undefined {
  if (accepted !== undefined && sameAuthKey(accepted.auth, keys.auth)) return 'accepted'
  return hasWaited && lastSucceeded ? 'waited' : undefined
}

function isOf(generation: CatalogGeneration | undefined, auth: AuthKey): generation is CatalogGeneration {
  return generation !== undefined && sameAuthKey(generation.auth, auth)
}
