// Whose token goes where: the rule, and the account of a host at real servers.
import { nodePlatform, type ServerDefinition } from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { type Account, AccountAuth, type AccountChange, type AccountSource } from '../src/auth/index.ts'
import { selectAuth } from '../src/auth/select.ts'
import { eventOf, hostOf, http, scripted, statusOf } from './support.ts'

const account = { origins: ['https://hosted.example'], isSignedIn: true }
const hosted = (
  more: Partial<ServerDefinition> = {},
  transport: object = {},
  url = 'https://hosted.example/mcp',
): ServerDefinition => http('s', url, { auth: 'account', hosted: true, ...more }, transport)
const remote = (transport: object): ServerDefinition => hosted({ environment: 'box', hosted: false }, transport)

verifies('conn.140', () => {
  const bearer = { Authorization: 'Bearer x' }
  const table: [string, ServerDefinition, string, typeof account | undefined][] = [
    ['a hosted server of a declared origin', hosted(), 'account', account],
    ['the same, no account', hosted(), 'none not-signed-in', undefined],
    ['the same, nobody signed in', hosted(), 'none not-signed-in', { ...account, isSignedIn: false }],
    ['another origin', hosted({}, {}, 'https://other.example/mcp'), 'none origin-not-declared', account],
    ['another port', hosted({}, {}, 'https://hosted.example:8443/mcp'), 'none origin-not-declared', account],
    ['another scheme', hosted({}, {}, 'http://hosted.example/mcp'), 'none origin-not-declared', account],
    ['a longer host', hosted({}, {}, 'https://hosted.example.evil.example/'), 'none origin-not-declared', account],
    [
      'the origin in a path',
      hosted({}, {}, 'https://evil.example/https://hosted.example'),
      'none origin-not-declared',
      account,
    ],
    ['no address', hosted({}, {}, 'x'), 'none origin-not-declared', { ...account, origins: ['null'] }],
    ['a server that is not hosted', hosted({ hosted: false }), 'none not-hosted', account],
    ['a name that sounds hosted', { ...hosted({ hosted: false }), name: 'apps' }, 'none not-hosted', account],
    ['a sign-in of its own', hosted({ auth: 'oauth' }), 'sign-in', account],
    ['nothing wanted', hosted({ auth: 'none' }), 'none not-wanted', account],
    ['a process', scripted('s', {}, { auth: 'account', hosted: true }), 'none not-wanted', account],
    ['a token of its own', hosted({}, { bearerTokenEnvVar: 'T' }), 'configured', account],
    ['a header of its own', hosted({}, { headers: bearer }), 'configured', account],
    ['a sign-in elsewhere', hosted({ auth: 'oauth', environment: 'box' }), 'sign-in', account],
    // Elsewhere: only one static authorization, and never a look at a stored sign-in.
    ['elsewhere, nothing', remote({}), 'refused account-outside-local', account],
    ['elsewhere and hosted', hosted({ environment: 'box' }), 'refused account-outside-local', account],
    ['elsewhere, a header', remote({ headers: bearer }), 'configured', account],
    [
      'elsewhere, a header in small letters',
      remote({ headers: { authorization: 'Basic x' } }),
      'configured',
      undefined,
    ],
    [
      'elsewhere, a blank header',
      remote({ headers: { Authorization: ' \t' } }),
      'refused account-outside-local',
      account,
    ],
    [
      'elsewhere, a header with a line feed',
      remote({ headers: { Authorization: 'a\nb' } }),
      'refused account-outside-local',
      account,
    ],
    [
      'elsewhere, a header with DEL',
      remote({ headers: { Authorization: 'a\u007f' } }),
      'refused account-outside-local',
      account,
    ],
    ['elsewhere, another header', remote({ headers: { 'X-Key': 'x' } }), 'refused account-outside-local', account],
    ['elsewhere, a variable', remote({ bearerTokenEnvVar: 'T' }), 'refused account-outside-local', account],
    [
      'elsewhere, a header and a variable',
      remote({ headers: bearer, bearerTokenEnvVar: 'T' }),
      'refused account-outside-local',
      account,
    ],
    [
      'elsewhere, a header and one from a variable',
      remote({ headers: bearer, envHeaders: { 'X-A': 'V' } }),
      'refused account-outside-local',
      account,
    ],
  ]
  for (const [what, definition, expected, who] of table) {
    const selection = selectAuth(definition, who)
    expect([what, 'because' in selection ? `${selection.kind} ${selection.because}` : selection.kind]).toEqual([
      what,
      expected,
    ])
  }
})

