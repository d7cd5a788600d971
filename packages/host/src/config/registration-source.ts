// Who may have a say about the servers of a host.

/** Who declares or removes a server. Later tiers win over earlier ones. */
export type RegistrationSource =
  /** A plugin that was found. The lower `order` wins. */
  | { readonly kind: 'discovered-plugin'; readonly plugin: string; readonly order: number }
  /** A plugin that a person chose for this thread. The lower `order` wins. */
  | { readonly kind: 'selected-plugin'; readonly plugin: string; readonly order: number }
  | { readonly kind: 'config' }
  /** Made from settings that are not entries of servers. */
  | { readonly kind: 'compatibility' }
  /** The higher `order`, the later contribution, wins. */
  | { readonly kind: 'extension'; readonly extension: string; readonly order: number }
