// Sign-in for the client under test: the SDK's flow over a store in memory, with a "browser" that follows the redirect by itself.

import type { Authorization } from '@convoke/wire'
import type {
  AuthOptions,
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  OAuthTokens,
} from '@modelcontextprotocol/client'

const REDIRECT_URL = 'http://localhost:3000/callback'
/** More step-ups than this are a server that is never satisfied. */
const STEP_UPS_MAX = 1

/** What the scenario hands over beforehand. */
export interface GivenClient {
  readonly client_id?: string
  readonly client_secret?: string
}

class MemoryProvider implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT_URL
  readonly clientMetadata: OAuthClientMetadata = { client_name: 'convoke', redirect_uris: [REDIRECT_URL] }
  readonly clientMetadataUrl = 'https://conformance-test.local/client-metadata.json'
  #client: OAuthClientInformationMixed | undefined
  #tokens: OAuthTokens | undefined
  #verifier = ''
  #discovery: OAuthDiscoveryState | undefined
  /** What came back to the redirect address. */
  callback = new URLSearchParams()

  constructor({ client_id, client_secret }: GivenClient) {
    if (client_id === undefined) return
    this.#client = {
      client_id,
      redirect_uris: [REDIRECT_URL],
      ...(client_secret === undefined ? {} : { client_secret }),
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
    const answer = await fetch(url, { redirect: 'manual' })
    this.callback = new URL(answer.headers.get('location') ?? '', url).searchParams
  }
}

/** Credentials for one server, asked for after its first 401. */
export function memoryAuthorization(serverUrl: string, given: GivenClient): Authorization {
  return new MemoryAuthorization(serverUrl, new MemoryProvider(given))
}

class MemoryAuthorization implements Authorization {
  readonly #serverUrl: string
  readonly #provider: MemoryProvider
  readonly #scopes = new Set<string>()
  #stepUps = 0

  constructor(serverUrl: string, provider: MemoryProvider) {
    this.#serverUrl = serverUrl
    this.#provider = provider
  }

  header(): string | undefined {
    const token = this.#provider.tokens()?.access_token
    return token === undefined ? undefined : `Bearer ${token}`
  }

  async challenge(status: number, wwwAuthenticate: string | undefined): Promise<boolean> {
    const { auth, extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client')
    const headers = wwwAuthenticate === undefined ? {} : { 'www-authenticate': wwwAuthenticate }
    const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(new Response(null, { status, headers }))
    if (status === 403 && (error !== 'insufficient_scope' || ++this.#stepUps > STEP_UPS_MAX)) return false
    const options: AuthOptions = {
      serverUrl: this.#serverUrl,
      ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
      ...this.#scopesFor(scope),
      ...(status === 403 ? { forceReauthorization: true } : {}),
    }
    // What was discovered before the challenge may belong to another authorization server.
    this.#provider.invalidateCredentials('discovery')
    if (status === 403) this.#provider.invalidateCredentials('tokens')
    if ((await auth(this.#provider, options)) === 'AUTHORIZED') return true
    const iss = this.#provider.callback.get('iss')
    const authorizationCode = this.#provider.callback.get('code') ?? ''
    await auth(this.#provider, { ...options, authorizationCode, ...(iss === null ? {} : { iss }) })
    return true
  }

  /** A step-up asks for what it is told to and for what was granted before. */
  #scopesFor(challenged: string | undefined): { scope?: string } {
    for (const one of `${challenged ?? ''} ${this.#provider.tokens()?.scope ?? ''}`.split(' ')) {
      if (one !== '') this.#scopes.add(one)
    }
    return challenged === undefined ? {} : { scope: [...this.#scopes].join(' ') }
  }
}
