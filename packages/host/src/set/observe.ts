import type { ConnectionIdentity, CredentialKey, ServerConnection } from '../connection/index.ts'

/** A snapshot of a connection of the previous generation, taken just before planning. It may be out of date when the plan is carried out. */
export interface ObservedConnection {
  readonly identity: ConnectionIdentity
  readonly phase: 'dormant' | 'starting' | 'ready' | 'failed' | 'auth-failed' | 'cancelled' | 'closed'
  /** Tools that a listing of it may have. */
  readonly catalogItemLimit: number
  readonly startupTimeoutMs: number
  readonly installTimeoutMs: number
  /** What the live session speaks with now; undefined when it does not manage credentials itself. */
  readonly liveCredentials: CredentialKey | undefined
}

const PHASES: Readonly<Record<ServerConnection['state']['kind'], ObservedConnection['phase']>> = {
  dormant: 'dormant',
  installing: 'starting',
  starting: 'starting',
  ready: 'ready',
  failed: 'failed',
  'needs-auth': 'auth-failed',
  'needs-input': 'failed',
  // Held by an entry that is used now: as good as one that was never started.
  disabled: 'closed',
  cancelled: 'cancelled',
  closed: 'closed',
}

/** What the generation knows of the connection besides its state. */
export type KnownOfConnection = Pick<ObservedConnection, 'identity' | 'catalogItemLimit'>

/** The facts about a connection that a plan needs. Looking starts nothing. */
export function observeConnection(
  connection: ServerConnection,
  { identity, catalogItemLimit }: KnownOfConnection,
): ObservedConnection {
  const { startupTimeoutMs, installTimeoutMs } = connection.definition
  return {
    identity,
    catalogItemLimit,
    phase: PHASES[connection.state.kind],
    startupTimeoutMs,
    installTimeoutMs,
    liveCredentials: connection.liveCredentials,
  }
}
