// The servers of now, for calls and reads that go beyond what a binding has captured.
import { HostError } from '../base/index.ts'
import type { CatalogView, ServerCatalog } from '../catalog/index.ts'
import type { ReadyOutcome, ServerConnection } from '../connection/index.ts'
import type { Platform } from '../protocol/index.ts'
import type { BoundServer } from './bound-server.ts'

/** One server of the generation that is published now. Its policy is `view.definition`. */
export interface LiveServer {
  readonly connection: ServerConnection
  readonly catalog: ServerCatalog
  readonly view: CatalogView
}

/** What calls and reads need of the set. Asked anew each time: the answer is of now. */
export interface LiveServers {
  /** Undefined for a name that is not configured. Looking starts nothing. */
  member(server: string): LiveServer | undefined
}

/** How long a server may be waited for. */
export interface WaitOptions {
  readonly platform: Platform
  readonly signal?: AbortSignal | undefined
  /** In milliseconds; undefined: as long as its start may take. */
  readonly timeoutMs?: number | undefined
}

/** The server as calls use it, if it is ready and its transport is open. Waits for nothing. */
export function boundNow({ connection, catalog, view }: LiveServer): BoundServer | undefined {
  const { session } = connection
  if (session === undefined || session.isClosed) return undefined
  return { definition: view.definition, session, catalog, view, connection }
}

/**
 * Needs the server and waits for it.
 * @throws {HostError} why it is not ready; `CALL_TOTAL_TIMEOUT`, and nothing was sent; `CANCELLED` on abort.
 */
export async function boundWhenReady(live: LiveServer, options: WaitOptions): Promise<BoundServer> {
  const outcome = await readyWithin(live.connection, options)
  if (outcome.kind === 'failed') throw outcome.error
  const { catalog, view, connection } = live
  return { definition: view.definition, session: outcome.session, catalog, view, connection }
}

/** What is left of a caller's limit after so long, in whole milliseconds; at least 1. */
export function withoutWaiting<Options extends { readonly timeoutMs?: number }>(
  options: Options,
  waitedMs: number,
): Options {
  const { timeoutMs } = options
  return timeoutMs === undefined ? options : { ...options, timeoutMs: Math.max(1, timeoutMs - Math.floor(waitedMs)) }
}

async function readyWithin(
  connection: ServerConnection,
  { platform, signal, timeoutMs }: WaitOptions,
): Promise<ReadyOutcome> {
  if (timeoutMs === undefined) return connection.whenReady(signal)
  const abort = new AbortController()
  const timer = platform.setTimer(() => abort.abort(), timeoutMs)
  try {
    const outcome = await connection.whenReady(
      signal === undefined ? abort.signal : AbortSignal.any([signal, abort.signal]),
    )
    const isLate = outcome.kind === 'failed' && abort.signal.aborted && signal?.aborted !== true
    return isLate ? { kind: 'failed', error: tooLate(connection, timeoutMs) } : outcome
  } finally {
    platform.clearTimer(timer)
  }
}

function tooLate({ definition: { name } }: ServerConnection, limitMs: number): HostError {
  return new HostError('CALL_TOTAL_TIMEOUT', `Server "${name}" was not ready within ${limitMs} ms; nothing was sent`, {
    details: { server: name, limitMs, sent: false },
  })
}
