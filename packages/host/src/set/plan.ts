// What happens to each server's connection when a generation is made. Pure: every fact is in the arguments.
import { matchIdentity } from '../connection/index.ts'
import type { DesiredConnection } from './desired.ts'
import type { ObservedConnection } from './observe.ts'

/** Why a connection is made anew and started. */
export type StartReason = 'no-previous' | 'config-changed' | 'credentials-changed' | 'reconnect-asked' | 'not-healthy'

/** What is to be done, and why. */
export type ConnectionPlan =
  /** The running (or starting, or sleeping) connection is kept. */
  | { readonly kind: 'reuse'; readonly because: 'unchanged' }
  /** A new connection, woken at publication. */
  | { readonly kind: 'start'; readonly because: StartReason }
  /** A new connection, woken when somebody needs it. */
  | { readonly kind: 'defer'; readonly because: 'on-demand' }
  /** Shown, never started. */
  | { readonly kind: 'hold'; readonly because: 'disabled' | 'config-problem' }

/** What decides besides the facts. */
export interface PlanPolicy {
  /** Servers that are to be started anew although nothing about them changed. */
  readonly reconnect: ReadonlySet<string>
}

/** Decides what happens to one server's connection. */
export function planConnection(
  previous: ObservedConnection | undefined,
  desired: DesiredConnection,
  { reconnect }: PlanPolicy,
): ConnectionPlan {
  const { definition, start } = desired
  if (start === 'never') return { kind: 'hold', because: definition.enabled ? 'config-problem' : 'disabled' }
  // Whoever asks for a reconnect needs the server now.
  if (reconnect.has(definition.name)) return { kind: 'start', because: 'reconnect-asked' }
  const reason = previous === undefined ? 'no-previous' : refuseReuse(previous, desired)
  if (reason === undefined) return { kind: 'reuse', because: 'unchanged' }
  return start === 'wanted' ? { kind: 'start', because: reason } : { kind: 'defer', because: 'on-demand' }
}

/** Why the previous connection cannot be kept; undefined when it can. */
function refuseReuse(previous: ObservedConnection, { identity }: DesiredConnection): StartReason | undefined {
  const match = matchIdentity(previous.identity, identity)
  if (match === 'different') return 'config-changed'
  if (match === 'same-config') return 'credentials-changed'
  // A failed connection keeps its count of failures, and with it the pause before the next start.
  return previous.phase === 'over' ? 'not-healthy' : undefined
}
