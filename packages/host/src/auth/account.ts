// Who the host is signed in as. How the sign-in goes is the source's affair; this room only decides who may see its token.

/** The account of the host at one moment. */
export interface Account {
  /** Names the account, stable over refreshes; never a token. */
  readonly id: string
  /**
   * Names the sign-in. A new one, or a token that was supplied from outside, is a new grant even for the same account; the source's own
   * refresh of a token is not.
   */
  readonly grant: string
}

/**
 * What happened to an account: `replaced`, somebody signed in anew, as somebody else, or not at all any more; `refreshed`, the same grant has
 * a newer token.
 */
export type AccountChange = 'replaced' | 'refreshed'

/** Where the account comes from. One per host. */
export interface AccountSource {
  /** The exact origins (`https://api.example.com`) that may see the token. Read when the host is made. */
  readonly origins: readonly string[]
  /** Undefined: nobody is signed in. */
  current(): Account | undefined
  /** The bearer token of this account, read before every request; undefined when the account is not the current one any more. */
  token(account: Account): string | undefined | Promise<string | undefined>
  /** A server refused the token. True: there is a newer one of the same grant now. Requests that were refused together ask once. */
  refresh(account: Account): Promise<boolean>
  /**
   * Finds what others have done to the account, and tells it. Asked before bindings and calls: what it costs is the source's affair, and nothing is to be
   * waited for that may take long. Absent: every change is told by itself.
   */
  look?(): void | Promise<void>
  /** @returns a function that ends the subscription. */
  onChange(listener: (change: AccountChange) => void): () => void
}
