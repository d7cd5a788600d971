// Being told about changes: legacy servers push them on their own, and resources by `resources/subscribe`; modern ones answer `subscriptions/listen`.
import { WireError } from './errors.ts'
import type { Peer } from './peer.ts'
import type { Era, JsonObject } from './protocol.ts'

/** What to be told about. */
export interface SubscriptionFilter {
  toolsListChanged?: boolean
  promptsListChanged?: boolean
  resourcesListChanged?: boolean
  /** URIs of resources whose content is watched. */
  resourceSubscriptions?: readonly string[]
}

export interface SubscriptionOptions {
  signal?: AbortSignal
  /** What this subscription brought. The session's listener hears it too. */
  onNotification?: (method: string, params: JsonObject) => void
}

export interface Subscription extends AsyncDisposable {
  /** What the server agreed to tell. */
  readonly honored: SubscriptionFilter
  /** Resolves when it is over; never rejects. `local`: closed here; `remote`: ended by the server, or with the connection. */
  readonly closed: Promise<'local' | 'remote'>
  close(): Promise<void>
}

export async function subscribe(
  _source: { era: Era; peer: Peer },
  _filter: SubscriptionFilter,
  _options: SubscriptionOptions,
): Promise<Subscription> {
  throw new WireError('closed', 'Subscriptions are not there yet')
}
