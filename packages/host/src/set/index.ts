export type { Binding, CallOptions, CallOutcome, ListingOptions, ToolResolution } from './binding.ts'
