// The account of a host, from every source there is, at a real authorization server and real protected MCP servers.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AccountChange,
  type AccountSource,
  callbackAccount,
  environmentAccount,
  type Host,
  type HostEvent,
  openSignInAccount,
  type ServerDefinition,
  type SignInAccount,
  type SignInAccountOptions,
  type SignInOptions,
  tokenAccount,
} from '@convoke/host'
import {
  type AuthorizationServer,
  Canaries,
  digestOf,
  type ProtectedServer,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  startScriptedHttp,
  verifies,
} from '@convoke/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { AccountAuth } from '../src/auth/index.ts'
import { type DeviceCode, signInWithCode } from '../src/auth/oauth/device.ts'
import { readDeviceAnswer } from '../src/auth/oauth/device-answer.ts'
import { decidePoll, type PollReply } from '../src/auth/oauth/device-poll.ts'
import type { OAuthPort } from '../src/auth/oauth/port.ts'
import { planScopes } from '../src/auth/oauth/scopes.ts'
import { SignInError } from '../src/auth/oauth/sign-in-error.ts'
import { nodePlatform } from '../src/protocol/index.ts'
import { failureOf, portError, realPort, type Scripted, TIMEOUT_MS, tablePort } from './oauth-support.ts'
import { startRawHttp } from './raw-http.ts'
import { eventOf, hostOf, http, statusOf } from './support.ts'

const HOUR_MS = 3_600_000
const ORIGINS = ['https://hub.example']
let authorization: AuthorizationServer
let folder: string

beforeAll(async () => {
  authorization = await startAuthorizationServer({ knobs: { accessTokenSeconds: 3_600 } })
}, TIMEOUT_MS)
afterAll(() => authorization.close())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'convoke-accounts-'))
  return () => rm(folder, { recursive: true, force: true })
})

/** Everything that a source tells from now on. */
function toldBy(source: AccountSource): AccountChange[] {
  const told: AccountChange[] = []
  source.onChange((change) => told.push(change))
  return told
}

const hostedAt = (url: string, more: Partial<ServerDefinition> = {}): ServerDefinition =>
  http('apps', url, { hosted: true, auth: 'account', ...more })

verifies('auth.170', async () => {
  const secret = 'a-token-that-nobody-may-see'
  const account = tokenAccount({ token: secret, origins: ORIGINS })
  const told = toldBy(account)
  const first = account.current()
  expect(tokenAccount({ token: secret, origins: ORIGINS }).current()).toEqual(first)
  expect(JSON.stringify(first)).not.toContain('token')
  expect(first && account.token(first)).toBe(secret)
  const auth = new AccountAuth(account)
  const key = auth.scopeKey
  account.replace(secret)
  const second = account.current()
  expect([second?.id, second?.grant === first?.grant, auth.scopeKey === key]).toEqual([first?.id, false, false])
  expect(first && account.token(first)).toBeUndefined()
  account.replace('another-token')
  expect(account.current()?.id).not.toBe(first?.id)
  expect(second && (await account.refresh(second))).toBe(false)
  expect(told).toEqual(['replaced', 'replaced'])
  expect(() => account.replace('a b')).toThrow(/visible characters/)
  expect(tokenAccount({ token: 'x', origins: ORIGINS, id: 'ada' }).current()?.id).toBe('ada')
  auth.close()
})

test('a replaced token connects the hosted server anew, and it sees the new one at once', async () => {
  await using server = await startScriptedHttp({ token: 'token-2' })
  const account = tokenAccount({ token: 'token-1', origins: [new URL(server.url).origin] })
  const { host, events } = await hostOf([hostedAt(server.url)], { account })
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'apps').state).toBe('needs-auth')
  const ready = eventOf(host, 'server.state-changed', ({ status }) => status.state === 'ready')
  account.replace('token-2')
  await ready
  expect(JSON.stringify([events, host.statuses])).not.toMatch(/token-[12]/)
})

verifies('auth.171', async () => {
  const env: Record<string, string | undefined> = {}
  const account = environmentAccount({ variable: 'HUB_TOKEN', origins: ORIGINS, env })
  const told = toldBy(account)
  expect(account.current()).toBeUndefined()
  env['HUB_TOKEN'] = ' one\n'
  const first = account.current()
  expect(first && account.token(first)).toBe('one')
  expect(account.current()).toBe(first)
  env['HUB_TOKEN'] = 'two'
  // The request that finds it says so once, and gives the old account nothing.
  expect(first && account.token(first)).toBeUndefined()
  expect(first && account.token(first)).toBeUndefined()
  expect(told).toEqual(['replaced', 'replaced'])
  env['HUB_TOKEN'] = 'one'
  account.look()
  expect(account.current()?.grant).not.toBe(first?.grant)
  env['HUB_TOKEN'] = 'not a token'
  const odd = account.current()
  expect(() => odd && account.token(odd)).toThrow(
    expect.objectContaining({ code: 'AUTH_REQUIRED', message: expect.not.stringContaining('not a token') }),
  )
  env['HUB_TOKEN'] = '  '
  expect(account.current()).toBeUndefined()
  expect(account.origins).toEqual(ORIGINS)
})

