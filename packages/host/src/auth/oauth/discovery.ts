// From the URL of a server to validated facts about how to sign in there. Every document comes from somebody else, and is believed only about itself.
import { ask, withDeadline } from './asking.ts'
import { type Challenge, parseChallenge } from './challenge.ts'
import { type AddressRule, canonicalResource, checkEndpoint, placeOf } from './endpoints.ts'
import type { Asking, Discovery, ProbeOutcome, SignInServer } from './flow.ts'
import {
  type IssuerExpectation,
  type IssuerMetadata,
  type ResourceFacts,
  readDocument,
  readIssuerMetadata,
  readResourceMetadata,
} from './metadata.ts'
import { addressesFor, checkReach, widerAddresses } from './reaching.ts'
import { SignInError, type SignInErrorKind } from './sign-in-error.ts'

/** What {@link discover} is to find out. */
export interface DiscoverOptions extends Asking {
  readonly server: SignInServer
  /** The `WWW-Authenticate` of a refusal. */
  readonly challenge?: string | undefined
  /** Default `code`: somebody will sign in with a browser. */
  readonly use?: 'code' | 'token'
  /** For all requests together, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number | undefined
}

const DISCOVERY_TIMEOUT_MS = 30_000
const PROBE_TIMEOUT_MS = 5_000
/** The specification asks for it with every request; no server of sign-in documents is known to mind the version. */
const HEADERS = { accept: 'application/json', 'mcp-protocol-version': '2025-11-25' }
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const RESOURCE_WELL_KNOWN = '/.well-known/oauth-protected-resource'
const ISSUER_WELL_KNOWN = '/.well-known/oauth-authorization-server'
const OPENID_WELL_KNOWN = '/.well-known/openid-configuration'

/** After these there is no use in looking further. */
const FINAL: ReadonlySet<SignInErrorKind> = new Set(['unreachable', 'timed-out', 'cancelled'])

/**
 * Finds out where and how to sign in. A document that does not hold is dropped and the next place is looked at; when there is none left, the first reason counts.
 * @throws {SignInError} `no-metadata`, `metadata-invalid`, `issuer-mismatch`, `resource-mismatch`, `endpoint-refused`, `server-changed`, `pkce-unsupported`,
 * `settings-invalid`, `unreachable`, `timed-out`; `cancelled` soon after the abort.
 */
export function discover(options: DiscoverOptions): Promise<Discovery> {
  const { server, timeoutMs = DISCOVERY_TIMEOUT_MS } = options
  const what = `Finding out how to sign in to "${server.name}"`
  return withDeadline({ ...options, timeoutMs }, what, (signal) => new Search({ ...options, signal }).run())
}

/** Does this server want a sign-in? Opens nothing, and asks for 5 s at most. Never rejects, but on abort: `cancelled`. */
export async function probe(options: Omit<DiscoverOptions, 'use'>): Promise<ProbeOutcome> {
  try {
    const found = await discover({ ...options, timeoutMs: options.timeoutMs ?? PROBE_TIMEOUT_MS })
    if (found.source === 'defaults' && options.challenge === undefined && !(await refuses(options, found)))
      return { kind: 'none' }
    const { discoveredScopes: scopes } = found
    return { kind: 'sign-in', issuer: found.issuer.issuer, ...(scopes === undefined ? {} : { scopes }) }
  } catch (error) {
    if (!(error instanceof SignInError) || error.kind === 'cancelled') throw error
    if (error.kind === 'no-metadata') return { kind: 'none' }
    if (error.kind === 'unreachable' || error.kind === 'timed-out')
      return { kind: 'unreachable', because: error.message }
    return { kind: 'unusable', because: error.message }
  }
}

/** Where no document says anything, only the server itself can tell whether it lets everybody in. */
async function refuses(
  { server, port, signal, timeoutMs = PROBE_TIMEOUT_MS }: Omit<DiscoverOptions, 'use'>,
  { addresses }: Discovery,
): Promise<boolean> {
  const { status } = await ask(port, server.url, {
    method: 'POST',
    headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    body: PING,
    addresses,
    timeoutMs,
    ...(server.ca === undefined ? {} : { ca: server.ca }),
    ...(signal === undefined ? {} : { signal }),
  })
  return status === 401
}

/**
 * The metadata of one authorization server, from the places where it publishes it.
 * @throws {SignInError} as {@link discover}
 */
export async function fetchIssuer(
  issuer: string,
  {
    addresses,
    use,
    ca,
    port,
    signal,
  }: Asking & Pick<IssuerExpectation, 'addresses' | 'use'> & { ca?: string | undefined },
): Promise<IssuerMetadata> {
  const search = new Documents({ port, signal, ca })
  const found = await search.first(issuerPlaces(issuer), addresses, (document, at) =>
    readIssuerMetadata(document, { issuers: [issuer], at, addresses, use }),
  )
  if (found !== undefined) return found
  throw (
    search.firstRefusal ??
    new SignInError('no-metadata', `${placeOf(issuer)} does not publish how to sign in there`, { url: placeOf(issuer) })
  )
}

/** Looks at one place after the other, and remembers why each was of no use. */
class Documents {
  readonly #asking: Omit<Asking, 'timeoutMs'> & { readonly ca?: string | undefined }
  /** Why the first document that was there could not be used. */
  firstRefusal: SignInError | undefined

