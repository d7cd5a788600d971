// What happens to each server's connection when a generation is made. Pure: every fact is in the arguments.
import { unreachable } from '../base/index.ts'
import { type CredentialKey, type IdentityMatch, matchIdentity } from '../connection/index.ts'
import type { DesiredConnection } from './desired.ts'
import type { ObservedConnection } from './observe.ts'

/** Why a connection is made anew and started. */
export type StartReason =
  | 'no-previous'
  | 'config-changed'
  | 'credentials-changed'
  | 'limits-changed'
  | 'reconnect-asked'
  | 'not-healthy'
  /** It slept, and may not sleep any longer. */
  | 'wanted-now'

/** What is to be done, and why. */
export type ConnectionPlan =
  /** The connection is kept as it is: ready, asleep, or waiting for its next try. */
  | { readonly kind: 'reuse'; readonly because: 'unchanged' }
  /** A start that is under way is taken over. */
  | { readonly kind: 'adopt'; readonly because: 'starting' }
  /** A refused sign-in is told again and not tried again: nobody could read whether the credentials changed. */
  | { readonly kind: 'keep-auth-failure'; readonly because: 'store-contended' }
  /** A new connection, woken at publication. */
  | { readonly kind: 'start'; readonly because: StartReason }
  /** A new connection, woken when somebody needs it. */
  | { readonly kind: 'defer'; readonly because: 'cached' | 'on-demand' }
  /** Shown, never started. */
  | { readonly kind: 'hold'; readonly because: 'disabled' | 'config-problem' }

/** What decides besides the facts. */
export interface PlanPolicy {
  /** Servers that are started anew although nothing about them changed. */
  readonly reconnect: 'all' | ReadonlySet<string>
  /** False: what failed, was refused or was cancelled keeps its state and its pause. */
  readonly retriesFailed: boolean
}

/** Decides what happens to one server's connection. */
export function planConnection(
  previous: ObservedConnection | undefined,
  desired: DesiredConnection,
  policy: PlanPolicy,
): ConnectionPlan {
  const { definition, start } = desired
  if (start === 'never') return { kind: 'hold', because: definition.enabled ? 'config-problem' : 'disabled' }
  // Whoever asks for a reconnect needs the server now.
  if (policy.reconnect === 'all' || policy.reconnect.has(definition.name))
    return { kind: 'start', because: 'reconnect-asked' }
  const kept = previous === undefined ? 'no-previous' : keep(previous, desired, policy)
  if (typeof kept !== 'string') return kept
  // A failure stays in sight: what is not healthy is tried now, even if its tools are known.
  const sleeps = kept === 'not-healthy' && start !== 'on-demand' ? undefined : maySleep(desired)
  return sleeps === undefined ? { kind: 'start', because: kept } : { kind: 'defer', because: sleeps }
}

const REUSE: ConnectionPlan = { kind: 'reuse', because: 'unchanged' }

/** Why a server need not be started before somebody needs it. */
function maySleep({
  start,
  hasVisibleCachedTools,
  isSelectedByPlugin,
}: DesiredConnection): 'cached' | 'on-demand' | undefined {
  if (start === 'on-demand') return 'on-demand'
  return start === 'lazy' && hasVisibleCachedTools && !isSelectedByPlugin ? 'cached' : undefined
}

/** The plan that keeps `previous`, or the reason why it cannot be kept. */
function keep(
  previous: ObservedConnection,
  desired: DesiredConnection,
  { retriesFailed }: PlanPolicy,
): ConnectionPlan | StartReason {
  const match = matchIdentity(previous.identity, desired.identity)
  if (match === 'different') return 'config-changed'
  switch (previous.phase) {
    case 'ready':
      return keepReady(previous, desired, match)
    case 'starting':
      return keepStarting(previous, desired, match)
    case 'auth-failed':
      if (match === 'same' && desired.identity.isContended === true)
        return { kind: 'keep-auth-failure', because: 'store-contended' }
      return keepFailed(match, retriesFailed)
    case 'failed':
    case 'cancelled':
      return keepFailed(match, retriesFailed)
    case 'dormant':
      if (match !== 'same') return 'credentials-changed'
      return maySleep(desired) === undefined ? 'wanted-now' : REUSE
    case 'closed':
      return 'not-healthy'
    default:
      return unreachable(previous.phase, 'connection phase')
  }
}

type Match = Exclude<IdentityMatch, 'different'>

function keepStarting(
  previous: ObservedConnection,
  desired: DesiredConnection,
  match: Match,
): ConnectionPlan | StartReason {
  if (match !== 'same') return 'credentials-changed'
  // A budget belongs to the attempt under way; a ready connection no longer has one.
  const { startupTimeoutMs, installTimeoutMs } = desired.definition
  const isSameBudget = previous.startupTimeoutMs === startupTimeoutMs && previous.installTimeoutMs === installTimeoutMs
  return isSameBudget && previous.catalogItemLimit === desired.catalogItemLimit
    ? { kind: 'adopt', because: 'starting' }
    : 'limits-changed'
}

function keepReady(
  previous: ObservedConnection,
  desired: DesiredConnection,
  match: Match,
): ConnectionPlan | StartReason {
  if (previous.catalogItemLimit !== desired.catalogItemLimit) return 'limits-changed'
  return servesCredentials(previous, desired.identity.credentials, match) ? REUSE : 'credentials-changed'
}

function keepFailed(match: Match, retriesFailed: boolean): ConnectionPlan | StartReason {
  if (match !== 'same') return 'credentials-changed'
  return retriesFailed ? 'not-healthy' : REUSE
}

function servesCredentials(
  { liveCredentials }: ObservedConnection,
  wanted: CredentialKey | undefined,
  match: Match,
): boolean {
  // Signed out in the store while the session still holds a token: the session must not outlive the sign-out.
  if (match === 'same') return wanted !== null || liveCredentials === undefined || liveCredentials === null
  // Credentials that cannot be read are no evidence of a change.
  if (wanted === undefined) return true
  return liveCredentials === wanted
}