test('the next request finds that a variable has changed: it fails, and the connection is made anew', async () => {
  await using server = await startScriptedHttp({ token: 'two' })
  const env: Record<string, string | undefined> = { HUB_TOKEN: 'two' }
  const account = environmentAccount({ variable: 'HUB_TOKEN', origins: [new URL(server.url).origin], env })
  const { host } = await hostOf([hostedAt(server.url)], { account })
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'apps').state).toBe('ready')
  const needs = eventOf(host, 'server.state-changed', ({ status }) => status.state === 'needs-auth')
  env['HUB_TOKEN'] = 'one'
  const outcome = await host.callTool({ server: 'apps', tool: 'echo', args: { text: 'x' }, wait: 'ready' })
  expect(outcome).toMatchObject({ error: { code: 'AUTH_REQUIRED' } })
  await needs
})

verifies('auth.172', async () => {
  const failure = new Error('the vault is closed')
  let who: { id: string; grant: string } | undefined = { id: 'ada', grant: 'one' }
  let give: () => Promise<string | undefined> = async () => 'token-1'
  let renew: () => Promise<boolean> = async () => true
  let ask: () => { id: string; grant: string } | undefined = () => who
  const account = callbackAccount({
    origins: ORIGINS,
    signedIn: () => ask(),
    token: () => give(),
    refresh: () => renew(),
  })
  const told = toldBy(account)
  const auth = new AccountAuth(account)
  const header = (): Promise<unknown> | undefined =>
    auth
      .authorizationFor(hostedAt('https://hub.example/mcp'))
      ?.header()
      .catch((error: unknown) => error)
  expect(await header()).toBe('Bearer token-1')
  const required = { code: 'AUTH_REQUIRED', message: expect.not.stringMatching(/vault|token-1/) }
  for (const bad of [
    () => Promise.reject(failure),
    () => {
      throw failure
    },
  ]) {
    give = bad
    expect(await header()).toMatchObject({ ...required, cause: failure })
  }
  for (const unusable of ['token-1\r\nX: y', '', 7 as never, undefined]) {
    give = async () => unusable
    expect(await header()).toMatchObject(required)
  }
  // A token that comes when somebody else is signed in is nobody's.
  give = async () => {
    who = { id: 'mallory', grant: 'two' }
    return 'token-1'
  }
  expect(await header()).toMatchObject(required)
  expect(told).toEqual(['replaced'])
  give = async () => 'token-2'
  expect(await header()).toBe('Bearer token-2')

  const now = account.current()
  expect(now && (await account.refresh(now))).toBe(true)
  renew = () => Promise.reject(failure)
  await expect(now && account.refresh(now)).rejects.toMatchObject({ ...required, cause: failure })
  renew = async () => 'yes' as never
  expect(now && (await account.refresh(now))).toBe(false)
  expect(told).toEqual(['replaced', 'refreshed'])

  // Nobody can tell who it is: nothing is said to servers, and nothing without a name either.
  for (const odd of [{ id: '', grant: 'x' }, { id: 'a\nb', grant: 'x' }, { id: 'x'.repeat(257), grant: 'x' }, 'ada']) {
    ask = () => odd as never
    account.changed('replaced')
    expect(await header()).toMatchObject(required)
  }
  ask = () => {
    throw failure
  }
  account.changed('replaced')
  expect(await header()).toMatchObject({ ...required, cause: failure })
  ask = () => who
  await header()
  expect(await header()).toBe('Bearer token-2')
  // Signed in anew as the same, said by its owner alone.
  const key = auth.scopeKey
  account.changed('replaced')
  expect(auth.scopeKey).not.toBe(key)
  who = undefined
  account.changed('replaced')
  expect([account.current(), auth.scopeKey]).toEqual([undefined, undefined])
  // Whoever makes up a new grant each time is not asked for ever.
  let count = 0
  ask = () => ({ id: 'x', grant: `${count++}` })
  account.changed('replaced')
  account.current()
  expect(count).toBeLessThan(20)
  auth.close()
})

verifies('auth.173', async () => {
  const table: [string, readonly unknown[]][] = [
    ['none', []],
    ['a path', ['https://hub.example/mcp']],
    ['a slash', ['https://hub.example/']],
    ['capital letters', ['https://Hub.example']],
    ['the default port', ['https://hub.example:443']],
    ['a user', ['https://a@hub.example']],
    ['no encryption', ['http://hub.example']],
    ['another scheme', ['ftp://hub.example']],
    ['no origin', ['null']],
    ['no address', ['hub.example']],
    ['no text', [7]],
    ['one of two', ['https://hub.example', 'https://hub.example/']],
  ]
  for (const [what, origins] of table) {
    const make = (): unknown => tokenAccount({ token: 'x', origins: origins as string[] })
    expect(make, what).toThrow(expect.objectContaining({ code: 'OPTIONS_INVALID' }))
  }
  for (const origin of ['https://hub.example', 'https://hub.example:8443', 'http://127.0.0.1:9', 'http://localhost:80'])
    expect(() => tokenAccount({ token: 'x', origins: [origin] })).not.toThrow(
      origin === 'http://localhost:80' ? 'never' : undefined,
    )
  for (const token of ['', 'a b', 'a\n', 'ä', 'x'.repeat(33_000)])
    expect(() => tokenAccount({ token, origins: ORIGINS })).toThrow(
      expect.objectContaining({ code: 'OPTIONS_INVALID' }),
    )
  expect(() => tokenAccount({ token: 'x', origins: ORIGINS, id: 'a\u0000' })).toThrow(/id is a text/)
  await expect(openSignInAccount({ url: 'nowhere' })).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  await expect(openSignInAccount({ url: 'http://hub.example/mcp' })).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  // What may see the token does not widen later.
  const origins = [...ORIGINS]
  const account = tokenAccount({ token: 'x', origins })
  origins.push('https://evil.example')
  expect(account.origins).toEqual(ORIGINS)
})