  constructor(asking: Omit<Asking, 'timeoutMs'> & { readonly ca?: string | undefined }) {
    this.#asking = asking
  }

  async first<Found>(
    places: readonly string[],
    addresses: AddressRule,
    read: (document: NonNullable<ReturnType<typeof readDocument>>, at: string) => Found,
  ): Promise<Found | undefined> {
    for (const place of places) {
      try {
        const document = await this.#fetch(place, addresses)
        if (document !== undefined) return read(document, place)
      } catch (error) {
        if (!(error instanceof SignInError) || FINAL.has(error.kind)) throw error
        this.firstRefusal ??= error
      }
    }
    return undefined
  }

  async #fetch(place: string, addresses: AddressRule): Promise<ReturnType<typeof readDocument>> {
    const { port, signal, ca } = this.#asking
    const { status, body } = await ask(port, place, {
      headers: HEADERS,
      addresses,
      ...(ca === undefined ? {} : { ca }),
      ...(signal === undefined ? {} : { signal }),
    })
    if (status >= 500)
      throw new SignInError('metadata-invalid', `${placeOf(place)} answered with HTTP ${status}`, {
        url: placeOf(place),
        status,
      })
    // A site that answers every path with its home page has no document there.
    return status === 200 ? readDocument(body) : undefined
  }
}

class Search {
  readonly #options: DiscoverOptions
  readonly #challenge: Challenge | undefined
  readonly #url: URL
  readonly #documents: Documents

  constructor(options: DiscoverOptions) {
    this.#options = options
    this.#challenge = parseChallenge(options.challenge)
    this.#url = new URL(options.server.url)
    this.#documents = new Documents({ port: options.port, signal: options.signal, ca: options.server.ca })
  }

