// Speaks with the authorization servers of a host's servers: signs in, renews, revokes, asks. What comes of it is kept elsewhere.
import type { ServerDefinition } from '../config/index.ts'
import type { RefreshAnswer } from './decide.ts'
import type { Grant } from './grant.ts'
import type { GrantHolder, TokenRequests } from './grant-holder.ts'
import { type EnterpriseSignIn, isMachine, machineCredentials, serverOf } from './machine-sign-in.ts'
import type { DeviceCode } from './oauth/device.ts'
import type { SignInOptions as FlowOptions, RefreshOutcome, SignInServer } from './oauth/flow.ts'
import type { OAuthPort } from './oauth/port.ts'
import type { CredentialRecord } from './record.ts'
import type { ProofMaker } from './sign-in-authorization.ts'
import { missingIssuer, signInFailure } from './sign-in-failures.ts'

/** What {@link AuthorizationServers} are reached by. */
export interface AuthorizationServersOptions {
  readonly port: OAuthPort
  /** The variables of the host. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** How this program introduces itself to authorization servers. */
  readonly client: SignInClient
  /** Reads the certificates that a definition names. @throws {HostError} `CA_UNREADABLE` */
  readCa(definition: ServerDefinition): Promise<string | undefined>
  /** A key or a token in a file of the user, at most 64 KiB. */
  readFile(path: string): Promise<string>
  /** Lets people of a company in without asking each of them (SEP-990). */
  readonly enterprise?: EnterpriseSignIn | undefined
}

/** How a program introduces itself. */
export interface SignInClient {
  /** Shown on consent pages. */
  readonly name: string
  /** The URL of its metadata document, for authorization servers that take one in place of a registration. */
  readonly metadataUrl?: string
}

/** How a sign-in goes. */
export type SignInOptions = Pick<
  FlowOptions,
  | 'openPage'
  | 'onPage'
  | 'paste'
  | 'onPasteRefused'
  | 'onScopesDropped'
  | 'scopes'
  | 'scopesIfListed'
  | 'timeoutMs'
  | 'signal'
> & {
  /** Shown to the person, who enters the code in a browser of any device (RFC 8628). With it no page is opened and nobody waits for a browser here. */
  onCode?(code: DeviceCode): void
}

/** What a sign-in that takes the place of another one asks for besides. */
export interface StepUp {
  /** What was granted before. */
  readonly granted: readonly string[]
  /** What servers have missed since. */
  readonly wanted: readonly string[]
}

/** The authorization servers behind the servers of one host. */
export class AuthorizationServers {
  readonly #options: AuthorizationServersOptions
  /** What servers said last with a refusal, by server: where the next sign-in begins. */
  readonly #challenges = new Map<string, string>()

  constructor(options: AuthorizationServersOptions) {
    this.#options = options
  }

  /** A server has refused credentials with these words. @returns the scopes that it missed. */
  async heard({ name }: ServerDefinition, wwwAuthenticate: string): Promise<readonly string[]> {
    this.#challenges.set(name, wwwAuthenticate)
    const { parseChallenge } = await oauth()
    const { scopes = [], error } = parseChallenge(wwwAuthenticate) ?? {}
    return error === 'insufficient_scope' ? scopes : []
  }

  /** Lets a person sign in. @throws {HostError} what came of it, by its kind. */
  async signIn(definition: ServerDefinition, before: StepUp, options: SignInOptions): Promise<Grant> {
    const { port, client, env } = this.#options
    const variable = definition.oauth?.clientSecretEnvVar
    const { granted, wanted } = before
    try {
      const refused = missingIssuer(definition)
      if (refused !== undefined) throw refused
      const { signIn, signInWithCode } = await oauth()
      const { onCode, ...others } = options
      const asked: FlowOptions = {
        ...others,
        port,
        server: await this.#server(definition),
        challenge: await this.#challengeOf(definition, options.signal),
        // What was granted is asked for again, besides what was missing: a new grant takes the place of the old one. Who names scopes gets those.
        ...(wanted.length === 0 || others.scopes !== undefined
          ? {}
          : { stepUp: { scopes: [...new Set([...granted, ...wanted])], granted } }),
        clientSecret: variable === undefined ? undefined : env[variable],
        clientMetadataUrl: client.metadataUrl,
        clientName: client.name,
        dpop: definition.oauth?.dpop,
      }
      const grant = await (onCode === undefined ? signIn(asked) : signInWithCode({ ...asked, onCode }))
      this.#challenges.delete(definition.name)
      return grant
    } catch (error) {
      throw signInFailure(definition, error)
    }
  }

