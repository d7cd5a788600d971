// What the world does to a stored sign-in: clocks, disks, lifetimes and answers that nobody should have to think of.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHost, defineServer, type Host, type HostOptions } from '@convoke/host'
import {
  type ProtectedServerKnobs,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  verifies,
} from '@convoke/testkit'
import { expect } from 'vitest'
import { AuthorizationServers } from '../src/auth/authorization-servers.ts'
import type { RefreshAnswer } from '../src/auth/decide.ts'
import type { Grant } from '../src/auth/grant.ts'
import { GrantHolder, type GrantHolderOptions, type TokenRequests } from '../src/auth/grant-holder.ts'
import { openCallback } from '../src/auth/oauth/callback.ts'
import { canonicalResource } from '../src/auth/oauth/endpoints.ts'
import type { OAuthPort, OAuthRequest } from '../src/auth/oauth/port.ts'
import { type CredentialRecord, newRecord, recordText } from '../src/auth/record.ts'
import { nodePlatform } from '../src/protocol/index.ts'
import {
  FileStore,
  type KeyValueStore,
  MemoryStore,
  SealedStore,
  StoreError,
  sealedLimits,
} from '../src/store/index.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const ID = 'record'
const URL_OF_SERVER = 'https://mcp.example/mcp'
const limits = { valueBytesMax: 100_000, totalBytesMax: 1_000_000, keysMax: 10, whenFull: 'refuse' } as const
const expiring = { kind: 'expiring' } as const

function recordOf(tokens: Partial<Grant['tokens']> = {}, client: Partial<Grant['client']> = {}): CredentialRecord {
  const grant: Grant = {
    issuer: { issuer: 'https://as.example', tokenEndpoint: 'https://as.example/token' },
    resource: URL_OF_SERVER,
    client: { id: 'client', kind: 'registered', ...client },
    tokens: { accessToken: 'a1', type: 'Bearer', refreshToken: 'r1', expiresAtMs: 0, ...tokens },
  }
  return newRecord(grant, { server: { name: 'one', url: URL_OF_SERVER }, grantId: 'g1', nowMs: 0 })
}

/** An authorization server that rotates, and a clock that can be set. */
class World {
  nowMs = 1_000_000
  readonly sent: string[] = []
  readonly answers: (() => RefreshAnswer)[] = []
  store: KeyValueStore = new MemoryStore({ limits, dateMs: () => this.nowMs })
  readonly requests: TokenRequests = {
    refresh: async (_record, refreshToken) => {
      this.sent.push(refreshToken)
      return this.answers.shift()?.() ?? this.next(this.nowMs + HOUR_MS)
    },
  }

  next(expiresAtMs: number): RefreshAnswer {
    const number = this.sent.length + 1
    const tokens = { accessToken: `a${number}`, type: 'Bearer', refreshToken: `r${number}`, expiresAtMs } as const
    return { kind: 'refreshed', tokens }
  }

  /** One program. */
  holder(over: Partial<GrantHolderOptions> = {}): GrantHolder {
    return new GrantHolder({
      server: { name: 'one', url: URL_OF_SERVER },
      recordId: ID,
      grantId: 'g1',
      open: async () => this.store,
      requests: this.requests,
      dateMs: () => this.nowMs,
      setTimer: (callback) => {
        queueMicrotask(callback)
        return {}
      },
      ...over,
    })
  }
}

async function world(record = recordOf()): Promise<World> {
  const made = new World()
  await made.store.set(ID, recordText(record))
  return made
}

