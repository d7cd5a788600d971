export type { Binding, CallOptions, CallOutcome, ListingOptions, ToolResolution } from './binding.ts'
export { ConnectionSet } from './connection-set.ts'
export { type DedicatedOptions, DedicatedPorts } from './dedicated.ts'
export type { SetSettings } from './settings.ts'
