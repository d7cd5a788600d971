import type { ServerDefinition } from '../config/index.ts'
import type { HostEvent } from '../events/index.ts'
import type { Authorization, ProtocolSettings } from '../protocol/index.ts'

/** What every connection and binding of one set has in common. */
export interface SetSettings {
  readonly definitions: readonly ServerDefinition[]
  readonly protocol: ProtocolSettings
  readonly authorization: ((definition: ServerDefinition) => Authorization | undefined) | undefined
  readonly start: 'all' | readonly string[]
  /** Longest flat name, in characters. */
  readonly nameCharsMax: number
  /** `none`: modern servers are not asked to tell about changes. */
  readonly watch: 'changes' | 'none'
  readonly emit: (event: HostEvent) => void
}