  async run(): Promise<Discovery> {
    const addresses = await addressesFor(this.#url.href, this.#options.port)
    const resource = await this.#findResource(addresses)
    const found =
      resource === undefined ? await this.#findWithoutResource(addresses) : await this.#findIssuer(resource, addresses)
    await this.#checkReach(found)
    return found
  }

  async #findResource(addresses: AddressRule): Promise<ResourceFacts | undefined> {
    const told = this.#challenge?.resourceMetadata
    const places = told === undefined ? [] : [checkEndpoint(told, 'resource_metadata', addresses)]
    const allowedResource = this.#options.server.oauth?.resource
    const found = await this.#documents.first(
      [...new Set([...places, ...wellKnown(this.#url, RESOURCE_WELL_KNOWN)])],
      addresses,
      (document, at) => readResourceMetadata(document, { serverUrl: this.#url.href, at, allowedResource }),
    )
    // A document about somebody else is no licence to guess.
    const refusal = this.#documents.firstRefusal
    if (found === undefined && refusal !== undefined && refusal.details.field !== undefined) throw refusal
    return found
  }

  async #findIssuer(resource: ResourceFacts, serverAddresses: AddressRule): Promise<Discovery> {
    const pinned = this.#options.server.oauth?.issuer
    if (pinned !== undefined && !resource.issuers.includes(pinned))
      throw new SignInError(
        'server-changed',
        `"${this.#options.server.name}" says that ${placeOf(resource.issuers[0] ?? '')} signs people in; its entry allows only ${placeOf(pinned)} (oauth.issuer)`,
        { field: 'oauth.issuer' },
      )
    const issuer = pinned ?? resource.issuers[0] ?? ''
    const addresses = await this.#addressesOf(pinned, serverAddresses)
    const field = pinned === undefined ? 'authorization_servers' : 'oauth.issuer'
    checkEndpoint(issuer, field, addresses)
    await checkReach(issuer, { field, addresses, port: this.#options.port })
    const metadata = await fetchIssuer(issuer, {
      ...this.#options,
      ...this.#use(),
      addresses,
      ca: this.#options.server.ca,
    })
    return this.#compose(metadata, { addresses, source: 'protected-resource', resource })
  }

  /** Before 2025-06-18 a server was its own authorization server. A pinned issuer is asked in its place. */
  async #findWithoutResource(serverAddresses: AddressRule): Promise<Discovery> {
    const { server } = this.#options
    const pinned = server.oauth?.issuer
    const addresses = await this.#addressesOf(pinned, serverAddresses)
    if (pinned !== undefined) {
      checkEndpoint(pinned, 'oauth.issuer', addresses)
      const metadata = await fetchIssuer(pinned, { ...this.#options, ...this.#use(), addresses, ca: server.ca })
      return this.#compose(metadata, { addresses, source: 'server' })
    }
    const { origin } = this.#url
    // Nobody told an identifier, so it is whichever of the two that lead to the place where the document is.
    const folder = this.#url.pathname.replace(/\/$/, '')
    const metadata =
      (folder === '' ? undefined : await this.#readAt([`${origin}${folder}`, `${origin}${folder}/`], addresses)) ??
      (await this.#readAt([origin, `${origin}/`], addresses))
    if (metadata !== undefined) return this.#compose(metadata, { addresses, source: 'server' })
    const refusal = this.#documents.firstRefusal
    if (refusal !== undefined) throw refusal
    return this.#defaults(addresses)
  }

  #readAt(issuers: readonly [string, string], addresses: AddressRule): Promise<IssuerMetadata | undefined> {
    return this.#documents.first(issuerPlaces(issuers[0]), addresses, (document, at) =>
      readIssuerMetadata(document, { issuers, at, addresses, ...this.#use() }),
    )
  }

  /** Without any document the paths of 2025-03-26 are used, at the server's own origin and nowhere else. They say nothing about PKCE; it is used all the same. */
  #defaults(addresses: AddressRule): Discovery {
    const { origin } = this.#url
    const endpoint = (path: string, field: string): string => checkEndpoint(`${origin}${path}`, field, addresses)
    const metadata: IssuerMetadata = {
      facts: { issuer: origin, tokenEndpoint: endpoint('/token', 'token_endpoint') },
      authorizationEndpoint: endpoint('/authorize', 'authorization_endpoint'),
      registrationEndpoint: endpoint('/register', 'registration_endpoint'),
      takesClientDocuments: false,
      promisesIssuer: false,
    }
    return this.#compose(metadata, { addresses, source: 'defaults' })
  }

  #compose(
    metadata: IssuerMetadata,
    { addresses, source, resource }: Pick<Discovery, 'addresses' | 'source'> & { resource?: ResourceFacts },
  ): Discovery {
    const { facts, authorizationEndpoint = '', registrationEndpoint, scopes: issuerScopes } = metadata
    const { deviceAuthorizationEndpoint } = metadata
    const challengedScopes = this.#challenge?.scopes
    const discoveredScopes = resource === undefined ? issuerScopes : resource.scopes
    return {
      issuer: facts,
      authorizationEndpoint,
      ...(registrationEndpoint === undefined ? {} : { registrationEndpoint }),
      ...(deviceAuthorizationEndpoint === undefined ? {} : { deviceAuthorizationEndpoint }),
      takesClientDocuments: metadata.takesClientDocuments,
      promisesIssuer: metadata.promisesIssuer,
      ...(issuerScopes === undefined ? {} : { issuerScopes }),
      resource: this.#options.server.oauth?.resource ?? resource?.resource ?? canonicalResource(this.#url.href),
      ...(challengedScopes === undefined ? {} : { challengedScopes }),
      ...(discoveredScopes === undefined ? {} : { discoveredScopes }),
      wantsDpop: resource?.requiresDpop === true || this.#challenge?.offersDpop === true,
      addresses,
      source,
    }
  }

  /** Before a browser opens and a secret leaves. The door looks again when it connects. */
  async #checkReach(found: Discovery): Promise<void> {
    const { issuer, authorizationEndpoint, registrationEndpoint, deviceAuthorizationEndpoint, addresses } = found
    const { port } = this.#options
    for (const [field, url] of [
      ['authorization_endpoint', authorizationEndpoint],
      ['token_endpoint', issuer.tokenEndpoint],
      ['registration_endpoint', registrationEndpoint],
      ['revocation_endpoint', issuer.revocationEndpoint],
      ['device_authorization_endpoint', deviceAuthorizationEndpoint],
    ] as const)
      if (url !== undefined && url !== '') await checkReach(url, { field, addresses, port })
  }

  /** What a person wrote may lead wherever they like; what others wrote not. */
  async #addressesOf(pinned: string | undefined, addresses: AddressRule): Promise<AddressRule> {
    if (pinned === undefined || !URL.canParse(pinned)) return addresses
    return widerAddresses(addresses, await addressesFor(pinned, this.#options.port))
  }

  #use(): Pick<IssuerExpectation, 'use'> {
    return { use: this.#options.use ?? 'code' }
  }
}

/** At the folder of the URL, then at the root. */
function wellKnown({ origin, pathname, search }: URL, path: string): string[] {
  const folder = pathname.replace(/\/$/, '')
  return folder === '' ? [`${origin}${path}`] : [`${origin}${path}${folder}${search}`, `${origin}${path}`]
}

/** In the order of the specification (Authorization Server Metadata Discovery). */
function issuerPlaces(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const folder = pathname.replace(/\/$/, '')
  if (folder === '') return [`${origin}${ISSUER_WELL_KNOWN}`, `${origin}${OPENID_WELL_KNOWN}`]
  return [
    `${origin}${ISSUER_WELL_KNOWN}${folder}`,
    `${origin}${OPENID_WELL_KNOWN}${folder}`,
    `${origin}${folder}${OPENID_WELL_KNOWN}`,
  ]
}
