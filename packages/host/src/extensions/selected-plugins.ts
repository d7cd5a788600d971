// What the rest of a host may know of the plugins of a thread.
import { StoreKey } from './stores.ts'

/** One plugin that takes part. */
export interface SelectedPluginIdentity {
  readonly pluginId: string
  /** Absent: a hosted plugin, which has no files here. */
  readonly rootId?: string
}

/** The plugins that take part, in their order. Replaced whole. */
export interface SelectedPluginSnapshot {
  readonly plugins: readonly SelectedPluginIdentity[]
  /** Roots of plugins that are switched off. */
  readonly disabledRoots: readonly string[]
}

/** Nobody takes part. */
export const NO_PLUGINS: SelectedPluginSnapshot = { plugins: [], disabledRoots: [] }

/** Where it stands in the stores of a thread, a turn and a step. */
export const SELECTED_PLUGINS: StoreKey<SelectedPluginSnapshot> = new StoreKey('selected plugins')
