import type { JsonObject } from '../base/index.ts'
import type { ListRequest, ServerSession } from '../protocol/index.ts'
import type { Failure } from './state.ts'

/** What keeps a server's catalog. The connection feeds it and knows nothing of what it keeps. */
export interface CatalogSink {
  /** Tools it has, after the configured filter; undefined before the first listing. */
  readonly toolCount: number | undefined
  /** Why the catalog may be out of date while the server is ready. */
  readonly problem: Failure | undefined
  /** An attempt begins: whatever is listed by an older one counts for less from now on. Told before anything is opened. */
  begin?(): void
  /** Lists what has to be known before the server counts as ready, also when it has a new session. @throws {HostError} */
  load(session: ServerSession, request: ListRequest): Promise<void>
  /** The server is ready: changes may be watched from now on. */
  watch(session: ServerSession): void
  /** What a server tells outside of any call. */
  notified(session: ServerSession, method: string, params: JsonObject): void
  /** The session is over; nothing more comes from it. */
  lost(session: ServerSession): void
}