/** An account whose changes a test makes. */
class TestSource implements AccountSource {
  readonly origins: string[]
  account: Account | undefined = { id: 'ada@example', grant: 'g1' }
  currentToken = 'token-1'
  refreshes = 0
  tokenReads = 0
  onRefresh: () => Promise<boolean> = async () => false
  readonly #listeners = new Set<(change: AccountChange) => void>()

  constructor(...origins: string[]) {
    this.origins = origins
  }
  current(): Account | undefined {
    return this.account
  }
  token(account: Account): string | undefined {
    this.tokenReads += 1
    return account === this.account ? this.currentToken : undefined
  }
  refresh(): Promise<boolean> {
    this.refreshes += 1
    return this.onRefresh()
  }
  onChange(listener: (change: AccountChange) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
  get listenerCount(): number {
    return this.#listeners.size
  }
  tell(change: AccountChange): void {
    for (const listener of this.#listeners) listener(change)
  }
}

test('a new sign-in is a new key, even of the same account; a refreshed token is not', () => {
  const source = new TestSource('https://hosted.example')
  const auth = new AccountAuth(source)
  const first = auth.scopeKey
  source.tell('refreshed')
  expect(auth.scopeKey).toBe(first)
  let told = 0
  auth.onReplaced(() => {
    throw new Error('a listener of somebody')
  })
  const stop = auth.onReplaced(() => (told += 1))
  source.tell('replaced')
  expect(auth.scopeKey).not.toBe(first)
  // For caches beyond this process the same account and grant stay the same.
  expect(auth.scopeKey?.id).toBe(first?.id)
  source.account = { id: 'ada@example', grant: 'g2' }
  source.tell('replaced')
  expect(auth.scopeKey?.id).not.toBe(first?.id)
  stop()
  source.account = undefined
  source.tell('replaced')
  expect([told, auth.scopeKey, auth.keyFor(hosted())]).toEqual([2, undefined, undefined])
  expect(JSON.stringify(first)).not.toMatch(/ada|g1|token/)
  auth.close()
  expect(source.listenerCount).toBe(0)
})

test('only servers that may see the token get the key and the credentials', () => {
  const source = new TestSource('https://hosted.example')
  const auth = new AccountAuth(source)
  expect(auth.keyFor(hosted())).toBe(auth.scopeKey)
  for (const definition of [hosted({ hosted: false }), hosted({}, {}, 'https://evil.example/'), remote({})])
    expect([auth.keyFor(definition), auth.authorizationFor(definition)]).toEqual([undefined, undefined])
  // The list of origins is the one that the host was made with.
  source.origins.push('https://evil.example')
  expect(auth.authorizationFor(hosted({}, {}, 'https://evil.example/'))).toBeUndefined()
  expect(new AccountAuth(undefined).authorizationFor(hosted())).toBeUndefined()
  expect(new AccountAuth(undefined).select(hosted())).toEqual({ kind: 'none', because: 'not-signed-in' })
})

test('a connection never speaks as somebody else than it began as', async () => {
  const source = new TestSource('https://hosted.example')
  const auth = new AccountAuth(source)
  const credentials = auth.authorizationFor(hosted())
  expect(await credentials?.header()).toBe('Bearer token-1')
  source.currentToken = 'token-2'
  source.tell('refreshed')
  expect(await credentials?.header()).toBe('Bearer token-2')
  source.account = { id: 'mallory@example', grant: 'g9' }
  source.currentToken = 'CANARY'
  source.tell('replaced')
  const reads = source.tokenReads
  await expect(credentials?.header()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  expect(source.tokenReads).toBe(reads) // not even asked for
  expect(await credentials?.challenge({ status: 401 })).toBe(false)
  expect(source.refreshes).toBe(0)
  expect(await auth.authorizationFor(hosted())?.header()).toBe('Bearer CANARY')
})

test('an account that is replaced while its token is read gives no token', async () => {
  const source = new TestSource('https://hosted.example')
  let give: ((token: string) => void) | undefined
  source.token = (() => new Promise<string>((resolve) => (give = resolve))) as never
  const auth = new AccountAuth(source)
  const header = auth.authorizationFor(hosted())?.header()
  source.tell('replaced')
  give?.('token-1')
  await expect(header).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
})

test('refusals that come together ask for one newer token, and only for the want of one', async () => {
  const source = new TestSource('https://hosted.example')
  let finish: ((isNew: boolean) => void) | undefined
  source.onRefresh = () => new Promise((resolve) => (finish = resolve))
  const auth = new AccountAuth(source)
  const [one, other] = [auth.authorizationFor(hosted()), auth.authorizationFor(hosted())]
  const refused = [one?.challenge({ status: 401 }), other?.challenge({ status: 401 })]
  expect(source.refreshes).toBe(1)
  finish?.(true)
  expect(await Promise.all(refused)).toEqual([true, true])
  expect(await one?.challenge({ status: 403 })).toBe(false)
  expect(source.refreshes).toBe(1)
  const again = one?.challenge({ status: 401 })
  expect(source.refreshes).toBe(2)
  finish?.(false)
  expect(await again).toBe(false)
})

test('the account speaks to a hosted server, a refused token is refreshed once, and a new sign-in connects anew', async () => {
  await using server = await startScriptedHttp({ token: 'token-2' })
  const source = new TestSource(new URL(server.url).origin)
  source.onRefresh = async () => {
    source.currentToken = 'token-2'
    source.tell('refreshed')
    return true
  }
  const definitions = [
    http('hosted', server.url, { hosted: true, auth: 'account' }),
    http('plain', server.url, { auth: 'account' }),
    http('stored', server.url, { hosted: true, auth: 'account', enabled: false }),
  ]
  const asked: string[] = []
  const { host, events } = await hostOf(definitions, {
    account: source,
    authorization: ({ name }) => {
      asked.push(name)
      return undefined
    },
  })
  {
    await using _ = host
    await host.whenSettled()
    expect(statusOf(host, 'hosted').state).toBe('ready')
    expect(statusOf(host, 'plain').state).toBe('needs-auth')
    expect(source.refreshes).toBe(1)
    const before = events.length
    source.account = { id: 'ada@example', grant: 'g2' }
    source.tell('replaced')
    await eventOf(host, 'server.state-changed', ({ status }) => status.name === 'hosted' && status.state === 'ready')
    const told = events.slice(before).flatMap((event) => (event.kind === 'server.state-changed' ? [event.status] : []))
    expect(told.filter(({ name }) => name === 'hosted').map(({ state }) => state)).toEqual(['starting', 'ready'])
    // No sign-in is looked at where the account was wanted, whether or not it may speak.
    expect(asked).toEqual([])
    expect(JSON.stringify([events, host.statuses])).not.toMatch(/token-[12]|ada@example/)
  }
  expect(source.listenerCount).toBe(0)
})

verifies('conn.038', async () => {
  await using server = await startScriptedHttp()
  const at = (auth: 'oauth' | 'account', transport: object = {}): ServerDefinition =>
    http('s', server.url, { environment: 'box', auth }, transport)
  const { host } = await hostOf([at('oauth')], {
    account: new TestSource(new URL(server.url).origin),
    environments: { local: { platform: nodePlatform }, box: { platform: nodePlatform } },
  })
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 's').state).toBe('ready')
  const [planned] = await host.configure([at('account')])
  expect(planned).toMatchObject({ server: 's' })
  await host.whenSettled()
  const { state, reason } = statusOf(host, 's')
  expect([state, reason?.code]).toEqual(['needs-auth', 'AUTH_REQUIRED'])
  await using binding = await host.bind()
  expect(binding.tools).toEqual([])
  await host.configure([at('account', { headers: { Authorization: 'Bearer static' } })])
  await host.whenSettled()
  expect(statusOf(host, 's').state).toBe('ready')
})
