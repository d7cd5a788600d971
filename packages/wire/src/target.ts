// Where a server is and how to reach it.

/** A server that this host starts as a child process. */
export interface StdioTarget {
  kind: 'stdio'
  command: string
  args?: readonly string[]
  /** Literal values; they win over inherited ones. */
  env?: Readonly<Record<string, string>>
  /** Names read from the host's environment, on top of the short platform list. A name that is not set is left out. */
  inheritEnv?: readonly string[]
  /** Default: the host's working directory. */
  cwd?: string
  /** Where to note the process, so that `reapLeftovers` can end it if this host dies. Default: nowhere. */
  leaseDirectory?: string
  /** How long the server may take to end by itself once its input has ended, before SIGTERM, in milliseconds. Default 2,000. */
  closeGraceMs?: number
}

/** A server reached over HTTP. */
export interface HttpTarget {
  kind: 'http'
  url: string
  headers?: Readonly<Record<string, string>>
  /** `node` (default) starts in a few ms; `undici` costs less per call, and needs that package. */
  client?: 'node' | 'undici'
  authorization?: Authorization
  /** Certificates to trust besides the usual ones, PEM. */
  ca?: string
  /** Default `environment`: HTTPS_PROXY, HTTP_PROXY, NO_PROXY. */
  proxy?: 'environment' | 'none' | (string & {})
  /** Default `auto`: streamable HTTP, and the older HTTP+SSE when the server knows nothing else. */
  transport?: 'streamable' | 'sse' | 'auto'
  /** Further headers, over `headers`: asked for once, and again after the server refused them. */
  headersProvider?: HeadersProvider
}

/** Headers that can expire: asked once, asked again after the server refused them. */
export interface HeadersProvider {
  /** The headers to send now. */
  headers(): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>
  /** The server refused what `headers` gave. True: there are new ones, send again. */
  refused(status: number): Promise<boolean>
}

/**
 * Where the credentials of one server come from. What it takes to have them (`header`, `challenge`) is not counted as time of the call or of the start that
 * waits for it, up to 120,000 ms each; whoever takes longer fails the request with `unauthorized`. An abort of the request ends its waiting, never the work.
 */
export interface Authorization {
  /** Value of the `Authorization` header of the next request, or undefined to send none. Asked once for each request; at once where nothing has to be asked. */
  header(): string | undefined | Promise<string | undefined>
  /**
   * After a 401 or 403 with what `header` still gives. True: there are other credentials now, send again. Requests that were refused alike with the same value
   * share one answer.
   */
  challenge(refusal: CredentialsRefusal): Promise<boolean>
  /**
   * Value of the `DPoP` header of one request (RFC 9449 4), or undefined to send none. Absent: bearer tokens only. Asked anew each time something is sent: a
   * proof is never used twice.
   */
  proof?(request: ProofRequest): string | undefined | Promise<string | undefined>
  /** The server gave a nonce for the next proof, with whatever answer (RFC 9449 8.2). */
  sawNonce?(nonce: string): void
}

/** A request was refused for want of credentials. */
export interface CredentialsRefusal {
  /** 401 or 403. */
  readonly status: number
  /** All challenges of the server, joined with `, `. */
  readonly wwwAuthenticate: string | undefined
  /** The exact value of `Authorization` that was refused; undefined: none was sent. */
  readonly refused: string | undefined
  /** How often this very request had been sent again for want of credentials; 0 at its first refusal. */
  readonly round: number
}

/** What a proof of possession is about. */
export interface ProofRequest {
  readonly method: string
  /** With its query; whoever makes the proof leaves that out. */
  readonly url: string
  /** The value of `Authorization` that goes along. */
  readonly authorization: string
}
