// What changes around a stored sign-in: another takes its place, its entry is written anew, its host is closed, its authorization server hangs.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHost, defineServer, type Host, HostError, type HostOptions, type OauthSettings } from '@convoke/host'
import {
  type AuthorizationServerOptions,
  type ProtectedServerKnobs,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  type TestAccount,
} from '@convoke/testkit'
import { expect, test } from 'vitest'
import type { RefreshAnswer } from '../src/auth/decide.ts'
import type { Grant } from '../src/auth/grant.ts'
import { GrantHolder, type TokenRequests } from '../src/auth/grant-holder.ts'
import { GrantHolders } from '../src/auth/grant-holders.ts'
import { type CredentialRecord, mayRevoke, newRecord, recordText, tokenDigest } from '../src/auth/record.ts'
import { type SignInEntry, SignInIndex } from '../src/auth/sign-in-index.ts'
import { SignInRecords } from '../src/auth/sign-in-records.ts'
import { SignInStores } from '../src/auth/sign-in-stores.ts'
import { makeSignIns } from '../src/host-sign-ins.ts'
import { nodePlatform } from '../src/protocol/index.ts'
import { type KeyValueStore, MemoryStore, StoreError } from '../src/store/index.ts'

const HOUR_MS = 3_600_000
const NOW_MS = 1_000_000
const SERVER = { name: 'one', url: 'https://mcp.example/mcp' }
const TRANSPORT = { kind: 'http', url: SERVER.url, headers: {}, envHeaders: {} } as const
const ENTRY: SignInEntry = {
  ...{ version: 1, server: SERVER, recordId: 'record', grantId: 'g1', store: 'memory', issuer: 'https://as.example' },
  ...{ resource: SERVER.url, clientId: 'client', signedInAtMs: NOW_MS },
}
const limits = { valueBytesMax: 100_000, totalBytesMax: 1_000_000, keysMax: 10, whenFull: 'refuse' } as const

function recordOf(grantId: string, over: Partial<Grant> = {}): CredentialRecord {
  const grant: Grant = {
    issuer: { issuer: 'https://as.example', tokenEndpoint: 'https://as.example/token' },
    resource: SERVER.url,
    client: { id: 'client', kind: 'configured' },
    tokens: {
      ...{ accessToken: `a of ${grantId}`, type: 'Bearer', refreshToken: `r of ${grantId}` },
      expiresAtMs: NOW_MS + HOUR_MS,
    },
    ...over,
  }
  return newRecord(grant, { server: SERVER, grantId, nowMs: NOW_MS })
}

/** Its `at`th change fails from now on; `isDone`: after it is done. Others go through. */
class Spoilt {
  readonly store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  left = Number.POSITIVE_INFINITY
  isDone = false
  readonly port: KeyValueStore = new Proxy<KeyValueStore>(this.store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      if (name !== 'set') return value.bind(target)
      return async (...given: [string, string]) => {
        const isSpoilt = this.left-- === 0
        if (!isSpoilt || this.isDone) await target.set(...given)
        if (isSpoilt) throw new StoreError('failed', 'Input/output error')
      }
    },
  })
}

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

/** A holder whose token has ended, and what it asks. */
async function expiring(requests: Partial<TokenRequests> = {}) {
  const store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  await store.set('record', recordText(recordOf('g1')))
  const holder = new GrantHolder({
    ...{ server: SERVER, recordId: 'record', grantId: 'g1' },
    open: async () => store,
    requests: { refresh: () => Promise.reject(new Error('nobody answers')), ...requests },
    dateMs: () => NOW_MS + HOUR_MS,
    setTimer: (callback) => setTimeout(callback),
  })
  return { store, holder }
}

/** The access token of whoever is signed in, as a connection finds it. */
async function tokenOf(index: SignInIndex, stores: SignInStores): Promise<string | undefined> {
  const reading = await index.read(SERVER)
  if (reading.kind !== 'entry') return undefined
  const { recordId, grantId } = reading.entry
  const holder = new GrantHolder({
    ...{ server: SERVER, recordId, grantId },
    open: () => stores.open('memory'),
    requests: { refresh: () => Promise.reject(new Error('nothing has to be renewed')) },
    dateMs: () => NOW_MS,
    setTimer: (callback) => setTimeout(callback),
  })
  return (await holder.current()).accessToken
}

