// For the tests of accounts: a protected server, programs that share one sign-in, and a person who consents.
import {
  type AccountChange,
  type AccountSource,
  type Host,
  type HostEvent,
  openSignInAccount,
  type ServerDefinition,
  type SignInAccount,
  type SignInAccountOptions,
  type SignInOptions,
} from '@convoke/host'
import { type AuthorizationServer, type ProtectedServer, signInPerson, startProtectedServer } from '@convoke/testkit'
import { nodePlatform } from '../src/protocol/index.ts'
import { hostOf, http } from './support.ts'

/** Everything that a source tells from now on. */
export function toldBy(source: AccountSource): AccountChange[] {
  const told: AccountChange[] = []
  source.onChange((change) => told.push(change))
  return told
}

export const hostedAt = (url: string, more: Partial<ServerDefinition> = {}): ServerDefinition =>
  http('apps', url, { hosted: true, auth: 'account', ...more })

/** What the programs of a test share. */
export interface Ground {
  readonly authorization: AuthorizationServer
  /** Where sign-ins are kept. */
  readonly folder: string
}

/** A protected server, and the programs that use one account with it. */
export interface World extends AsyncDisposable {
  readonly server: ProtectedServer
  readonly events: HostEvent[]
  /** Moves the date of every account and host of this world. */
  advance(ms: number): void
  /** Moves the clock by which accounts look for what others have done. */
  pass(ms: number): void
  /** Each is a program of its own; all share the folder. */
  account(over?: Partial<SignInAccountOptions>): Promise<SignInAccount>
  host(account: AccountSource, definitions?: readonly ServerDefinition[]): Promise<Host>
}

export async function accountWorld({ authorization, folder }: Ground): Promise<World> {
  const server = await startProtectedServer({ issuer: authorization.issuer })
  const opened: AsyncDisposable[] = []
  const events: HostEvent[] = []
  let dateMs = 0
  let clockMs = 0
  const platform = { ...nodePlatform, dateMs: () => Date.now() + dateMs }
  return {
    server,
    events,
    advance(ms) {
      dateMs += ms
    },
    pass(ms) {
      clockMs += ms
    },
    async account(over = {}) {
      const account = await openSignInAccount({
        url: server.url,
        signIns: { store: 'file', stateDirectory: folder },
        platform: { ...platform, now: () => nodePlatform.now() + clockMs },
        ...over,
      })
      opened.unshift(account)
      return account
    },
    async host(account, definitions = [hostedAt(server.url)]) {
      const made = await hostOf(definitions, { account, platform, stateDirectory: folder, signIns: { store: 'file' } })
      made.host.subscribe((event) => events.push(event))
      opened.unshift(made.host)
      return made.host
    },
    async [Symbol.asyncDispose]() {
      for (const one of opened) await one[Symbol.asyncDispose]()
      await server.close()
    },
  }
}

export function willing(account: 'ada' | 'grace' = 'ada'): Pick<SignInOptions, 'openPage'> {
  const person = signInPerson({ account })
  return {
    async openPage(url) {
      await person.signIn(url)
    },
  }
}

export async function call(host: Host, server = 'apps'): Promise<string> {
  const outcome = await host.callTool({ server, tool: 'whoami', wait: 'ready' })
  if ('error' in outcome) return outcome.error.code
  const [content] = (outcome.result['content'] ?? []) as { text?: string }[]
  return content?.text ?? outcome.kind
}

/** Who a hosted server thinks it speaks with, and by which token. */
export async function speaker(host: Host, server?: string): Promise<{ account: string; token: string }> {
  const said = await call(host, server)
  return said.startsWith('{') ? (JSON.parse(said) as { account: string; token: string }) : { account: said, token: '' }
}

export async function tokenOf(account: SignInAccount): Promise<string> {
  const now = account.current()
  const token = now === undefined ? undefined : await account.token(now)
  if (token === undefined) throw new Error('nobody is signed in')
  return token
}

/** Refreshes that the authorization server was asked for meanwhile. */
export async function refreshesDuring(
  authorization: AuthorizationServer,
  work: () => Promise<unknown>,
): Promise<readonly (string | undefined)[]> {
  const before = (await authorization.stats()).tokenRequests.length
  await work()
  const { tokenRequests } = await authorization.stats()
  return tokenRequests
    .slice(before)
    .filter(({ grantType }) => grantType === 'refresh_token')
    .map(({ error, outcome }) => error ?? outcome)
}
