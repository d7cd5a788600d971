// What a sign-in leaves behind: at which authorization server, for which resource, as which client, and the tokens. Shapes only.

/** The parts of an authorization server's metadata (RFC 8414) that are needed after the sign-in, as validated then. */
export interface IssuerFacts {
  /** Exactly as its metadata writes it; compared without normalising. */
  readonly issuer: string
  readonly tokenEndpoint: string
  /** RFC 7009. */
  readonly revocationEndpoint?: string
  /** RFC 8414 `token_endpoint_auth_methods_supported`; absent: it does not say. */
  readonly tokenEndpointAuthMethods?: readonly string[]
  /** RFC 9449 `dpop_signing_alg_values_supported`. */
  readonly dpopAlgorithms?: readonly string[]
}

/** Who we are to one authorization server. Never used at another one. */
export interface OAuthClient {
  readonly id: string
  /** `configured`: from the entry; `document`: the id is the URL of our metadata document; `registered`: RFC 7591, for this sign-in. */
  readonly kind: 'configured' | 'document' | 'registered'
  /** Only of a registered client: a configured secret is read from its variable each time and never stored. */
  readonly secret?: string
  /** Milliseconds of the epoch; absent: never. */
  readonly secretExpiresAtMs?: number
  /** As the registration answered; absent: chosen by what the server supports. */
  readonly tokenEndpointAuthMethod?: string
}

/** Tokens of one grant. */
export interface TokenSet {
  readonly accessToken: string
  /** `DPoP`: bound to the key of the record (RFC 9449). */
  readonly type: 'Bearer' | 'DPoP'
  readonly refreshToken?: string
  /** What was granted; absent: the server did not say. */
  readonly scopes?: readonly string[]
  /** Milliseconds of the epoch; absent: nobody knows. */
  readonly expiresAtMs?: number
}

/** Who signed in, as the id token of the same answer says (OpenID Connect Core 3.1.3.7); for people only. */
export interface Subject {
  readonly id: string
  readonly name?: string
}

/** Everything that a successful sign-in brought. */
export interface Grant {
  readonly issuer: IssuerFacts
  /** `resource` of RFC 8707 as it was sent, verbatim. */
  readonly resource: string
  readonly client: OAuthClient
  readonly tokens: TokenSet
  /** What was asked for; absent: nothing in particular. */
  readonly requestedScopes?: readonly string[]
  readonly subject?: Subject
  /** The private key of DPoP as a JWK, where tokens are bound to one. */
  readonly dpopKey?: Readonly<Record<string, unknown>>
}
