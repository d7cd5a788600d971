// Sign-in for one server with credentials that live as long as the process. The SDK's OAuth flow is loaded after the first refusal.
import type {
  AuthOptions,
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  OAuthTokens,
} from '@modelcontextprotocol/client'

/** How {@link memoryAuthorization} introduces itself and who opens the page. */
export interface MemoryAuthorizationOptions {
  /** The URL of the MCP server. */
  readonly serverUrl: string
  /** Where the authorization server sends the browser back to. */
  readonly redirectUrl: string
  /** Shown on the consent page. Default `convoke`. */
  readonly clientName?: string
  /** URL of a client metadata document, for authorization servers that take one in place of a registration. */
  readonly clientMetadataUrl?: string
  /** A client that is registered already. */
  readonly client?: { readonly id: string; readonly secret?: string }
  /** Lets a person sign in at this page; resolves with the parameters with which the browser came back to `redirectUrl`. */
  openPage(url: URL): Promise<URLSearchParams>
}

/** Credentials of one HTTP server, in the shape that a connection asks for. */
export interface MemoryAuthorization {
  /** Value of the Authorization header; undefined before the first sign-in. */
  header(): string | undefined
  /** After a 401 or 403: signs in, or asks for more scopes once. True: the credentials are new. */
  challenge(refusal: { readonly status: number; readonly wwwAuthenticate: string | undefined }): Promise<boolean>
}

/** More step-ups than this are a server that is never satisfied. */
const STEP_UPS_MAX = 1
const HEADER_CHARS_MAX = 8_192

/**
 * Sign-in without a store: nothing is written anywhere.
 *
 * Requests that are refused together share one sign-in.
 */
export function memoryAuthorization(options: MemoryAuthorizationOptions): MemoryAuthorization {
  return new SignIn(options)
}

class SignIn implements MemoryAuthorization {
  readonly #options: MemoryAuthorizationOptions
  readonly #store: MemoryStore
  readonly #scopes = new Set<string>()
  #stepUps = 0
  #running: Promise<boolean> | undefined

  constructor(options: MemoryAuthorizationOptions) {
    this.#options = options
    this.#store = new MemoryStore(options)
  }

  header(): string | undefined {
    const token = this.#store.tokens()?.access_token
    return token === undefined ? undefined : `Bearer ${token}`
  }

  challenge({ status, wwwAuthenticate }: Parameters<MemoryAuthorization['challenge']>[0]): Promise<boolean> {
    this.#running ??= this.#answer(status, wwwAuthenticate?.slice(0, HEADER_CHARS_MAX)).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #answer(status: number, wwwAuthenticate: string | undefined): Promise<boolean> {
    const { auth, extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client')
    const headers = wwwAuthenticate === undefined ? {} : { 'www-authenticate': wwwAuthenticate }
    const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(new Response(null, { status, headers }))
    if (status === 403) {
      this.#stepUps += 1
      if (error !== 'insufficient_scope' || this.#stepUps > STEP_UPS_MAX) return false
    }
    const options: AuthOptions = {
      serverUrl: this.#options.serverUrl,
      ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
      ...this.#scopesFor(scope),
      ...(status === 403 ? { forceReauthorization: true } : {}),
    }
    // What was discovered before may belong to another authorization server.
    this.#store.invalidateCredentials('discovery')
    if (status === 403) this.#store.invalidateCredentials('tokens')
    if ((await auth(this.#store, options)) === 'AUTHORIZED') return true
    const { callback } = this.#store
    const code = callback.get('code')
    if (code === null) return false
    const iss = callback.get('iss')
    await auth(this.#store, { ...options, authorizationCode: code, ...(iss === null ? {} : { iss }) })
    return true
  }

  /** A step-up asks for what it is told to and for what was granted before. */
  #scopesFor(challenged: string | undefined): { scope?: string } {
    for (const one of `${challenged ?? ''} ${this.#store.tokens()?.scope ?? ''}`.split(' '))
      if (one !== '') this.#scopes.add(one)
    return challenged === undefined ? {} : { scope: [...this.#scopes].join(' ') }
  }
}

class MemoryStore implements OAuthClientProvider {
  readonly redirectUrl: string
  readonly clientMetadata: OAuthClientMetadata
  readonly clientMetadataUrl?: string
  readonly #openPage: (url: URL) => Promise<URLSearchParams>
  #client: OAuthClientInformationMixed | undefined
  #tokens: OAuthTokens | undefined
  #verifier = ''
  #discovery: OAuthDiscoveryState | undefined
  /** With what the browser came back. */
  callback: URLSearchParams = new URLSearchParams()

  constructor(options: MemoryAuthorizationOptions) {
    const { redirectUrl, clientName = 'convoke', clientMetadataUrl, client } = options
    this.redirectUrl = redirectUrl
    this.clientMetadata = { client_name: clientName, redirect_uris: [redirectUrl] }
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl
    this.#openPage = (url) => options.openPage(url)
    if (client !== undefined)
      this.#client = {
        client_id: client.id,
        redirect_uris: [redirectUrl],
        ...(client.secret === undefined ? {} : { client_secret: client.secret }),
      }
  }

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#client
  }
  saveClientInformation(information: OAuthClientInformationMixed): void {
    this.#client = information
  }
  tokens(): OAuthTokens | undefined {
    return this.#tokens
  }
  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens
  }
  codeVerifier(): string {
    return this.#verifier
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovery
  }
  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state
  }
  invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): void {
    if (scope === 'all' || scope === 'client') this.#client = undefined
    if (scope === 'all' || scope === 'tokens') this.#tokens = undefined
    if (scope === 'all' || scope === 'discovery') this.#discovery = undefined
  }
  async redirectToAuthorization(url: URL): Promise<void> {
    this.callback = await this.#openPage(url)
  }
}