test('a sign-in that cannot be saved leaves the one before as good as it was, and nothing of itself', async () => {
  const other: Partial<Grant> = { client: { id: 'other', kind: 'registered' } }
  for (const where of ['record', 'index'] as const)
    for (const isDone of [false, true])
      for (const [before, next] of [
        [recordOf('g1'), recordOf('g2')],
        [recordOf('g1'), recordOf('g2', other)],
        [undefined, recordOf('g2')],
      ] as const) {
        const parts = { record: new Spoilt(), index: new Spoilt() }
        const stores = new SignInStores('memory', { memory: () => parts.record.port })
        const index = new SignInIndex(parts.index.port)
        const records = new SignInRecords(stores, index)
        const place = { store: parts.record.port, kind: 'memory' } as const
        if (before !== undefined) await records.keep(before, place)
        const keys = await parts.record.store.keys()
        Object.assign(parts[where], { left: 0, isDone })
        await expect(records.keep(next, place)).rejects.toMatchObject({ failure: 'failed' })
        const row = { where, isDone, client: next.client.id }
        expect({ ...row, token: await tokenOf(index, stores) }).toEqual({ ...row, token: before?.tokens.accessToken })
        expect({ ...row, keys: await parts.record.store.keys() }).toEqual({ ...row, keys })
      }
})

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
async function realWorld(options: AuthorizationServerOptions & { readonly server?: ProtectedServerKnobs } = {}) {
  const cleanups = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'convoke-changes-'))
  cleanups.defer(() => rm(folder, { recursive: true, force: true }))
  const authorization = cleanups.use(
    await startAuthorizationServer({ ...options, knobs: { accessTokenSeconds: 3_600, ...options.knobs } }),
  )
  const server = cleanups.use(
    await startProtectedServer({ issuer: authorization.issuer, ...(options.server ? { knobs: options.server } : {}) }),
  )
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

test('a renewal that waits for another program ends when the host is closed', async () => {
  const { store, holder } = await expiring()
  await using _ = await store.lock('record')
  const waiting = codeOf(holder.current())
  await new Promise((resolve) => setImmediate(resolve))
  await holder.close()
  expect(await waiting).toBe('REFRESH_FAILED')
})

test('what a sign-in has sent is waited for at the close, also when another one has taken its place', async () => {
  const store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  await store.set('record', recordText(recordOf('g1')))
  const asked = deferred<void>()
  const answer = deferred<RefreshAnswer>()
  const holders = new GrantHolders({
    port: { dateMs: () => NOW_MS + HOUR_MS, setTimer: (callback) => setTimeout(callback) },
    open: async () => store,
    requests: () => ({
      refresh: () => {
        asked.resolve()
        return answer.promise
      },
    }),
    onChange: () => {},
  })
  const entry = { ...ENTRY, recordId: 'record', grantId: 'g1' }
  const call = codeOf(holders.of(defineServer({ name: 'one', transport: TRANSPORT }), entry).current())
  await asked.promise
  holders.retire(entry)
  let isClosed = false
  const closed = holders.close().then(() => {
    isClosed = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isClosed).toBe(false)
  answer.resolve({ kind: 'failed' })
  await closed
  expect(await call).toBe('REFRESH_FAILED')
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

test('a sign-in that another program is renewing is told as that, and one whose renewal was cut off as what it is', async () => {
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

  const store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  const stores = new SignInStores('memory', { memory: () => store })
  const records = new SignInRecords(stores, new SignInIndex(store))
  const attempt = { refreshDigest: tokenDigest('r of g1'), startedAtMs: NOW_MS }
  await store.set('record', recordText({ ...recordOf('g1'), attempt }))
  const lock = await store.lock('record')
  expect(await records.look(ENTRY)).toMatchObject({ isRenewing: true, record: { attempt } })
  await lock[Symbol.asyncDispose]()
  expect(await records.look(ENTRY)).toMatchObject({ isRenewing: false, record: { attempt } })
  // Nobody who looks keeps a renewal out.
  await using _ = await store.lock('record', { waitMs: 0 })
})

test('a sign-in that another one has replaced is taken back at its authorization server, where that harms nobody', async () => {
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

  const same = { subject: { id: 'ada' } }
  const client = { id: 'other', kind: 'registered' } as const
  const issuer = { issuer: 'https://elsewhere.example', tokenEndpoint: 'https://elsewhere.example/token' }
  for (const [former, next, expected] of [
    [{}, {}, false],
    [same, same, false],
    [same, {}, false],
    [same, { subject: { id: 'grace' } }, true],
    [{}, { client }, true],
    [same, { ...same, issuer }, true],
  ] as const)
    expect([former, next, mayRevoke(recordOf('g1', former), recordOf('g2', next))]).toEqual([former, next, expected])
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

  let isAborted = false
  const { store, holder } = await expiring({
    obtain: (signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          isAborted = true
          reject(new HostError('CANCELLED', 'cancelled'))
        })
      }),
  })
  await store.remove('record')
  const waiting = codeOf(holder.current())
  await new Promise((resolve) => setImmediate(resolve))
  await holder.close()
  expect([isAborted, await waiting]).toEqual([true, 'REFRESH_FAILED'])
})