interface World extends AsyncDisposable {
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

async function world(): Promise<World> {
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

function willing(account: 'ada' | 'grace' = 'ada'): Pick<SignInOptions, 'openPage'> {
  const person = signInPerson({ account })
  return {
    async openPage(url) {
      await person.signIn(url)
    },
  }
}

async function call(host: Host, server = 'apps'): Promise<string> {
  const outcome = await host.callTool({ server, tool: 'whoami', wait: 'ready' })
  if ('error' in outcome) return outcome.error.code
  const [content] = (outcome.result['content'] ?? []) as { text?: string }[]
  return content?.text ?? outcome.kind
}

/** Who a hosted server thinks it speaks with, and by which token. */
async function speaker(host: Host, server?: string): Promise<{ account: string; token: string }> {
  const said = await call(host, server)
  return said.startsWith('{') ? (JSON.parse(said) as { account: string; token: string }) : { account: said, token: '' }
}

async function tokenOf(account: SignInAccount): Promise<string> {
  const now = account.current()
  const token = now === undefined ? undefined : await account.token(now)
  if (token === undefined) throw new Error('nobody is signed in')
  return token
}

/** Refreshes that the authorization server was asked for meanwhile. */
async function refreshesDuring(work: () => Promise<unknown>): Promise<readonly (string | undefined)[]> {
  const before = (await authorization.stats()).tokenRequests.length
  await work()
  const { tokenRequests } = await authorization.stats()
  return tokenRequests
    .slice(before)
    .filter(({ grantType }) => grantType === 'refresh_token')
    .map(({ error, outcome }) => error ?? outcome)
}

verifies(
  'auth.174',
  async () => {
    await using here = await world()
    const account = await here.account()
    const host = await here.host(account)
    const told = toldBy(account)
    await host.whenSettled()
    expect([account.current(), statusOf(host, 'apps').state]).toEqual([undefined, 'needs-auth'])
    expect(await account.status()).toMatchObject({ server: 'account', state: 'unknown' })
    const signedIn = await account.signIn(willing())
    expect(signedIn).toMatchObject({
      server: 'account',
      issuer: authorization.issuer,
      subject: { id: 'ada' },
      store: { kind: 'file' },
    })
    expect(told).toEqual(['replaced'])
    expect((await speaker(host)).account).toBe('ada')
    expect(await account.status()).toMatchObject({
      server: 'account',
      state: 'signed-in',
      subject: { id: 'ada' },
      store: 'file',
      isRenewable: true,
      expiresAtMs: expect.any(Number),
    })
    // The next program is signed in from its first moment, and asks nobody.
    const before = await authorization.stats()
    const later = await here.account()
    expect(later.current()).toEqual(account.current())
    expect((await speaker(await here.host(later))).account).toBe('ada')
    expect((await authorization.stats()).tokenRequests.length).toBe(before.tokenRequests.length)
    expect((await readdir(join(folder, 'sign-ins/records'))).filter((name) => name.endsWith('.json')).length).toBe(1)
  },
  TIMEOUT_MS,
)

verifies(
  'auth.175',
  async () => {
    await using here = await world()
    await using other = await startProtectedServer({ issuer: authorization.issuer })
    await using target = await startRawHttp({})
    await using redirecting = await startRawHttp({
      initialize: () => ({ status: 307, headers: { location: target.url } }),
      'server/discover': () => ({ status: 307, headers: { location: target.url } }),
    })
    const origins = [here.server.url, redirecting.url].map((url) => new URL(url).origin)
    const account = await here.account({ origins })
    await account.signIn(willing())
    const canaries = new Canaries()
    canaries.add('token', await tokenOf(account))
    const host = await here.host(account, [
      hostedAt(here.server.url),
      http('elsewhere', other.url, { hosted: true, auth: 'account' }),
      http('stranger', here.server.url, { auth: 'account' }),
      http('own', here.server.url, { hosted: true, auth: 'oauth' }),
      http('redirects', redirecting.url, { hosted: true, auth: 'account' }),
    ])
    await host.whenSettled()
    const outcomes = await Promise.all(
      ['apps', 'elsewhere', 'stranger', 'own', 'redirects'].map((server) =>
        host.callTool({ server, tool: 'whoami', wait: 'ready' }),
      ),
    )
    expect(outcomes.map(({ kind }) => kind === 'ok')).toEqual([true, false, false, false, false])
    expect((await other.stats()).tokens).toEqual([])
    expect((await here.server.stats()).tokens.map(({ digest }) => digest)).toEqual([digestOf(await tokenOf(account))])
    // It was shown to whom the origin belongs, and did not go on from there.
    expect(redirecting.headers.some(({ authorization: sent }) => sent?.startsWith('Bearer '))).toBe(true)
    expect(target.headers).toEqual([])
    await here.server.set({ answerAll: 401 })
    outcomes.push(await host.callTool({ server: 'apps', tool: 'whoami', wait: 'ready' }))
    canaries.add('newer token', await tokenOf(account))
    canaries.watch('events', { kind: 'value', value: here.events })
    const shown = outcomes.map((outcome) => ('error' in outcome ? outcome.error : outcome.kind))
    canaries.watch('outcomes', { kind: 'value', value: shown })
    canaries.watch('statuses', {
      kind: 'value',
      value: [
        host.statuses,
        await host.signInStatuses(),
        host.explain('apps'),
        await account.status(),
        account.current(),
      ],
    })
    canaries.watch('files', { kind: 'path', path: folder })
    canaries.assertNowhere()
  },
  TIMEOUT_MS,
)

verifies(
  'auth.176',
  async () => {
    await using here = await world()
    const account = await here.account()
    await account.signIn(willing())
    const host = await here.host(account)
    await host.whenSettled()
    const before = await speaker(host)
    const auth = new AccountAuth(account)
    const old = auth.authorizationFor(hostedAt(here.server.url))
    const from = here.events.length
    await account.signIn(willing())
    // Whoever comes now speaks as the new sign-in: its connections were made before anything waited for them.
    const after = await speaker(host)
    expect([before.account, after.account, before.token === after.token]).toEqual(['ada', 'ada', false])
    const told = here.events.slice(from).flatMap((event) => (event.kind === 'set.published' ? [event.servers] : []))
    expect(told).toMatchObject([[{ server: 'apps', action: 'start' }]])
    await expect(old?.header()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
    await account.signIn(willing('grace'))
    expect((await speaker(host)).account).toBe('grace')
    await account.signOut()
    expect((await speaker(host)).account).toBe('AUTH_REQUIRED')
    auth.close()
  },
  TIMEOUT_MS,
)

verifies(
  'auth.177',
  async () => {
    await using here = await world()
    const account = await here.account()
    await account.signIn(willing())
    const other = await here.account()
    const hosts = [await here.host(account), await here.host(other)]
    const before = await Promise.all(hosts.map((host) => speaker(host)))
    const { sessions } = await here.server.stats()
    const told = toldBy(account)
    const events = here.events.length
    here.advance(HOUR_MS)
    await authorization.set({ beforeTokenMs: 200 })
    const asked = await refreshesDuring(async () => {
      const after = await Promise.all(hosts.flatMap((host) => [speaker(host), speaker(host), speaker(host)]))
      expect(new Set(after.map((one) => one.account))).toEqual(new Set(['ada']))
      expect(new Set(after.map((one) => one.token)).size).toBe(1)
      expect(after[0]?.token).not.toBe(before[0]?.token)
    })
    await authorization.set({ beforeTokenMs: undefined })
    expect(asked).toEqual(['issued'])
    expect(told).toEqual(['refreshed'])
    expect((await here.server.stats()).sessions).toBe(sessions)
    expect(here.events.slice(events).filter(({ kind }) => kind === 'set.published')).toEqual([])
    expect(await account.status()).toMatchObject({ state: 'signed-in', refreshedAtMs: expect.any(Number) })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.178',
  async () => {
    await using here = await world()
    const account = await here.account()
    await account.signIn(willing())
    const host = await here.host(account)
    await host.whenSettled()
    expect(statusOf(host, 'apps').state).toBe('ready')
    const gone = eventOf(host, 'server.state-changed', ({ status }) => status.state === 'needs-auth')
    await authorization.set({ hold: 'everything' })
    const signedOut = account.signOut()
    // The authorization server does not answer yet.
    await gone
    expect(account.current()).toBeUndefined()
    await authorization.set({ hold: undefined })
    expect(await signedOut).toEqual({ server: 'account', wasSignedIn: true, revocation: 'done' })
    expect(await call(host)).toBe('AUTH_REQUIRED')
    expect(await account.signOut()).toMatchObject({ wasSignedIn: false })
    expect(await account.status()).toMatchObject({ state: 'unknown' })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.179',
  async () => {
    await using here = await world()
    const account = await here.account()
    const told = toldBy(account)
    const other = await here.account()
    await other.signIn(willing())
    await account.look()
    expect(account.current()).toBeUndefined()
    here.pass(1_000)
    await Promise.all([account.look(), account.look(), account.look()])
    expect([account.current(), told]).toEqual([other.current(), ['replaced']])
    const first = account.current()
    expect(await tokenOf(account)).toBe(await tokenOf(other))
    await other.signIn(willing('grace'))
    here.pass(1_000)
    // The request that finds it gets nothing, and whoever asks for the new account gets its token.
    expect(first && (await account.token(first))).toBeUndefined()
    expect(await tokenOf(account)).toBe(await tokenOf(other))
    await other.signOut()
    here.pass(1_000)
    const second = account.current()
    expect(second && (await account.token(second))).toBeUndefined()
    expect([account.current(), told.length]).toEqual([undefined, 3])
    // Hosted servers follow it by themselves, also when nobody was signed in.
    const host = await here.host(account)
    expect(await call(host)).toBe('AUTH_REQUIRED')
    await other.signIn(willing())
    here.pass(1_000)
    expect((await speaker(host)).account).toBe('ada')
    await other.signOut()
    here.pass(1_000)
    expect(await call(host)).toBe('AUTH_REQUIRED')
  },
  TIMEOUT_MS,
)

test('a sign-in that takes the place of another between two looks is not spoken with under the old name', async () => {
  await using here = await world()
  const other = await here.account()
  await other.signIn(willing())
  const account = await here.account()
  const told = toldBy(account)
  const first = account.current()
  // The first token is had right after the opening: no look is due.
  await other.signIn(willing('grace'))
  expect(first && (await account.token(first))).toBeUndefined()
  expect(told).toEqual(['replaced'])
  expect(await tokenOf(account)).toBe(await tokenOf(other))
})

test('a look that began before a sign-out does not bring the account back', async () => {
  await using here = await world()
  let hold: Promise<void> | undefined
  let release = (): void => {}
  let held = 0
  const { files } = nodePlatform
  let clockMs = 0
  const account = await here.account({
    platform: {
      ...nodePlatform,
      now: () => nodePlatform.now() + clockMs,
      files: {
        ...files,
        async read(path, bytesMax) {
          const content = await files.read(path, bytesMax)
          const mine = hold
          if (!path.includes('/index/') || mine === undefined) return content
          hold = undefined
          held += 1
          await mine
          return content
        },
      },
    },
  })
  await account.signIn(willing())
  const told: unknown[] = []
  account.onChange(() => told.push(account.current()))
  hold = new Promise((resolve) => {
    release = resolve
  })
  clockMs += 1_000
  const look = account.look()
  await expect.poll(() => held).toBe(1)
  const signedOut = account.signOut()
  await expect.poll(() => account.current()).toBeUndefined()
  release()
  await Promise.all([look, signedOut])
  expect(told).toEqual([undefined])
})

verifies(
  'auth.180',
  async () => {
    await using here = await world()
    const account = await here.account()
    await account.signIn(willing('grace'))
    const host = await here.host(account)
    expect((await speaker(host)).account).toBe('grace')
    const name = (await readdir(join(folder, 'sign-ins/index'))).find((one) => one.endsWith('.json')) ?? ''
    const path = join(folder, 'sign-ins/index', name)
    const index = await readFile(path, 'utf8')
    await writeFile(path, '{')
    here.pass(1_000)
    // Who is signed in stays; a program that starts now waits for it, and does not speak without a name.
    expect((await speaker(host)).account).toBe('grace')
    const late = await here.account()
    const waiting = late.current()
    await expect(waiting && late.token(waiting)).rejects.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE' })
    await writeFile(path, index)
    here.pass(1_000)
    expect(waiting && (await late.token(waiting))).toBeUndefined()
    expect(await tokenOf(late)).toBe(await tokenOf(account))

    await authorization.revokeGrant('grace')
    here.advance(HOUR_MS)
    const posts = (await here.server.stats()).http['POST']
    const asked = await refreshesDuring(async () => {
      for (const one of [host, await here.host(await here.account()), host])
        expect(await call(one)).toBe('AUTH_REQUIRED')
    })
    expect(asked).toEqual(['invalid_grant'])
    expect((await here.server.stats()).http['POST']).toBe(posts)
    const now = account.current()
    await expect(now && account.token(now)).rejects.toMatchObject({
      code: 'AUTH_REQUIRED',
      message: expect.stringMatching(/"account".*Sign in to the account/),
      details: { account: 'account', because: 'refresh-rejected' },
    })
    expect(await account.status()).toMatchObject({ state: 'ended', because: expect.stringContaining('has ended it') })
    await account.signIn(willing('grace'))
    expect((await speaker(host)).account).toBe('grace')
  },
  TIMEOUT_MS,
)

verifies(
  'auth.181',
  async () => {
    await using here = await world()
    const account = await here.account()
    await account.signIn(willing())
    const host = await here.host(account)
    const { token } = await speaker(host)
    await here.server.set({ refuseTokens: [token] })
    const once = await refreshesDuring(async () => {
      const said = await Promise.all([speaker(host), speaker(host), speaker(host)])
      expect(new Set(said.map((one) => one.account))).toEqual(new Set(['ada']))
    })
    expect(once).toEqual(['issued'])
    here.pass(60_000)
    await here.server.set({ answerAll: 401 })
    expect(await refreshesDuring(async () => expect(await call(host)).toMatch(/^AUTH_/))).toEqual(['issued'])
    expect(await refreshesDuring(() => call(host))).toEqual([])
  },
  TIMEOUT_MS,
)

verifies(
  'auth.182',
  async () => {
    await using here = await world()
    const account = await here.account()
    await account.signIn(willing())
    const host = await here.host(account, [http('account', here.server.url, { hosted: true })])
    await host.whenSettled()
    expect(await host.signInStatuses()).toMatchObject([{ server: 'account', state: 'unknown' }])
    expect(await call(host, 'account')).toBe('AUTH_REQUIRED')
    expect(await host.signOut('account')).toMatchObject({ wasSignedIn: false })
    await host.signIn('account', willing('grace'))
    expect(await account.status()).toMatchObject({ subject: { id: 'ada' } })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.183',
  async () => {
    await using here = await world()
    const account = await here.account()
    const host = await here.host(account)
    const person = signInPerson({ account: 'grace' })
    let approved: Promise<void> | undefined
    const codes: DeviceCode[] = []
    const signedIn = await account.signIn({
      onCode(code) {
        codes.push(code)
        approved = person.approveDevice(authorization.issuer, code.userCode)
      },
    })
    await approved
    expect(codes).toEqual([
      {
        userCode: expect.stringMatching(/^[A-Z-]{4,}$/),
        url: `${authorization.issuer}/device`,
        urlComplete: expect.stringContaining('user_code='),
        expiresAtMs: expect.any(Number),
      },
    ])
    expect(signedIn).toMatchObject({ subject: { id: 'grace' }, scopes: expect.arrayContaining(['mcp']) })
    expect((await speaker(host)).account).toBe('grace')
    // It is renewed like any other.
    here.advance(HOUR_MS)
    expect(await refreshesDuring(() => speaker(host))).toEqual(['issued'])
    expect((await speaker(host)).account).toBe('grace')
    expect(await account.signOut()).toMatchObject({ revocation: 'done' })
  },
  TIMEOUT_MS,
)

const SERVER = 'https://hub.example/mcp'
const ISSUER = 'https://login.example'
const DEVICE = `${ISSUER}/device-code`
const TOKEN = `${ISSUER}/token`
const METADATA = {
  issuer: ISSUER,
  token_endpoint: TOKEN,
  device_authorization_endpoint: DEVICE,
  scopes_supported: ['openid', 'offline_access', 'other'],
}
const CODE = {
  device_code: 'device-secret',
  user_code: 'WDJB-MJHT',
  verification_uri: `${ISSUER}/device`,
  expires_in: 600,
}
const pending = { error: 'authorization_pending' }
const TOKENS = { access_token: 'the-token', token_type: 'Bearer', expires_in: 60, refresh_token: 'the-refresh' }

/** A port whose pauses take no time and are noted. The limits of one question and of the code stay as they are. */
function quick(port: OAuthPort): OAuthPort & { readonly pauses: readonly number[] } {
  const pauses: number[] = []
  return {
    ...port,
    pauses,
    setTimer(callback, ms) {
      if (ms === 30_000 || ms === 600_000) return port.setTimer(callback, ms)
      pauses.push(ms)
      return port.setTimer(callback, 0)
    },
  }
}

interface DeviceWorld {
  readonly port: ReturnType<typeof quick>
  readonly asked: ReturnType<typeof tablePort>['asked']
  signIn(over?: object): ReturnType<typeof signInWithCode>
}

/** An authorization server of answers: the first to the request for a code, the others to the questions for tokens, the last of them for ever. */
function deviceWorld(
  replies: readonly (Scripted | { readonly status: number; readonly body: object })[],
  { code = CODE, metadata = {} }: { readonly code?: Scripted; readonly metadata?: object } = {},
): DeviceWorld {
  let at = 0
  const inner = tablePort({
    [`https://hub.example/.well-known/oauth-protected-resource/mcp`]: {
      resource: SERVER,
      authorization_servers: [ISSUER],
    },
    [`${ISSUER}/.well-known/oauth-authorization-server`]: { ...METADATA, ...metadata },
    [DEVICE]: code,
    [TOKEN]: 500,
  })
  const port = quick({
    ...inner,
    async fetch(url, request) {
      const answer = await inner.fetch(url, request)
      if (url !== TOKEN) return answer
      const reply = replies[Math.min(at++, replies.length - 1)]
      if (reply instanceof Error) throw reply
      if (typeof reply === 'number') return { ...answer, status: reply, body: Buffer.from('') }
      const isError = typeof reply === 'object' && 'error' in reply
      return { ...answer, status: isError ? 400 : 200, body: Buffer.from(JSON.stringify(reply)) }
    },
  })
  return {
    port,
    asked: inner.asked,
    signIn: (over = {}) =>
      signInWithCode({
        server: { name: 'hub', url: SERVER, oauth: { clientId: 'the-client' } },
        port,
        onCode: () => {},
        ...over,
      }),
  }
}

verifies('auth.184', async () => {
  const slow = { error: 'slow_down' }
  const replies = [pending, slow, pending, slow, portError('unreachable'), 503, portError('timed-out', true), TOKENS]
  const here = deviceWorld(replies, { code: { ...CODE, interval: 7 } })
  const grant = await here.signIn({ scopesIfListed: ['openid', 'profile'] })
  expect(here.port.pauses).toEqual([7_000, 7_000, 12_000, 12_000, 17_000, 34_000, 60_000, 60_000])
  expect(grant).toMatchObject({ client: { id: 'the-client' }, tokens: { accessToken: 'the-token' } })
  expect(grant.requestedScopes).toEqual(['openid', 'offline_access'])
  const first = new URLSearchParams(here.asked.find(({ url }) => url === DEVICE)?.body)
  expect(Object.fromEntries(first)).toEqual({
    client_id: 'the-client',
    scope: 'openid offline_access',
    resource: SERVER,
  })
  const last = new URLSearchParams(here.asked.at(-1)?.body)
  expect(Object.fromEntries(last)).toEqual({
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    client_id: 'the-client',
    device_code: 'device-secret',
    resource: SERVER,
  })

  const failed = (kind: SignInError['kind']): PollReply => ({ kind: 'failed', error: new SignInError(kind, 'no') })
  const answered = (status: number, body: object | string): PollReply => ({
    kind: 'answered',
    status,
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  })
  const table: [string, PollReply, number, string | number][] = [
    ['nobody has entered it', answered(400, pending), 7_000, 7_000],
    ['too fast', answered(400, slow), 7_000, 12_000],
    ['nobody at home', failed('unreachable'), 7_000, 14_000],
    ['nobody at home for long', failed('timed-out'), 40_000, 60_000],
    ['an interval of more than the longest pause', failed('timed-out'), 90_000, 90_000],
    ['a broken server', answered(502, '<html>'), 7_000, 14_000],
    ['a busy server', answered(429, ''), 7_000, 14_000],
    ['a busy server in words', answered(400, { error: 'temporarily_unavailable' }), 7_000, 14_000],
    ['no', answered(400, { error: 'access_denied' }), 7_000, 'provider-refused'],
    ['no longer', answered(400, { error: 'expired_token' }), 7_000, 'timed-out'],
    ['a code that is used up', answered(400, { error: 'invalid_grant' }), 7_000, 'provider-refused'],
    ['a page', answered(404, '<html>'), 7_000, 'provider-refused'],
    ['an address that may not be asked', failed('endpoint-refused'), 7_000, 'endpoint-refused'],
    ['an end', failed('cancelled'), 7_000, 'cancelled'],
    ['tokens', answered(200, TOKENS), 7_000, 'tokens'],
    ['an error with a good status', answered(200, pending), 7_000, 7_000],
  ]
  for (const [what, reply, intervalMs, expected] of table) {
    const step = decidePoll(reply, { intervalMs, endpoint: TOKEN, secrets: [] })
    const got = step.kind === 'wait' ? step.intervalMs : step.kind === 'refused' ? step.error.kind : step.kind
    expect([what, got]).toEqual([what, expected])
  }
})

verifies(
  'auth.185',
  async () => {
    const kind = async (world: DeviceWorld, over: object = {}): Promise<[string, string | undefined]> => {
      const { kind: what, details } = await failureOf(world.signIn(over))
      return [what, details.error]
    }
    expect(await kind(deviceWorld([pending, { error: 'access_denied' }]))).toEqual([
      'provider-refused',
      'access_denied',
    ])
    expect(await kind(deviceWorld([{ error: 'expired_token' }]))).toEqual(['timed-out', 'expired_token'])
    expect(await kind(deviceWorld([{ ...TOKENS, token_type: 'mac' }]))).toEqual(['answer-invalid', undefined])
    expect(await kind(deviceWorld([pending], { code: { ...CODE, expires_in: 1 } }))).toEqual(['timed-out', undefined])
    expect(await kind(deviceWorld([pending], { metadata: { device_authorization_endpoint: null } }))).toEqual([
      'metadata-invalid',
      undefined,
    ])
    const leaving = new AbortController()
    const onCode = (): void => leaving.abort()
    expect(await kind(deviceWorld([pending]), { signal: leaving.signal, onCode })).toEqual(['cancelled', undefined])
    const throwing = (): never => {
      throw new Error('no screen')
    }
    expect(await kind(deviceWorld([pending]), { onCode: throwing })).toEqual(['settings-invalid', undefined])
    expect(await kind(deviceWorld([pending]), { dpop: 'always' })).toEqual(['settings-invalid', undefined])

    // At the real one: what a person says no to, and what was there before.
    await using here = await world()
    const account = await here.account()
    await account.signIn(willing())
    const was = account.current()
    const told = toldBy(account)
    const denying = signInPerson({ account: 'grace', consent: 'deny' })
    let denied: Promise<void> | undefined
    const refused = account.signIn({
      onCode({ userCode }) {
        denied = denying.approveDevice(authorization.issuer, userCode)
      },
    })
    await expect(refused).rejects.toMatchObject({
      code: 'SIGN_IN_FAILED',
      details: { account: 'account', kind: 'provider-refused', error: 'access_denied' },
    })
    await denied
    const given = account.signIn({ timeoutMs: 1_000, onCode: () => {} })
    await expect(given).rejects.toMatchObject({ code: 'SIGN_IN_TIMEOUT' })
    expect([account.current(), told]).toEqual([was, []])
    expect((await speaker(await here.host(account))).account).toBe('ada')
  },
  TIMEOUT_MS,
)

verifies('auth.186', async () => {
  const read = (over: object, status = 200): unknown => {
    try {
      const body = Buffer.from(JSON.stringify({ ...CODE, ...over }))
      return readDeviceAnswer(status, body, { endpoint: DEVICE, addresses: 'public', secrets: ['client-secret'] })
    } catch (error) {
      return error instanceof SignInError ? error.kind : error
    }
  }
  const table: [string, object, unknown][] = [
    ['as it should be', { interval: 7 }, expect.objectContaining({ lifeMs: 600_000, intervalMs: 7_000 })],
    ['no interval', {}, expect.objectContaining({ intervalMs: 5_000 })],
    ['an interval that is no number', { interval: 'soon' }, expect.objectContaining({ intervalMs: 5_000 })],
    ['an interval of nothing', { interval: 0 }, expect.objectContaining({ intervalMs: 1_000 })],
    ['a life of days', { expires_in: 1e6 }, expect.objectContaining({ lifeMs: 3_600_000 })],
    ['a page without encryption', { verification_uri: 'http://login.example/device' }, 'endpoint-refused'],
    ['a page of a program', { verification_uri: 'javascript:alert(1)' }, 'endpoint-refused'],
    ['no page', { verification_uri: undefined }, 'endpoint-refused'],
    ['a file', { verification_uri_complete: 'file:///etc/passwd' }, 'endpoint-refused'],
    ['a code that moves the cursor', { user_code: 'A\u001b[2J' }, 'answer-invalid'],
    ['a code that is a novel', { user_code: 'A'.repeat(65) }, 'answer-invalid'],
    ['no code', { user_code: '' }, 'answer-invalid'],
    ['no code for us', { device_code: 7 }, 'answer-invalid'],
    ['no life', { expires_in: undefined }, 'answer-invalid'],
    ['a life of nothing', { expires_in: 0 }, 'answer-invalid'],
    ['an error', { device_code: undefined, error: 'invalid_scope' }, 'scope-refused'],
  ]
  for (const [what, over, expected] of table) expect([what, read(over)]).toEqual([what, expected])
  expect(read({ error: 'invalid_client' }, 401)).toBe('provider-refused')

  const canaries = new Canaries()
  const deviceCode = canaries.plantPlain('device code')
  const secret = canaries.plantPlain('client secret')
  const refusing = { error: 'invalid_grant', error_description: `you sent ${deviceCode} and ${secret}` }
  const here = deviceWorld([refusing], { code: { ...CODE, device_code: deviceCode } })
  canaries.watch('failure', { kind: 'value', value: await failureOf(here.signIn({ clientSecret: secret })) })
  canaries.assertNowhere()
})

test('an endpoint for codes that leads where it may not is refused before anything is asked there', async () => {
  const here = deviceWorld([TOKENS], {
    metadata: { device_authorization_endpoint: 'http://login.example/device-code' },
  })
  expect((await failureOf(here.signIn())).kind).toBe('endpoint-refused')
  const inner = deviceWorld([TOKENS], { metadata: { device_authorization_endpoint: 'https://inside.example/x' } })
  const port = { ...inner.port, reach: async (host: string) => (host === 'inside.example' ? 'private' : 'public') }
  expect((await failureOf(inner.signIn({ port }))).details.field).toBe('device_authorization_endpoint')
  expect(inner.asked.some(({ method }) => method === 'POST')).toBe(false)
})

test('scopes that tell who signs in are asked for where they are listed, and not besides what somebody chose', () => {
  const issuerScopes = ['openid', 'offline_access']
  const ifListed = ['openid', 'profile']
  expect(planScopes({ discovered: ['mcp'], issuerScopes, ifListed }).scopes).toEqual([
    'mcp',
    'openid',
    'offline_access',
  ])
  expect(planScopes({ issuerScopes, ifListed })).toEqual({ scopes: ['openid', 'offline_access'], source: 'discovered' })
  expect(planScopes({ issuerScopes: ['offline_access'], ifListed })).toEqual({ scopes: [], source: 'none' })
  expect(planScopes({ explicit: ['mcp'], issuerScopes, ifListed }).scopes).toEqual(['mcp'])
  expect(planScopes({ configured: [], issuerScopes, ifListed }).scopes).toEqual([])
})

test('the real port waits between two questions, and leaves no timer when it is given up', async () => {
  const leaving = new AbortController()
  const here = deviceWorld([pending])
  const waiting = here.signIn({ port: { ...here.port, setTimer: realPort.setTimer }, signal: leaving.signal })
  await expect.poll(() => here.asked.some(({ url }) => url === DEVICE)).toBe(true)
  leaving.abort()
  expect((await failureOf(waiting)).kind).toBe('cancelled')
})
