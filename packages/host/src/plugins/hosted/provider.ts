// Who lists the hosted plugins of an account.
import type { ResourceClient } from '../../extensions/index.ts'
import type { PluginCatalog } from '../catalog/catalog.ts'

/** What is asked. */
export interface PluginQuery {
  readonly threadId: string
  readonly turnId: string
  /** Resources of the servers of the host; undefined where there are none. */
  readonly resources: ResourceClient | undefined
  /** The server that speaks for the account. */
  readonly appsServer: string
}

/** Lists the hosted plugins of whoever the host is signed in as. */
export interface PluginProvider {
  /**
   * One listing. Of a thread, one at a time; of a turn, one for each account. What it answers is checked and copied.
   *
   * Rejecting, throwing or taking longer than 10,000 ms keeps what is known of the same account, and nothing is asked for a while.
   * @param options.signal Aborts when nobody waits any more.
   */
  list(query: PluginQuery, options: { readonly signal: AbortSignal }): Promise<PluginCatalog>
}

/** Longest listing, in milliseconds. */
export const PROVIDER_TIMEOUT_MS = 10_000

/** Time, as plugins see it. */
export interface PluginClock {
  /** Monotonic milliseconds. */
  now(): number
  setTimer(callback: () => void, ms: number): object
  clearTimer(timer: object): void
}

/** The time of this process. */
export const processClock: PluginClock = {
  now: () => performance.now(),
  setTimer: (callback, ms) => setTimeout(callback, ms),
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout),
}
