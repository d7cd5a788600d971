// The account of a host where it needs the world: variables, stores and the network. Part of the composition root.
import { type AccountSource, accountInVariable, type EnvironmentAccount, SignInAccount } from './auth/index.ts'
import { HostError } from './base/index.ts'
import { defineServer, type OauthSettings } from './config/index.ts'
import { makeSignIns, type SignInSettings } from './host-sign-ins.ts'
import { nodePlatform, type Platform } from './protocol/index.ts'

/** How {@link environmentAccount} is made. */
export interface EnvironmentAccountOptions {
  readonly variable: string
  /** The exact origins that may see the token: `https://api.example.com`. */
  readonly origins: readonly string[]
  /** Default: the variables of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * A host that is signed in by a token in a variable. It is read when it is asked for: another value is a new sign-in, noticed by the next request or `look`.
 *
 * ```ts no-run
 * import { createHost, environmentAccount } from '@convoke/host'
 *
 * await using host = await createHost({
 *   definitions: [],
 *   account: environmentAccount({ variable: 'HUB_TOKEN', origins: ['https://hub.example'] }),
 * })
 * ```
 * @throws {HostError} `OPTIONS_INVALID`
 */
export function environmentAccount({
  variable,
  origins,
  env = nodePlatform.env,
}: EnvironmentAccountOptions): EnvironmentAccount {
  return accountInVariable({ variable, origins, env })
}

/** How {@link openSignInAccount} is made. Only `url` is required. */
export interface SignInAccountOptions {
  /** What a person signs in to: its metadata names the authorization server, and its tokens are for it. */
  readonly url: string
  /** The exact origins that may see the token. Default: that of `url` only. */
  readonly origins?: readonly string[]
  /** Where the sign-in is kept: with the same folders as a host, in the same places as those of its servers. Default: in memory. */
  readonly signIns?: SignInSettings & { readonly stateDirectory?: string }
  /** A client that is registered already. */
  readonly clientId?: string
  /** The variable that holds its secret, if it has one. It needs `issuer` too: a hub does not decide who sees the secret. */
  readonly clientSecretEnvVar?: string
  /** The only authorization server that may sign people in. Default: the one that `url` names. */
  readonly issuer?: string
  /** Asked for exactly. Default: what is wanted there, and `openid profile offline_access` where they are listed. */
  readonly scopes?: readonly string[]
  /** Default: the real one. */
  readonly platform?: Platform
  /** For messages and status. Default `account`. */
  readonly name?: string
}

/** No entry of a configuration can have a name with it, and it is not seen. */
const APART = '\u2028'

/**
 * The account of a person at a hub, signed in to by OAuth. It is opened before the host and disposed of after it.
 *
 * ```ts no-run
 * import { createHost, openSignInAccount } from '@convoke/host'
 *
 * const stateDirectory = '/var/lib/agent'
 * await using account = await openSignInAccount({ url: 'https://hub.example/mcp', signIns: { stateDirectory } })
 * await using host = await createHost({ definitions: [], stateDirectory, account })
 * if (account.current() === undefined)
 *   await account.signIn({ onCode: ({ url, userCode }) => console.log(`Open ${url} and enter ${userCode}`) })
 * ```
 * Opening touches neither the network nor a keyring.
 * @throws {HostError} `OPTIONS_INVALID`
 */
export function openSignInAccount(options: SignInAccountOptions): Promise<SignInAccount> {
  const { url, signIns: settings, scopes, platform = nodePlatform, name = 'account' } = options
  const origin = URL.canParse(url) ? new URL(url).origin : ''
  if (origin === '' || origin === 'null')
    return Promise.reject(new HostError('OPTIONS_INVALID', 'The account cannot be used: url is no address of a server'))
  const oauth = oauthOf(options)
  const definition = defineServer({
    name: `${name}${APART}`,
    transport: { kind: 'http', url, headers: {}, envHeaders: {} },
    ...(oauth === undefined ? {} : { oauth }),
    ...(scopes === undefined ? {} : { scopes }),
  })
  return SignInAccount.open({
    name,
    definition,
    origins: options.origins ?? [origin],
    now: () => platform.now(),
    signIns: (onChange) =>
      makeSignIns({
        settings,
        stateDirectory: settings?.stateDirectory,
        clientName: 'convoke',
        platform,
        hasAccount: () => false,
        onChange,
      }),
  })
}

function oauthOf({ clientId, clientSecretEnvVar, issuer }: SignInAccountOptions): OauthSettings | undefined {
  if (clientId === undefined && issuer === undefined) return undefined
  return {
    ...(clientId === undefined ? {} : { clientId }),
    ...(clientSecretEnvVar === undefined ? {} : { clientSecretEnvVar }),
    ...(issuer === undefined ? {} : { issuer }),
  }
}

/** Keeps the connections of a host at the account of now: a new sign-in makes them anew before anything waits for them. */
export class AccountFollower {
  readonly #source: AccountSource | undefined
  readonly #publish: () => Promise<unknown>
  #publishing: Promise<void> | undefined

  /** @param publish Makes the connections that the account of now needs. */
  constructor(source: AccountSource | undefined, publish: () => Promise<unknown>) {
    this.#source = source
    this.#publish = publish
  }

  /** Somebody else is signed in, or nobody: begins at once. */
  replaced(): void {
    const mine: Promise<void> = this.#publish().then(
      () => this.#settle(mine),
      () => this.#settle(mine), // closed meanwhile: nothing is left to connect
    )
    this.#publishing = mine
  }

  /**
   * Looks whether another program has changed the account; resolves when the connections are those of the account of now. Never rejects.
   * @returns undefined: nobody else speaks for the account.
   */
  settled(): Promise<void> | undefined {
    return this.#source === undefined ? undefined : this.#look(this.#source)
  }

  async #look(source: AccountSource): Promise<void> {
    try {
      await source.look?.()
    } catch {
      // Its own affair: whoever speaks with it is told by its token.
    }
    await this.#publishing
  }

  #settle(mine: Promise<void>): void {
    if (this.#publishing === mine) this.#publishing = undefined
  }
}
