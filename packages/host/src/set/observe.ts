import type { ConnectionIdentity, ServerConnection } from '../connection/index.ts'

/** A snapshot of a connection of the previous generation, taken just before planning. It may be out of date when the plan is carried out. */
export interface ObservedConnection {
  readonly identity: ConnectionIdentity
  readonly phase: 'dormant' | 'starting' | 'ready' | 'failed' | 'held' | 'over'
}

const PHASES: Readonly<Record<ServerConnection['state']['kind'], ObservedConnection['phase']>> = {
  dormant: 'dormant',
  installing: 'starting',
  starting: 'starting',
  ready: 'ready',
  failed: 'failed',
  'needs-auth': 'held',
  'needs-input': 'held',
  disabled: 'held',
  cancelled: 'over',
  closed: 'over',
}

/** The facts about a connection that a plan needs. */
export function observeConnection(connection: ServerConnection, identity: ConnectionIdentity): ObservedConnection {
  return { identity, phase: PHASES[connection.state.kind] }
}
