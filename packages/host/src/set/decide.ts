// What a binding does about each server while it is being captured. Pure.
import type { ConnectionState } from '../connection/index.ts'

/** What is known of one server when a binding is asked for. */
export interface CaptureFacts {
  readonly state: ConnectionState['kind']
  /** At least one tool of the cached catalog passes the filter and is shown to models. */
  readonly hasVisibleCachedTools: boolean
  /** A cached catalog is there; for a hosted server an empty one counts. */
  readonly hasCatalog: boolean
  readonly isHosted: boolean
  /** Its configuration says that the host does not work without it. */
  readonly isRequired: boolean
  /** Named by the caller, or of a selected plugin that the caller named. */
  readonly isAskedFor: boolean
  /** The host starts it only for those who name it. */
  readonly isOnDemand: boolean
}

/** `settle`: until it has started or failed. `grace`: no longer than the startup grace. */
export type CaptureWait = 'none' | 'grace' | 'settle'

/** Whom a binding waits for. */
export function decideWait(facts: CaptureFacts): CaptureWait {
  const { state, hasVisibleCachedTools, hasCatalog, isHosted, isRequired, isAskedFor, isOnDemand } = facts
  if (!mayBecomeReady(state)) return 'none'
  if (isRequired || isAskedFor) return 'settle'
  if (state === 'dormant' && isOnDemand) return 'none'
  if (isHosted) return hasCatalog ? 'none' : 'settle'
  // One that sleeps because its tools were known, and whose catalog has gone since, would never be heard of again.
  return hasVisibleCachedTools ? 'none' : 'grace'
}

function mayBecomeReady(state: ConnectionState['kind']): boolean {
  return state === 'starting' || state === 'installing' || state === 'dormant'
}

/** What of a server goes into a binding. */
export type CaptureSource = 'live' | 'cached' | 'nothing'

/** Its own tools when it is ready, its known ones while nobody has needed it or it is on its way, nothing once it has failed. */
export function decideSource({ state, hasCatalog }: Pick<CaptureFacts, 'state' | 'hasCatalog'>): CaptureSource {
  if (state === 'ready') return 'live'
  return mayBecomeReady(state) && hasCatalog ? 'cached' : 'nothing'
}
