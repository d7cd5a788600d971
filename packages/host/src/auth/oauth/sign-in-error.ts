// What can go wrong with a sign-in. Callers branch on `kind`. Messages name places and settings, and never show a secret, a code, a token or a query.

/** Who or what is at fault, coarse enough to act on. */
export type SignInErrorKind =
  /** Nothing at the server says how to sign in. */
  | 'no-metadata'
  /** A document is there and cannot be used. */
  | 'metadata-invalid'
  /** A document claims to be another authorization server's. */
  | 'issuer-mismatch'
  /** A document is about another server. */
  | 'resource-mismatch'
  /** A URL in a document, or an address behind it, may not be used. */
  | 'endpoint-refused'
  /** The server names another authorization server than the entry allows. */
  | 'server-changed'
  /** The authorization server does not announce PKCE with S256. */
  | 'pkce-unsupported'
  /** There is no way to get a client id. */
  | 'client-missing'
  | 'registration-refused'
  /** The authorization server said no, with an OAuth error. */
  | 'provider-refused'
  /** As `provider-refused`, about the scopes. */
  | 'scope-refused'
  /** What came back belongs to another attempt. */
  | 'state-mismatch'
  /** An answer of the authorization server cannot be used. */
  | 'answer-invalid'
  /** The browser cannot be received: the port is taken, or there is nothing to listen on. */
  | 'callback-unavailable'
  /** A setting of the entry cannot be used. */
  | 'settings-invalid'
  | 'unreachable'
  | 'timed-out'
  | 'cancelled'

/** What is known besides; each only where it applies. Clean and bounded. */
export interface SignInErrorDetails {
  /** Without its query. */
  readonly url?: string
  /** The field of a document, or the setting of the entry, that is at fault. */
  readonly field?: string
  /** The error code of OAuth. */
  readonly error?: string
  /** As the authorization server wrote it. */
  readonly description?: string
  readonly status?: number
  readonly cause?: unknown
}

/** Every expected failure of a sign-in. */
export class SignInError extends Error {
  override readonly name = 'SignInError'
  readonly kind: SignInErrorKind
  readonly details: SignInErrorDetails

  constructor(kind: SignInErrorKind, message: string, details: SignInErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.kind = kind
    this.details = details
  }
}
