// What a provider lists: plugins, what is wrong with the listing, and whether it is all of it. Pure.

/** Who a plugin is. */
export type PluginIdentity =
  /** Hosted for an account. At most 256 characters, none of them white space or invisible. */
  | { readonly kind: 'remote'; readonly remotePluginId: string }
  /** A folder that somebody selected for a thread. */
  | { readonly kind: 'selected-root'; readonly rootId: string }
  /** Installed from a marketplace. */
  | { readonly kind: 'installed'; readonly name: string; readonly marketplace: string }

/** Where a plugin is. */
export interface PluginLocation {
  readonly kind: 'hosted'
  /** `plugin://ID`, at most 1,024 characters. */
  readonly resourceUri: string
  /** Where its files are, at most 2,048 characters. */
  readonly bundleUri?: string
}

/** One plugin of a catalog. */
export interface PluginEntry {
  readonly id: PluginIdentity
  readonly enabled: boolean
  /** As the provider wrote it, at most 1,024 characters; cleaned and cut where it is shown. */
  readonly displayName: string
  /** At most 128 characters. */
  readonly version: string
  /** Declarations by server name, as text. Nothing here starts them. */
  readonly mcpServers: Readonly<Record<string, string>>
  /** Connectors that it uses, at most 1,024 of at most 256 characters. */
  readonly connectorIds: readonly string[]
  readonly locations: readonly PluginLocation[]
}

/** One answer of a provider. */
export interface PluginCatalog {
  readonly entries: readonly PluginEntry[]
  /** For people; at most 16 of at most 300 characters. They do not make it partial. */
  readonly warnings: readonly string[]
  /** There may be more: what is missing is not known to be gone. */
  readonly isPartial: boolean
}

/** Nothing is listed, and that is all. */
export const EMPTY_CATALOG: PluginCatalog = { entries: [], warnings: [], isPartial: false }
