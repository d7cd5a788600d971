// When it is asked again after a failure. Pure; time is an argument.
import { type Backoff, type RefreshKeys, sameAuthKey } from './state.ts'

/** First wait after a failure, in milliseconds. */
export const RETRY_DELAY_MS = 30_000
/** Longest wait, in milliseconds. */
export const RETRY_DELAY_MS_MAX = 300_000

/** After one more failure: 30 s, or twice the wait before if that was for the same keys, at most 5 min. */
export function backoffNext(previous: Backoff | undefined, keys: RefreshKeys, nowMs: number): Backoff {
  const delayMs =
    previous !== undefined && sameKeys(previous.keys, keys)
      ? Math.min(previous.delayMs * 2, RETRY_DELAY_MS_MAX)
      : RETRY_DELAY_MS
  return { keys, delayMs, freeAtMs: nowMs + delayMs }
}

/** Is it too early to ask? Another account or connection need not wait. */
export function isPending(backoff: Backoff | undefined, keys: RefreshKeys, nowMs: number): boolean {
  return backoff !== undefined && sameKeys(backoff.keys, keys) && nowMs < backoff.freeAtMs
}

function sameKeys(one: RefreshKeys, other: RefreshKeys): boolean {
  return one.connection === other.connection && sameAuthKey(one.auth, other.auth)
}
