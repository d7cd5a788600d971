import type { HostErrorCode, JsonObject } from '../base/index.ts'

/** Where a server is in its life. Every state that is not `ready` says why in `reason`. */
export type ServerState =
  | 'installing'
  | 'starting'
  | 'ready'
  | 'dormant'
  | 'needs-auth'
  | 'needs-input'
  | 'needs-approval'
  | 'failed'
  | 'disabled'
  | 'cancelled'

/** What is known about one server right now. A snapshot: it never changes after it was handed out. */
export interface ServerStatus {
  readonly name: string
  readonly state: ServerState
  /** Why; for every state that is not `ready`, and for a ready one whose catalog could not be refreshed. */
  readonly reason?: { readonly code: HostErrorCode; readonly message: string }
  /** When the state was entered, in milliseconds of the epoch. */
  readonly sinceAtMs: number
  /** A failed server is started again when it is next needed, but not before; milliseconds of the epoch. */
  readonly nextRetryAtMs?: number
  readonly transport: 'stdio' | 'http'
  readonly pid?: number
  readonly era?: 'legacy' | 'modern'
  readonly protocolVersion?: string
  readonly serverInfo?: JsonObject
  /** Tools in the catalog after the configured filter; present while the server is ready. */
  readonly toolCount?: number
  /** Lines on stdout that were no JSON-RPC, since the process started; absent when there were none. */
  readonly noiseCount?: number
  /** The last lines of stderr, cleaned; present for a process that has written any. */
  readonly stderrTail?: string
}
