// What changes around a stored sign-in: another takes its place, its entry is written anew, its host is closed, its authorization server hangs.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHost, defineServer, type Host, type HostOptions, type OauthSettings } from '@convoke/host'
import {
  type AuthorizationServerOptions,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  type TestAccount,
} from '@convoke/testkit'
import { expect, test } from 'vitest'
import { makeSignIns } from '../src/host-sign-ins.ts'
import { nodePlatform } from '../src/protocol/index.ts'

const HOUR_MS = 3_600_000

const codeOf = (outcome: Promise<unknown>): Promise<unknown> =>
  outcome.then(
    () => 'done',
    (error: { code?: string }) => error.code ?? error,
  )

/** A promise, and what settles it. */
function deferred<Value>() {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** A client that is registered already, and how an entry names it. */
const APP = {
  ...{ client_id: 'app', client_secret: 'the-right-secret', application_type: 'native' },
  ...{ redirect_uris: ['http://127.0.0.1/callback'], grant_types: ['authorization_code', 'refresh_token'] },
}
const MACHINE = {
  ...{ client_id: 'machine', client_secret: 'the-secret-of-the-machine', redirect_uris: [] },
  ...{ grant_types: ['client_credentials'], response_types: [] },
}
const KNOWN = { clientId: 'app', callbackUrl: 'http://127.0.0.1/callback' } as const

/** Takes every request, and answers none. */
async function startSilent() {
  const asked = deferred<void>()
  const server = createServer(() => asked.resolve()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    whenAsked: asked.promise,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Hosts that share one folder of sign-ins and one clock, in front of real servers. */
async function realWorld(options: AuthorizationServerOptions = {}) {
  const cleanups = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'convoke-changes-'))
  cleanups.defer(() => rm(folder, { recursive: true, force: true }))
  const authorization = cleanups.use(
    await startAuthorizationServer({ ...options, knobs: { accessTokenSeconds: 3_600, ...options.knobs } }),
  )
  const server = cleanups.use(await startProtectedServer({ issuer: authorization.issuer }))
  const silent = cleanups.use(await startSilent())
  let offsetMs = 0
  const env: Record<string, string | undefined> = { ...process.env }
  const platform = { ...nodePlatform, env, dateMs: () => Date.now() + offsetMs }
  const define = (oauth?: OauthSettings) =>
    defineServer({
      name: 'guarded',
      transport: { kind: 'http', url: server.url, headers: {}, envHeaders: {} },
      ...(oauth === undefined ? {} : { oauth }),
    })
  const host = async (over: Partial<HostOptions> = {}): Promise<Host> =>
    cleanups.use(
      await createHost({
        definitions: [define()],
        signIns: { store: 'file', directory: join(folder, 'sign-ins') },
        ...{ platform, start: [] },
        ...over,
      }),
    )
  return {
    ...{ authorization, server, silent, folder, host, define, env },
    advance(ms: number) {
      offsetMs += ms
    },
    [Symbol.asyncDispose]: () => cleanups.disposeAsync(),
  }
}

/** A person who agrees, in front of a browser that works. */
function willing(account: TestAccount = 'ada') {
  const person = signInPerson({ account })
  return {
    async openPage(url: string) {
      await person.signIn(url)
    },
  }
}

const CALL = { server: 'guarded', tool: 'whoami', wait: 'ready' } as const

/** Who the server says we are, or how the call ended. */
async function accountOf(host: Host): Promise<string> {
  const outcome = await host.callTool(CALL)
  if ('error' in outcome) return outcome.error.code
  const [content] = (outcome.result['content'] ?? []) as { text?: string }[]
  return (JSON.parse(content?.text ?? '{}') as { account?: string }).account ?? outcome.kind
}

test('settings that are changed while a host runs count for the next renewal', async () => {
  await using here = await realWorld({ clients: [APP] })
  const { issuer } = here.authorization
  here.env['FORMER'] = 'the-right-secret'
  const host = await here.host({
    definitions: [here.define({ ...KNOWN, issuer, clientSecretEnvVar: 'FORMER' })],
  })
  await host.signIn('guarded', willing())
  expect(await accountOf(host)).toBe('ada')
  here.env['LATER'] = 'the-right-secret'
  here.env['FORMER'] = 'not any more'
  await host.configure([here.define({ ...KNOWN, issuer, clientSecretEnvVar: 'LATER' })])
  here.advance(HOUR_MS)
  expect(await accountOf(host)).toBe('ada')
})

test('a sign-in that cannot be read for a moment has not changed', async () => {
  await using here = await realWorld()
  const host = await here.host()
  const watched = [here.define()]
  const { files } = nodePlatform
  let isBroken = false
  const signIns = makeSignIns({
    settings: { store: 'file', directory: join(here.folder, 'sign-ins') },
    ...{ stateDirectory: undefined, clientName: 'test' },
    platform: {
      ...nodePlatform,
      files: {
        ...files,
        read(...given: Parameters<typeof files.read>) {
          const isOurs = isBroken && given[0].includes('/index/')
          return isOurs ? Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' })) : files.read(...given)
        },
      },
    },
    hasAccount: () => false,
    onChange: () => {},
  })
  const kindOf = async (): Promise<string> => (await signIns.read(here.define())).snapshot.kind
  await host.signIn('guarded', willing())
  expect(await kindOf()).toBe('value')
  isBroken = true
  expect(await signIns.haveChanged(watched)).toBe(false)
  expect(await kindOf()).toBe('unreadable')
  expect(signIns.watched(watched, new Set())).toEqual(watched)
  isBroken = false
  expect(await signIns.haveChanged(watched)).toBe(false)
  await host.signOut('guarded')
  expect(await signIns.haveChanged(watched)).toBe(true)
  expect(await kindOf()).toBe('none')
  await signIns.close()
})

test('whoever signs in or out while the host is closed is told soon, and nothing goes on', async () => {
  await using here = await realWorld()
  const { authorization } = here

  // A person who is still thinking.
  const thinking = await here.host()
  let page = ''
  const shown = deferred<void>()
  const signingIn = codeOf(
    thinking.signIn('guarded', {
      onPage: ({ redirectUrl }) => {
        page = redirectUrl
        shown.resolve()
      },
    }),
  )
  await shown.promise
  await thinking.close()
  expect(await signingIn).toBe('HOST_CLOSED')
  await expect(fetch(page)).rejects.toThrow()

  // An authorization server that does not answer, to whom it is.
  const other = await here.host()
  await other.signIn('guarded', willing())
  const asking = await here.host({ definitions: [here.define(), { ...here.define(), name: 'other' }] })
  await authorization.set({ hold: 'everything' })
  const [out, status, again] = [
    codeOf(asking.signOut('guarded')),
    codeOf(asking.signInStatuses({ servers: ['other'], probe: true })),
    codeOf(asking.signIn('other', willing())),
  ]
  await authorization.whenStats(({ waiting }) => waiting >= 3)
  const startedAtMs = performance.now()
  await asking.close()
  expect(await Promise.all([out, status, again])).toEqual(['HOST_CLOSED', 'HOST_CLOSED', 'HOST_CLOSED'])
  expect(performance.now() - startedAtMs).toBeLessThan(2_000)
  await authorization.set({ hold: undefined })
  // It was deleted before anybody was told.
  expect(await other.signInStatuses()).toMatchObject([{ state: 'unknown' }])
  await expect(asking.signIn('guarded')).rejects.toMatchObject({ code: 'HOST_CLOSED' })
})

test('a call whose token is still good does not wait for an authorization server that hangs', async () => {
  await using here = await realWorld()
  const { authorization } = here
  const host = await here.host()
  await host.signIn('guarded', willing())
  expect(await accountOf(host)).toBe('ada')
  here.advance(HOUR_MS - 25_000)
  await authorization.set({ hold: 'before-token' })
  const callTimed = async (one: Host): Promise<number> => {
    const startedAtMs = performance.now()
    expect(await accountOf(one)).toBe('ada')
    return performance.now() - startedAtMs
  }
  expect(await callTimed(host)).toBeLessThan(5_000)
  // It is known by now that it hangs.
  expect(await callTimed(host)).toBeLessThan(1_500)
  // A start goes on as well.
  expect(await callTimed(await here.host())).toBeLessThan(7_000)
  expect((await authorization.stats()).waiting).toBe(1)
  await authorization.set({ hold: undefined })
  // The renewal was not given up, and its answer counts.
  await authorization.whenStats(({ tokenRequests }) => tokenRequests.at(-1)?.grantType === 'refresh_token')
  here.advance(30_000)
  expect(await accountOf(host)).toBe('ada')
  const { tokenRequests } = await authorization.stats()
  expect(tokenRequests.filter(({ grantType }) => grantType === 'refresh_token')).toMatchObject([{ outcome: 'issued' }])
})

test('a sign-in that another program is renewing is told as that', async () => {
  await using here = await realWorld()
  const host = await here.host()
  await host.signIn('guarded', willing())
  expect(await accountOf(host)).toBe('ada')
  here.advance(HOUR_MS)
  await here.authorization.set({ hold: 'before-token' })
  const call = accountOf(host)
  await here.authorization.whenStats(({ waiting }) => waiting === 1)
  for (const one of [host, await here.host()])
    expect(await one.signInStatuses()).toMatchObject([
      { state: 'signed-in', because: 'it is being renewed', isRenewable: true },
    ])
  await here.authorization.set({ hold: undefined })
  expect(await call).toBe('ada')
  const [status] = await host.signInStatuses()
  expect([status?.state, status?.because]).toEqual(['signed-in', undefined])
})

test('a sign-in that another one has replaced is taken back at its authorization server', async () => {
  await using here = await realWorld({ clients: [APP] })
  const { authorization } = here
  const host = await here.host()
  await host.signIn('guarded', willing())
  const { revocations } = await authorization.stats()
  await (await here.host()).signIn('guarded', willing())
  // Its refresh token, and its access token.
  await authorization.whenStats((stats) => stats.revocations === revocations + 2)
  await expect.poll(() => accountOf(host), { timeout: 15_000 }).toBe('ada')

  // One that does not answer costs the sign-in nothing; who closes waits for it, for its limit.
  await authorization.set({ metadata: { revocation_endpoint: `${here.silent.url}/revoke` } })
  await host.signIn('guarded', willing())
  const startedAtMs = performance.now()
  await host.signIn('guarded', willing())
  expect(performance.now() - startedAtMs).toBeLessThan(4_000)
  await here.silent.whenAsked
  await host.close()
  expect(performance.now() - startedAtMs).toBeLessThan(9_000)
})

test('a sign-in at another authorization server by another program is the one that counts, also for renewals', async () => {
  await using elsewhere = await startAuthorizationServer({ knobs: { accessTokenSeconds: 3_600 } })
  await using here = await realWorld()
  const host = await here.host()
  await host.signIn('guarded', willing())
  expect(await accountOf(host)).toBe('ada')
  await here.server.set({ authorizationServers: [elsewhere.issuer] })
  const other = await here.host()
  expect((await other.signIn('guarded', willing('grace'))).issuer).toBe(elsewhere.issuer)
  await expect.poll(() => accountOf(host), { timeout: 15_000 }).toBe('grace')
  expect(await host.signInStatuses()).toMatchObject([{ state: 'signed-in', issuer: elsewhere.issuer }])
  const before = await here.authorization.stats()
  here.advance(HOUR_MS)
  expect([await accountOf(host), await accountOf(other)]).toEqual(['grace', 'grace'])
  expect((await here.authorization.stats()).tokenRequests.length).toBe(before.tokenRequests.length)
  expect((await elsewhere.stats()).tokenRequests.map(({ grantType }) => grantType)).toEqual([
    'authorization_code',
    'refresh_token',
  ])
})

test('a call that learns of a sign-out by another program says that somebody has to sign in, and not that a connection was lost', async () => {
  await using here = await realWorld()
  const host = await here.host()
  const other = await here.host()
  for (let round = 0; round < 4; round++) {
    await other.signIn('guarded', willing())
    await expect.poll(() => accountOf(host), { timeout: 15_000 }).toBe('ada')
    await other.signOut('guarded')
    const outcome = await host.callTool(CALL)
    expect([round, 'error' in outcome && outcome.error.code]).toEqual([round, 'AUTH_REQUIRED'])
    expect([round, await accountOf(host)]).toEqual([round, 'AUTH_REQUIRED'])
  }
})

test('a client secret is shown to no authorization server that only the server names', async () => {
  await using here = await realWorld({ clients: [APP] })
  const { authorization, env } = here
  env['APP_SECRET'] = 'the-right-secret'
  const oauth = { ...KNOWN, clientSecretEnvVar: 'APP_SECRET' }
  const host = await here.host({ definitions: [here.define(oauth)] })
  const refused = host.signIn('guarded', willing())
  await expect(refused).rejects.toMatchObject({
    code: 'SIGN_IN_FAILED',
    message: expect.stringContaining('oauth.issuer'),
    details: { kind: 'settings-invalid', field: 'oauth.issuer' },
  })
  expect((await authorization.stats()).tokenRequests).toEqual([])
  await host.configure([here.define({ ...oauth, issuer: authorization.issuer })])
  await host.signIn('guarded', willing())
  expect(await accountOf(host)).toBe('ada')
  // A sign-in that was made before goes on, at its own issuer.
  await host.configure([here.define(oauth)])
  here.advance(HOUR_MS)
  expect(await accountOf(host)).toBe('ada')
})

test('a program that is getting tokens by itself stops when its host is closed', async () => {
  await using here = await realWorld({ clients: [{ ...MACHINE }] })
  const { authorization, env } = here
  env['MACHINE_SECRET'] = MACHINE.client_secret
  const oauth = { grant: 'client-credentials', clientId: 'machine', clientSecretEnvVar: 'MACHINE_SECRET' } as const
  const host = await here.host({ definitions: [here.define({ ...oauth, issuer: authorization.issuer })] })
  await authorization.set({ hold: 'before-token' })
  const call = host.callTool(CALL)
  await authorization.whenStats(({ waiting }) => waiting === 1)
  const startedAtMs = performance.now()
  await host.close()
  await call.catch(() => {})
  expect(performance.now() - startedAtMs).toBeLessThan(2_000)
  await authorization.set({ hold: undefined })
})