  /** How the tokens of a sign-in to the server are renewed. @param newest What its entry says now; asked for each renewal. */
  requests(newest: () => ServerDefinition): TokenRequests {
    const { port } = this.#options
    return {
      refresh: async (record, refreshToken) => {
        const definition = newest()
        const [{ refreshTokens }, server] = await Promise.all([oauth(), this.#server(definition)])
        const known = this.#knownOf(definition, record)
        return answerOf(await refreshTokens({ grant: record, server, refreshToken, ...known }, port), record)
      },
      ...(isMachine(newest()) ? { obtain: (signal) => this.#obtain(newest(), signal) } : {}),
    }
  }

  /** Tells the authorization server that the tokens are not needed any more (RFC 7009), 10 s at most. Never rejects; an abort is `failed`. */
  async revoke(
    definition: ServerDefinition,
    record: CredentialRecord,
    limits: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
  ): Promise<'done' | 'unsupported' | 'failed'> {
    try {
      const [{ revokeTokens }, server] = await Promise.all([oauth(), this.#server(definition)])
      const known = this.#knownOf(definition, record)
      const { kind } = await revokeTokens({ grant: record, server, ...known, ...limits }, this.#options.port)
      return kind === 'revoked' ? 'done' : kind
    } catch {
      return 'failed'
    }
  }

  /** Asks a server whether it wants a sign-in, 5 s at most; undefined: it did not say. @throws {HostError} `CANCELLED` */
  async wantsSignIn(
    definition: ServerDefinition,
    signal: AbortSignal | undefined,
  ): Promise<'sign-in' | 'nothing' | undefined> {
    const [{ probe }, server, challenge] = await Promise.all([
      oauth(),
      this.#server(definition),
      this.#challengeOf(definition, signal),
    ])
    const asked = { server, challenge, port: this.#options.port, signal, timeoutMs: PROBE_MS_MAX }
    const { kind } = await probe(asked).catch((error: unknown) => {
      throw signInFailure(definition, error)
    })
    if (kind === 'sign-in' || kind === 'unusable') return 'sign-in'
    return kind === 'none' ? 'nothing' : undefined
  }

  /** Makes proofs with the key that the tokens of a sign-in are bound to. */
  async proofs(holder: GrantHolder): Promise<ProofMaker | undefined> {
    const key = holder.record?.dpopKey
    if (key === undefined) return undefined
    const { openDpop } = await oauth()
    return openDpop(key)
  }

  async #obtain(definition: ServerDefinition, signal: AbortSignal): Promise<Grant> {
    const { issuer = '', dpop } = definition.oauth ?? {}
    const { port, enterprise, readFile } = this.#options
    try {
      const [{ machineGrant }, server, credentials] = await Promise.all([
        oauth(),
        this.#server(definition),
        machineCredentials(definition, { clientSecret: this.#secretOf(definition, issuer), enterprise, readFile }),
      ])
      const challenge = this.#challenges.get(definition.name)
      return await machineGrant({ port, server, credentials, expectedIssuer: issuer, dpop, challenge, signal })
    } catch (error) {
      throw signInFailure(definition, error)
    }
  }

  /**
   * What the server says to somebody without credentials. Many say only there where their metadata is, and which scopes they want; a program that has not
   * spoken with it before asks. A server that answers otherwise, or not at all, has said nothing.
   */
  async #challengeOf(definition: ServerDefinition, signal: AbortSignal | undefined): Promise<string | undefined> {
    const { name } = definition
    const known = this.#challenges.get(name)
    if (known !== undefined) return known
    try {
      const ca = await this.#options.readCa(definition)
      const { status, header } = await this.#options.port.fetch(serverOf(definition).url, {
        method: 'POST',
        headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
        body: PING,
        addresses: 'any', // the person has written this one
        answerBytesMax: CHALLENGE_BYTES_MAX,
        timeoutMs: CHALLENGE_MS_MAX,
        ...(signal === undefined ? {} : { signal }),
        ...(ca === undefined ? {} : { ca }),
      })
      const challenge = status === 401 ? header('www-authenticate') : undefined
      if (challenge !== undefined) this.#challenges.set(name, challenge)
      return challenge
    } catch {
      return undefined
    }
  }

  /**
   * The secret of a configured client; never shown to another issuer than the entry names. Where it names none, the sign-in is older than the rule that it has
   * to, and its own issuer has seen the secret.
   */
  #secretOf({ oauth: settings }: ServerDefinition, issuer: string): string | undefined {
    const variable = settings?.clientSecretEnvVar
    if (variable === undefined || (settings?.issuer !== undefined && settings.issuer !== issuer)) return undefined
    return this.#options.env[variable]
  }

  /** What the entry says of the client and the issuer of a sign-in; nothing if it means others now. */
  #knownOf(
    definition: ServerDefinition,
    { issuer: { issuer }, client }: CredentialRecord,
  ): { readonly clientSecret: string | undefined; readonly issuerIsConfigured: boolean } {
    const { oauth: settings } = definition
    const isClient = client.kind === 'configured' && settings?.clientId === client.id
    return {
      clientSecret: isClient ? this.#secretOf(definition, issuer) : undefined,
      issuerIsConfigured: settings?.issuer === issuer,
    }
  }

  async #server(definition: ServerDefinition): Promise<SignInServer> {
    const { name, oauth: settings, scopes } = definition
    return { name, url: serverOf(definition).url, oauth: settings, scopes, ca: await this.#options.readCa(definition) }
  }
}

/** Opens no session, and does nothing where it is answered. */
const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
const CHALLENGE_BYTES_MAX = 64 * 1024
const CHALLENGE_MS_MAX = 2_000
/** With the challenge before it, 5 s at most. */
const PROBE_MS_MAX = 3_000

/** How the protocol is spoken is loaded when somebody speaks it. */
const oauth = (): Promise<typeof import('./oauth/index.ts')> => import('./oauth/index.ts')

/**
 * Only what no later try can change is final: a grant that is over, and a registration of ours that is gone. A limit of requests, a fault of the entry or a
 * variable that this program lacks must not end a sign-in for all the others.
 */
function answerOf(outcome: RefreshOutcome, { client }: CredentialRecord): RefreshAnswer & { readonly detail?: string } {
  if (outcome.kind === 'refreshed') return outcome
  const isFinal =
    outcome.kind === 'rejected' &&
    (outcome.reason === 'grant' || (outcome.reason === 'client' && client.kind === 'registered'))
  return isFinal ? { kind: 'rejected', because: outcome.because } : { kind: 'failed', detail: outcome.because }
}
