// What a binding shows: made once, shared by every binding that sees the same.
import type { ToolView } from '../catalog/index.ts'
import type { ServerStatus } from '../events/index.ts'
import type { BoundServer } from './bound-server.ts'
import type { LiveServers } from './live-servers.ts'
import { BoundOffers } from './offers.ts'
import type { CallServices } from './prepared-call.ts'
import { ToolCalls } from './tool-calls.ts'

/** What a captured view is made of. */
export interface CapturedViewInit {
  /** Says what was seen: equal parts, equal view. Undefined: never to be given twice. */
  readonly key: CaptureKey | undefined
  /** The servers that were ready. */
  readonly servers: readonly BoundServer[]
  readonly view: ToolView
  readonly statuses: readonly ServerStatus[]
  /** Where a tool that was listed from an earlier run finds its server. */
  readonly live: LiveServers
  readonly services: CallServices
  readonly nameCharsMax: number
}

/** Values that are replaced, never changed, when anything that a binding shows does; compared one by one. */
export type CaptureKey = readonly unknown[]

/** Do two captures see the same? */
export function sameCapture(one: CaptureKey | undefined, other: CaptureKey | undefined): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one.length === other.length &&
    one.every((part, index) => part === other[index])
  )
}

/** Frozen: it holds no connection open; bindings do. */
export class CapturedView {
  readonly key: CaptureKey | undefined
  readonly servers: ReadonlyMap<string, BoundServer>
  readonly view: ToolView
  readonly statuses: readonly ServerStatus[]
  readonly calls: ToolCalls
  readonly offers: BoundOffers

  constructor({ key, servers, view, statuses, live, services, nameCharsMax }: CapturedViewInit) {
    this.key = key
    this.servers = new Map(servers.map((bound) => [bound.definition.name, bound]))
    this.view = view
    this.statuses = statuses
    this.calls = new ToolCalls({ ...services, servers: this.servers, live })
    this.offers = new BoundOffers({ servers: this.servers, nameCharsMax, platform: services.platform, live })
  }
}