/** The store, with one of its methods in other words. */
function withMethod<Name extends 'compareAndSwap' | 'lock'>(
  store: KeyValueStore,
  name: Name,
  method: KeyValueStore[Name],
): KeyValueStore {
  return new Proxy(store, {
    get(target, wanted) {
      if (wanted === name) return method
      const value: unknown = Reflect.get(target, wanted, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

const codeOf = (outcome: Promise<unknown>): Promise<unknown> =>
  outcome.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  )

interface Seen {
  readonly url: string
  readonly request: OAuthRequest
}

/** The authorization servers of a host, with one answer for everything that is asked. `as.example` is in a private network. */
function serversOf(status: number, body: object, env: Record<string, string> = {}) {
  const seen: Seen[] = []
  const port: OAuthPort = {
    async fetch(url, request) {
      seen.push({ url, request })
      const header = (name: string) => (name === 'content-type' ? 'application/json' : undefined)
      return { status, header, body: Buffer.from(JSON.stringify(body)) }
    },
    reach: async (host) => (host === 'as.example' ? 'private' : 'public'),
    dateMs: () => 1_000_000,
    setTimer: (callback, ms) => setTimeout(callback, ms),
    clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
    randomBytes: (count) => nodePlatform.randomBytes(count),
  }
  const servers = new AuthorizationServers({
    port,
    env,
    client: { name: 'test' },
    readCa: async () => undefined,
    readFile: () => Promise.reject(new Error('there is none')),
  })
  return { servers, seen }
}

const transport = { kind: 'http', url: URL_OF_SERVER, headers: {}, envHeaders: {} } as const
const configured = { id: 'known', kind: 'configured' } as const

verifies('auth.190', async () => {
  const definition = defineServer({
    name: 'one',
    transport,
    oauth: { clientId: 'known', clientSecretEnvVar: 'CLIENT_SECRET' },
  })
  const rows: readonly (readonly [number, object, CredentialRecord, RefreshAnswer['kind']])[] = [
    [400, { error: 'invalid_grant' }, recordOf(), 'rejected'],
    [401, { error: 'invalid_client' }, recordOf(), 'rejected'],
    // The variable with its secret is not set in this program; others may have it.
    [401, { error: 'invalid_client' }, recordOf({}, configured), 'failed'],
    [200, { ok: false, error: 'ratelimited' }, recordOf(), 'failed'],
    [403, { error: 'rate_limit_exceeded' }, recordOf(), 'failed'],
    [429, { error: 'invalid_grant' }, recordOf(), 'failed'],
    [503, { error: 'invalid_grant' }, recordOf(), 'failed'],
    [400, { error: 'invalid_request' }, recordOf(), 'failed'],
    [400, { error: 'invalid_target' }, recordOf(), 'failed'],
    [400, {}, recordOf(), 'failed'],
    [200, {}, recordOf(), 'failed'],
    [302, {}, recordOf(), 'failed'],
  ]
  for (const [status, body, record, kind] of rows) {
    const { servers } = serversOf(status, body)
    const answer = await servers.requests(() => definition).refresh(record, 'r1')
    expect([status, body, answer.kind]).toEqual([status, body, kind])
  }
})

verifies('auth.191', async () => {
  // The clock is set back by a year while a pause runs.
  const back = await world()
  back.nowMs += 365 * DAY_MS
  back.answers.push(() => ({ kind: 'failed' }))
  const one = back.holder()
  expect(await codeOf(one.current())).toBe('REFRESH_FAILED')
  back.nowMs -= 364 * DAY_MS
  expect((await one.current()).accessToken).toBe('a3')
  back.nowMs += 730 * DAY_MS
  expect((await one.current()).accessToken).toBe('a4')

  // Lives of seconds are used for half of them.
  const short = await world()
  short.answers.push(() => short.next(short.nowMs + 20_000))
  const other = short.holder()
  for (let call = 0; call < 5; call++) expect((await other.current()).accessToken).toBe('a2')
  expect(short.sent).toEqual(['r1'])
  short.nowMs += 10_000
  expect((await other.current()).accessToken).toBe('a3')

  // What has ended before it came is no word of the server.
  const late = await world()
  late.answers.push(() => {
    late.nowMs += 44_000
    return late.next(late.nowMs - 4_000)
  })
  const third = late.holder()
  expect(await codeOf(third.current())).toBe('REFRESH_FAILED')
  expect((await third.current()).accessToken).toBe('a3')

  for (const expires_in of [0, -1, 'soon', null]) {
    const { servers } = serversOf(200, { access_token: 'fresh', token_type: 'Bearer', expires_in })
    const definition = defineServer({ name: 'one', transport })
    expect(await servers.requests(() => definition).refresh(recordOf(), 'r1')).toMatchObject({
      kind: 'refreshed',
      tokens: { accessToken: 'fresh', refreshToken: 'r1' },
    })
  }
})

verifies('auth.192', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-hostile-'))
  try {
    // Each change of the disk in turn fails: before it is done, and when it is done already.
    for (const isDone of [false, true]) {
      let failing = Number.POSITIVE_INFINITY
      for (let at = 1; failing > 0; at++) {
        failing = await renewalWithFailure(join(folder, `${isDone}-${at}`), at, isDone)
        expect(at).toBeLessThan(50)
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }

  // Another program meets the mark of one that lives and cannot save: it asks for a person, and comes back when it is saved.
  const full = await world()
  let isFull = true
  const store = withMethod(full.store, 'compareAndSwap', async (key, expected, value) => {
    if (isFull && value?.includes('"attempt"') === false) throw new StoreError('failed', 'No space left on device')
    return full.store.compareAndSwap(key, expected, value)
  })
  const one = full.holder({ open: async () => store })
  const other = full.holder()
  expect(await codeOf(one.current())).toBe('CREDENTIALS_UNAVAILABLE')
  expect(await codeOf(other.current())).toBe('AUTH_REQUIRED')
  isFull = false
  full.nowMs += 1_000
  expect((await one.current()).accessToken).toBe('a2')
  expect((await other.current()).accessToken).toBe('a2')
  expect(full.sent).toEqual(['r1'])

  // A claim that cannot be taken back takes nothing from what was decided.
  const held = await world()
  const clinging = withMethod(held.store, 'lock', async (key, options) => {
    const lock = await held.store.lock(key, options)
    return {
      isHeld: () => lock.isHeld(),
      async [Symbol.asyncDispose]() {
        await lock[Symbol.asyncDispose]()
        throw new StoreError('failed', 'Input/output error')
      },
    }
  })
  expect(await held.holder({ open: async () => clinging }).renew(expiring, { mayRefresh: true })).toEqual({
    kind: 'current',
  })
})

/** @returns 0 when there were fewer changes than that. */
async function renewalWithFailure(directory: string, at: number, isDone: boolean): Promise<number> {
  const here = new World()
  let changes = Number.NEGATIVE_INFINITY
  const spoilt = async (change: () => Promise<void>): Promise<void> => {
    const isSpoilt = ++changes === at
    if (!isSpoilt || isDone) await change()
    if (isSpoilt) throw Object.assign(new Error('Input/output error'), { code: 'EIO' })
  }
  const { files } = nodePlatform
  const platform = {
    ...nodePlatform,
    files: {
      ...files,
      writeAtomic: (...given: Parameters<typeof files.writeAtomic>) => spoilt(() => files.writeAtomic(...given)),
      remove: (path: string) => spoilt(() => files.remove(path)),
    },
  }
  const key = Buffer.alloc(32, 1)
  const inner = new FileStore({ platform, directory, limits: sealedLimits(limits), durability: 'durable' })
  here.store = new SealedStore({ inner, key, limits })
  await here.store.set(ID, recordText(recordOf()))
  const one = here.holder()
  changes = 0
  await one.current().catch(() => {})
  const met = changes >= at ? at : 0
  changes = Number.NEGATIVE_INFINITY
  here.nowMs += 30_000
  const tokens = await one.current()
  expect([at, isDone, tokens.accessToken]).toEqual([at, isDone, 'a2'])
  // Another program, with a store of its own, has it too; and nothing was sent twice.
  expect([at, isDone, (await here.holder().current()).accessToken]).toEqual([at, isDone, 'a2'])
  expect(here.sent).toEqual(['r1'])
  return met
}

verifies('auth.199', async () => {
  const here = await world()
  let answer: (given: RefreshAnswer) => void = () => {}
  let asked = 0
  const refresh = (): Promise<RefreshAnswer> =>
    new Promise((resolve) => {
      answer = resolve
      asked++
    })
  const one = here.holder({ requests: { refresh } })
  const tokens = one.current()
  await expect.poll(() => asked).toBe(1)
  let isClosed = false
  const closed = one.close().then(() => {
    isClosed = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isClosed).toBe(false)
  answer(here.next(here.nowMs + HOUR_MS))
  await closed
  expect((await here.holder().current()).accessToken).toBe('a1')
  expect((await tokens).accessToken).toBe('a1')
  expect(here.sent).toEqual([])
  // Nothing is sent after that, and so nothing can be lost.
  here.nowMs += HOUR_MS
  expect(await codeOf(one.current())).toBe('REFRESH_FAILED')
  const idle = here.holder()
  await idle.close()
  expect(await codeOf(idle.current())).toBe('REFRESH_FAILED')
  expect(here.sent).toEqual([])
})

verifies('auth.193', async () => {
  const env = { CLIENT_SECRET: 'the secret of the client' }
  const oauth = { clientId: 'known', clientSecretEnvVar: 'CLIENT_SECRET', issuer: 'https://as.example' }
  const shown = async (record: CredentialRecord, over: Partial<typeof oauth> = {}): Promise<boolean> => {
    const { servers, seen } = serversOf(200, { access_token: 'fresh', token_type: 'Bearer' }, env)
    const definition = defineServer({ name: 'one', transport, oauth: { ...oauth, ...over } })
    await servers.requests(() => definition).refresh(record, 'r1')
    await servers.revoke(definition, {
      ...record,
      issuer: { ...record.issuer, revocationEndpoint: 'https://as.example/revoke' },
    })
    expect(seen.length).toBe(3)
    return seen.every(({ request }) => request.headers?.['authorization'] !== undefined)
  }
  expect(await shown(recordOf({}, configured))).toBe(true)
  // Not for a client that registered itself, nor for the one that the entry named before, nor at another issuer.
  expect(await shown(recordOf())).toBe(false)
  expect(await shown(recordOf({}, { ...configured, id: 'former' }))).toBe(false)
  expect(await shown(recordOf({}, configured), { issuer: 'https://elsewhere.example' })).toBe(false)

  // The issuer that the entry names may be as private as it is; what a server named may not.
  for (const [issuer, addresses] of [
    ['https://as.example', 'any'],
    ['https://elsewhere.example', 'public'],
  ] as const) {
    const { servers, seen } = serversOf(200, { access_token: 'fresh', token_type: 'Bearer' })
    const definition = defineServer({ name: 'one', transport, oauth: { issuer } })
    await servers.requests(() => definition).refresh(recordOf(), 'r1')
    expect(seen.map(({ request }) => request.addresses)).toEqual([addresses])
  }
  expect(canonicalResource('https://ada:secret@mcp.example/mcp')).toBe(URL_OF_SERVER)
})

/** A host whose sign-ins are in a folder, in front of real servers. */
async function realWorld(knobs: ProtectedServerKnobs = {}) {
  const cleanups = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'convoke-hostile-'))
  cleanups.defer(() => rm(folder, { recursive: true, force: true }))
  const authorization = cleanups.use(await startAuthorizationServer())
  const server = cleanups.use(await startProtectedServer({ issuer: authorization.issuer, knobs }))
  const transport = { kind: 'http', url: server.url, headers: {}, envHeaders: {} } as const
  const host = async (over: Partial<HostOptions> = {}): Promise<Host> =>
    cleanups.use(
      await createHost({
        definitions: [defineServer({ name: 'guarded', transport })],
        signIns: { store: 'file', directory: join(folder, 'sign-ins') },
        start: [],
        ...over,
      }),
    )
  const openPage = async (url: string): Promise<void> => {
    await signInPerson().signIn(url)
  }
  return { authorization, server, host, folder, openPage, [Symbol.asyncDispose]: () => cleanups.disposeAsync() }
}

verifies('auth.194', async () => {
  await using here = await realWorld({ toolScopes: { write: 'mcp:wrote' } })
  const { openPage } = here
  const host = await here.host()
  const { scopes } = await host.signIn('guarded', { openPage })
  await host.callTool({ server: 'guarded', tool: 'write', wait: 'ready' })
  expect(await host.signInStatuses()).toMatchObject([{ wantedScopes: ['mcp:wrote'] }])
  await here.authorization.set({ refuseScopes: ['mcp:wrote'] })
  let dropped = 0
  for (const one of [host, await here.host()]) {
    const again = await one.signIn('guarded', { openPage, onScopesDropped: () => dropped++ })
    expect(again.scopes).toEqual(scopes)
  }
  expect(dropped).toBeGreaterThan(0)
  expect(await host.callTool({ server: 'guarded', tool: 'whoami', wait: 'ready' })).toMatchObject({ kind: 'ok' })
})

verifies('auth.195', async () => {
  await using here = await realWorld()
  const { files } = nodePlatform
  let isFull = true
  const platform = {
    ...nodePlatform,
    files: {
      ...files,
      async writeAtomic(...given: Parameters<typeof files.writeAtomic>) {
        if (isFull && given[0].endsWith('.json')) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
        await files.writeAtomic(...given)
      },
    },
  }
  const host = await here.host({ platform })
  let pages = 0
  const onPage = (): void => void pages++
  const failed = host.signIn('guarded', { openPage: here.openPage, onPage })
  await expect(failed).rejects.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE', details: { store: 'file' } })
  expect(pages).toBe(0)
  isFull = false
  await host.signIn('guarded', { openPage: here.openPage, onPage })
  expect(pages).toBe(1)
})

verifies('auth.196', async () => {
  await using here = await realWorld()
  const { openPage } = here
  const host = await here.host()
  await host.signIn('guarded', { openPage })
  // Somebody throws everything away, and signs in with another program.
  for (const name of ['sign-ins', 'sign-ins.key']) await rm(join(here.folder, name), { recursive: true })
  const other = await here.host()
  await other.signIn('guarded', { openPage })
  const call = { server: 'guarded', tool: 'whoami', wait: 'ready' } as const
  expect(await other.callTool(call)).toMatchObject({ kind: 'ok' })
  await host.refresh()
  expect(await host.signInStatuses()).toMatchObject([{ state: 'signed-in' }])
  expect(await host.callTool(call)).toMatchObject({ kind: 'ok' })
  // What the first one keeps from now on, others can read.
  await host.signIn('guarded', { openPage })
  expect(await (await here.host()).callTool(call)).toMatchObject({ kind: 'ok' })
})

verifies('auth.197', async () => {
  await using here = await realWorld({ documents: 'none', challenge: 'bare' })
  const host = await here.host()
  expect(await host.signInStatuses({ probe: true })).toMatchObject([{ state: 'signed-out' }])
})

verifies('auth.198', async () => {
  const callback = await openCallback({
    bind: { address: '127.0.0.1', port: 0 },
    url: 'http://127.0.0.1:0/callback/here',
  })
  const silent: Socket[] = []
  try {
    const answer = callback.receive('state')
    const port = Number(new URL(callback.redirectUrl).port)
    for (let count = 0; count < 100; count++) {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      silent.push(socket)
      await once(socket, 'connect')
      socket.write('GET / HT')
    }
    const page = await fetch(`${callback.redirectUrl}?state=state&code=good`)
    expect(page.status).toBe(200)
    expect(await answer).toEqual({ kind: 'code', code: 'good' })
  } finally {
    for (const socket of silent) socket.destroy()
    await callback.close()
  }
})
