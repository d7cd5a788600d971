// The account that is signed in to by OAuth, at a real authorization server and real protected MCP servers.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AuthorizationServer,
  Canaries,
  digestOf,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  verifies,
} from '@convoke/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { AccountAuth } from '../src/auth/index.ts'
import type { DeviceCode } from '../src/auth/oauth/device.ts'
import { nodePlatform } from '../src/protocol/index.ts'
import {
  accountWorld,
  call,
  hostedAt,
  refreshesDuring as refreshes,
  speaker,
  tokenOf,
  toldBy,
  type World,
  willing,
} from './account-support.ts'
import { TIMEOUT_MS } from './oauth-support.ts'
import { startRawHttp } from './raw-http.ts'
import { eventOf, http, statusOf } from './support.ts'

const HOUR_MS = 3_600_000
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

const world = (): Promise<World> => accountWorld({ authorization, folder })
const refreshesDuring = (work: () => Promise<unknown>): ReturnType<typeof refreshes> => refreshes(authorization, work)

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
