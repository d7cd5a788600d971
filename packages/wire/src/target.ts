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

/** Where credentials come from. */
export interface Authorization {
  /** Value of the Authorization header, or undefined to send none. */
  header(): string | undefined | Promise<string | undefined>
  /** After a 401 or 403. True: the credentials are new, send again. */
  challenge(status: number, wwwAuthenticate: string | undefined): Promise<boolean>
}
