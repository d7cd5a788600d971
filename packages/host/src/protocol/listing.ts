// What a server offers, all pages, within the limits of this host. Keeps nothing.

import type { Listing, ListKind, Platform, Session } from '@convoke/wire'
import type { HostError } from '../base/index.ts'
import { hostErrorOf } from './faults.ts'
import { retryHttp } from './retries.ts'

/** The limits of one listing; going over one of them loses the whole listing, by name. */
export const CATALOG_LIMITS: { readonly pagesMax: number; readonly itemsMax: number; readonly cursorBytesMax: number } =
  {
    pagesMax: 100,
    itemsMax: 2_048,
    cursorBytesMax: 65_536,
  }

/** How one listing is limited. */
export interface ListRequest {
  readonly signal?: AbortSignal
  /** All pages and retries together, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number
  /** Items that the listing may have in all. Default 2,048. */
  readonly itemsMax?: number
}

const TIMEOUT_MS = 30_000
const METHOD_NOT_FOUND = -32601

/** Everything that {@link listAll} needs to know of a session. */
export interface ListSource {
  readonly server: string
  readonly session: Session
  readonly platform: Platform
  readonly transport: 'stdio' | 'http'
  readonly secrets: readonly string[]
  /** Aborted when the session is over. */
  readonly over?: AbortSignal | undefined
}

/**
 * All items of a kind. A server that does not know the method offers nothing of it. Over HTTP a failure to get through is tried again
 * after 250 and 1,000 ms.
 * @throws {HostError} `LISTING_FAILED` for a limit, `LISTING_TIMEOUT`, or what the request failed with.
 */
export async function listAll(source: ListSource, kind: ListKind, request: ListRequest): Promise<Listing> {
  const { session, platform, server, transport } = source
  // Waiting for credentials is nobody's listing.
  const nowMs = (): number => platform.now() - session.waitedMs
  const endsAtMs = nowMs() + (request.timeoutMs ?? TIMEOUT_MS)
  const leftMs = (): number => endsAtMs - nowMs()
  const attempt = (): Promise<Listing> =>
    session.list(kind, {
      ...CATALOG_LIMITS,
      itemsMax: request.itemsMax ?? CATALOG_LIMITS.itemsMax,
      timeoutMs: Math.max(1, Math.ceil(leftMs())),
      idleTimeoutMs: 0,
      ...(request.signal === undefined ? {} : { signal: request.signal }),
    })
  try {
    return await (transport === 'http'
      ? retryHttp(attempt, { server, platform, leftMs, signal: request.signal, over: source.over })
      : attempt())
  } catch (error) {
    const failure = hostErrorOf(error, server, source.secrets)
    if (isUnknownMethod(failure)) return { items: [], rejected: [] }
    throw failure
  }
}

function isUnknownMethod(failure: HostError): boolean {
  const rpc = failure.details['rpc'] as { code?: unknown } | undefined
  return failure.code === 'SERVER_ERROR' && rpc?.code === METHOD_NOT_FOUND
}
