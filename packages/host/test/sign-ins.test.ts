// Sign-ins of a host, at a real authorization server and a real protected MCP server in processes of their own. The host's clock can be moved.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createHost,
  defineServer,
  type Host,
  type HostEvent,
  type HostOptions,
  type SignInOptions,
} from '@convoke/host'
import {
  type AuthorizationServer,
  type AuthorizationServerStats,
  Canaries,
  digestOf,
  type ProtectedServer,
  type ProtectedServerKnobs,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  verifies,
} from '@convoke/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { nodePlatform } from '../src/protocol/index.ts'

const HOUR_MS = 3_600_000
let authorization: AuthorizationServer
let folder: string

beforeAll(async () => {
  authorization = await startAuthorizationServer({ knobs: { accessTokenSeconds: 3_600 } })
})
afterAll(() => authorization.close())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'convoke-sign-ins-'))
  return () => rm(folder, { recursive: true, force: true })
})

interface World extends AsyncDisposable {
  readonly server: ProtectedServer
  readonly events: HostEvent[]
  /** Moves the clock of every host of this world. */
  advance(ms: number): void
  /** A host of its own; all share the stored sign-ins. */
  host(over?: Partial<HostOptions>): Promise<Host>
}

async function world(knobs: ProtectedServerKnobs = {}, issuer = authorization.issuer): Promise<World> {
  const server = await startProtectedServer({ issuer, knobs })
  const hosts: Host[] = []
  const events: HostEvent[] = []
  let offsetMs = 0
  const platform = { ...nodePlatform, dateMs: () => Date.now() + offsetMs }
  const transport = { kind: 'http', url: server.url, headers: {}, envHeaders: {} } as const
  return {
    server,
    events,
    advance(ms) {
      offsetMs += ms
    },
    async host(over = {}) {
      const host = await createHost({
        definitions: [defineServer({ name: 'guarded', transport })],
        signIns: { store: 'file', directory: join(folder, 'sign-ins') },
        platform,
        start: [],
        onEvent: (event) => events.push(event),
        ...over,
      })
      hosts.push(host)
      return host
    },
    async [Symbol.asyncDispose]() {
      for (const host of hosts) await host.close()
      await server.close()
    },
  }
}

/** The names of the files that values are kept in. */
async function kept(part: 'records' | 'index'): Promise<readonly string[]> {
  return (await readdir(join(folder, 'sign-ins', part))).filter((name) => name.endsWith('.json'))
}

/** A person who agrees, in front of a browser that works. */
function willing(account: 'ada' | 'grace' = 'ada'): Pick<SignInOptions, 'openPage'> {
  const person = signInPerson({ account })
  return {
    async openPage(url) {
      await person.signIn(url)
    },
  }
}

async function call(host: Host, tool = 'whoami'): Promise<string> {
  const outcome = await host.callTool({ server: 'guarded', tool, wait: 'ready' })
  if ('error' in outcome) return outcome.error.code
  const [content] = (outcome.result['content'] ?? []) as { text?: string }[]
  return content?.text ?? outcome.kind
}

const accountOf = async (host: Host): Promise<string> => {
  const said = await call(host)
  return said.startsWith('{') ? String((JSON.parse(said) as { account: string }).account) : said
}

/** What the authorization server was asked for since `before`. */
async function refreshesSince(before: AuthorizationServerStats): Promise<AuthorizationServerStats['tokenRequests']> {
  const { tokenRequests } = await authorization.stats()
  return tokenRequests.slice(before.tokenRequests.length).filter(({ grantType }) => grantType === 'refresh_token')
}

verifies(['auth.150', 'auth.151'], async () => {
  await using here = await world()
  const host = await here.host()
  await host.whenSettled({ servers: ['guarded'] })
  expect(host.statuses[0]).toMatchObject({ state: 'needs-auth', reason: { code: 'AUTH_REQUIRED' } })
  expect(host.statuses[0]?.reason?.message).toContain('convoke login guarded')
  expect(await host.signInStatuses()).toMatchObject([{ state: 'unknown' }])
  expect(await host.signInStatuses({ probe: true })).toMatchObject([{ state: 'signed-out' }])

  const signedIn = await host.signIn('guarded', willing())
  expect(signedIn).toMatchObject({ server: 'guarded', issuer: authorization.issuer, store: { kind: 'file' } })
  expect(await accountOf(host)).toBe('ada')
  expect(await host.signInStatuses()).toMatchObject([
    {
      state: 'signed-in',
      issuer: authorization.issuer,
      store: 'file',
      isRenewable: true,
      expiresAtMs: expect.any(Number),
    },
  ])
  // Another program, later: it knows the sign-in, and nobody is asked.
  const before = await authorization.stats()
  const other = await here.host()
  expect(await accountOf(other)).toBe('ada')
  expect((await authorization.stats()).tokenRequests.length).toBe(before.tokenRequests.length)

  expect(await host.signOut('guarded')).toEqual({ server: 'guarded', wasSignedIn: true, revocation: 'done' })
  expect((await authorization.stats()).revocations).toBeGreaterThan(before.revocations)
  expect(await host.signOut('guarded')).toMatchObject({ wasSignedIn: false, revocation: 'nothing-to-revoke' })
  expect(await host.signInStatuses()).toMatchObject([{ state: 'unknown' }])
  await host.whenSettled({ servers: ['guarded'] })
  expect(host.statuses[0]?.state).toBe('needs-auth')
  expect(await kept('records')).toEqual([])
  expect(await kept('index')).toEqual([])
})

verifies('auth.152', async () => {
  await using here = await world()
  const host = await here.host()
  await host.signIn('guarded', willing())
  await host.whenSettled({ servers: ['guarded'] })
  here.advance(HOUR_MS)
  await authorization.set({ beforeTokenMs: 300 })
  const before = await authorization.stats()
  const { status401 } = await here.server.stats()
  const hosts = [host, await here.host(), await here.host()]
  const said = await Promise.all(hosts.flatMap((one) => [accountOf(one), accountOf(one), accountOf(one)]))
  await authorization.set({ beforeTokenMs: undefined })
  expect(new Set(said)).toEqual(new Set(['ada']))
  expect((await refreshesSince(before)).map(({ outcome, replay }) => [outcome, replay])).toEqual([['issued', false]])
  // No server was shown the token that had ended.
  expect((await here.server.stats()).status401).toBe(status401)
  expect(here.events.filter((event) => event.kind === 'sign-in.changed' && event.change === 'refreshed').length).toBe(3)
  expect(await host.signInStatuses()).toMatchObject([{ state: 'signed-in', refreshedAtMs: expect.any(Number) }])
})

verifies('auth.153', async () => {
  await using here = await world()
  const host = await here.host()
  await host.signIn('guarded', willing())
  await host.whenSettled({ servers: ['guarded'] })
  const first = JSON.parse(await call(host)) as { token: string }
  await here.server.set({ refuseTokens: [first.token] })
  const before = await authorization.stats()
  const said = await Promise.all([...Array(5)].map(() => accountOf(host)))
  expect(new Set(said)).toEqual(new Set(['ada']))
  expect((await refreshesSince(before)).length).toBe(1)
  // Refused whatever it shows: one more look at what others have, and then a person.
  await here.server.set({ answerAll: 401 })
  const later = await authorization.stats()
  expect(await call(host)).toMatch(/^AUTH_/)
  expect((await refreshesSince(later)).length).toBeLessThanOrEqual(1)
  expect(host.statuses[0]?.state).toBe('needs-auth')
  const { length } = await refreshesSince(later)
  await host.refresh()
  await call(host)
  expect((await refreshesSince(later)).length).toBeLessThanOrEqual(length + 1)
})

verifies('auth.154', async () => {
  await using here = await world()
  const host = await here.host()
  await host.signIn('guarded', willing('grace'))
  await authorization.revokeGrant('grace')
  here.advance(HOUR_MS)
  const before = await authorization.stats()
  const seen = await here.server.stats()
  const other = await here.host()
  expect(await call(other)).toMatch(/^AUTH_/)
  expect(other.statuses[0]).toMatchObject({ state: 'needs-auth' })
  expect((await refreshesSince(before)).map(({ error }) => error)).toEqual(['invalid_grant'])
  expect((await here.server.stats()).http['POST']).toBe(seen.http['POST'])
  // Neither now nor from another program: it is never sent again, and it is still there.
  for (const one of [other, await here.host()]) expect(await call(one)).toMatch(/^AUTH_/)
  expect((await refreshesSince(before)).length).toBe(1)
  expect((await kept('records')).length).toBe(1)
  expect(await other.signInStatuses()).toMatchObject([
    { state: 'ended', because: expect.stringContaining('authorization server has ended it') },
  ])
  await other.signIn('guarded', willing('grace'))
  expect(await accountOf(other)).toBe('grace')
})

verifies('auth.155', async () => {
  await using here = await world()
  const host = await here.host()
  await host.signIn('guarded', willing())
  await host.whenSettled({ servers: ['guarded'] })
  here.advance(HOUR_MS)
  const before = await authorization.stats()
  await authorization.set({ hold: 'before-token' })
  const leaving = new AbortController()
  const left = host.callTool({ server: 'guarded', tool: 'whoami', wait: 'ready', signal: leaving.signal })
  await authorization.whenStats(({ waiting }) => waiting === 1)
  leaving.abort()
  expect(await left).toMatchObject({ error: { code: 'CANCELLED' } })
  // A short limit of a call does not run while it waits for its credentials.
  const short = host.callTool({ server: 'guarded', tool: 'whoami', wait: 'ready', timeoutMs: 400 })
  await new Promise((resolve) => setTimeout(resolve, 600))
  await authorization.set({ hold: undefined })
  expect(await short).toMatchObject({ kind: 'ok' })
  expect((await refreshesSince(before)).map(({ outcome }) => outcome)).toEqual(['issued'])
})

verifies('auth.156', async () => {
  await using here = await world()
  const host = await here.host()
  await host.signIn('guarded', { ...willing(), scopes: ['mcp', 'offline_access'] })
  expect(await accountOf(host)).toBe('ada')
  expect(await call(host, 'write')).toBe('AUTH_REQUIRED')
  // One tool that may not be used takes nothing away from the others.
  expect(host.statuses[0]?.state).toBe('ready')
  expect(await accountOf(host)).toBe('ada')
  expect(await host.signInStatuses()).toMatchObject([{ state: 'signed-in', wantedScopes: ['mcp:write'] }])
  // Another program asks for what was missing, and for what there was.
  const other = await here.host()
  const { scopes } = await other.signIn('guarded', willing())
  expect(scopes).toEqual(expect.arrayContaining(['mcp', 'mcp:write']))
  expect(await call(other, 'write')).not.toMatch(/^AUTH_/)
  // The host that was there before goes on as the new sign-in, in a new connection.
  await expect.poll(() => call(host, 'write'), { timeout: 15_000 }).not.toMatch(/^AUTH_/)
})

verifies('auth.157', async () => {
  await using here = await world()
  const host = await here.host()
  const other = await here.host()
  await host.whenSettled({ servers: ['guarded'] })
  expect(host.statuses[0]?.state).toBe('needs-auth')
  await other.signIn('guarded', willing())
  // Somebody signed in with another program: whoever looks next finds it.
  await expect.poll(() => accountOf(host), { timeout: 15_000 }).toBe('ada')
  await other.signOut('guarded')
  await expect.poll(() => call(host), { timeout: 15_000 }).toMatch(/^AUTH_/)
  await other.signIn('guarded', willing('grace'))
  await expect.poll(() => accountOf(host), { timeout: 15_000 }).toBe('grace')
})

verifies('auth.158', async () => {
  await using elsewhere = await startAuthorizationServer()
  await using here = await world()
  const host = await here.host()
  await host.signIn('guarded', willing())
  await here.server.set({ authorizationServers: [elsewhere.issuer] })
  here.advance(HOUR_MS)
  const before = await authorization.stats()
  // Renewed where it was given, whatever the server names now; the server takes no tokens of there any more, and a person is asked.
  expect(await call(host)).toMatch(/^AUTH_/)
  expect((await refreshesSince(before)).every(({ outcome }) => outcome === 'issued')).toBe(true)
  expect((await elsewhere.stats()).tokenRequests).toEqual([])
  const records = await kept('records')
  expect(records.length).toBe(1)
  const signedIn = await host.signIn('guarded', willing())
  expect(signedIn.issuer).toBe(elsewhere.issuer)
  const { tokenRequests, registrations } = await elsewhere.stats()
  expect(registrations).toBe(1)
  expect(tokenRequests.map(({ grantType }) => grantType)).toEqual(['authorization_code'])
  // The record of the first is not read any more, and is gone.
  const now = await kept('records')
  expect([now.length, now[0] === records[0]]).toEqual([1, false])
  expect(await accountOf(host)).toBe('ada')
})

verifies('auth.159', async () => {
  await using here = await world({ dpop: 'required', dpopNonce: true })
  await authorization.set({ dpop: 'required' })
  try {
    const host = await here.host()
    await host.signIn('guarded', willing())
    expect(await accountOf(host)).toBe('ada')
    expect((await here.server.stats()).proofs).toBeGreaterThan(0)
    here.advance(HOUR_MS)
    // Another program has the key, too: it lies with the tokens.
    const other = await here.host()
    expect(await accountOf(other)).toBe('ada')
  } finally {
    await authorization.set({ dpop: undefined })
  }
})

verifies('auth.160', async () => {
  await using here = await world()
  const host = await here.host()
  const denying = signInPerson({ consent: 'deny' })
  const denied = host.signIn('guarded', {
    async openPage(url) {
      await denying.signIn(url)
    },
  })
  await expect(denied).rejects.toMatchObject({ code: 'SIGN_IN_FAILED', details: { kind: 'provider-refused' } })
  await expect(host.signIn('guarded', { timeoutMs: 1_000 })).rejects.toMatchObject({ code: 'SIGN_IN_TIMEOUT' })
  const leaving = new AbortController()
  const left = host.signIn('guarded', { signal: leaving.signal, onPage: () => leaving.abort() })
  await expect(left).rejects.toMatchObject({ code: 'CANCELLED' })
  await expect(host.signIn('nobody')).rejects.toMatchObject({ code: 'SERVER_UNKNOWN' })
  expect(await host.signInStatuses()).toMatchObject([{ state: 'unknown' }])
  // What was there before is still there after a try that failed.
  await host.signIn('guarded', willing())
  await expect(host.signIn('guarded', { timeoutMs: 1_000 })).rejects.toMatchObject({ code: 'SIGN_IN_TIMEOUT' })
  expect(await accountOf(host)).toBe('ada')
})

verifies('auth.161', async () => {
  await using here = await world()
  const host = await here.host()
  await host.signIn('guarded', willing())
  const records = join(folder, 'sign-ins/records')
  const [name = ''] = await kept('records')
  const whole = await readFile(join(records, name), 'utf8')
  await writeFile(join(records, name), whole.slice(0, -2))
  const other = await here.host()
  const failed = await call(other)
  expect(failed).toBe('CREDENTIALS_UNAVAILABLE')
  expect(other.statuses[0]?.state).toBe('failed')
  expect(await other.signInStatuses()).toMatchObject([{ state: 'unreadable' }])
  // Never taken for a sign-out: it is used again as soon as it can be read.
  await writeFile(join(records, name), whole)
  await expect.poll(() => accountOf(other), { timeout: 15_000 }).toBe('ada')
  const key = join(folder, 'sign-ins.key')
  const secret = await readFile(key)
  await writeFile(key, Buffer.alloc(32, 7))
  expect(await call(await here.host())).toBe('CREDENTIALS_UNAVAILABLE')
  await writeFile(key, secret)
  expect(await accountOf(await here.host())).toBe('ada')
})

verifies('auth.162', async () => {
  const canaries = new Canaries()
  await using here = await world()
  const host = await here.host()
  canaries.watch('events', { kind: 'later', content: () => JSON.stringify(here.events) })
  canaries.watch('files', { kind: 'path', path: folder })
  await host.signIn('guarded', willing())
  const tokens = await tokensOf(folder)
  for (const [what, token] of Object.entries(tokens)) canaries.add(what, token)
  expect(JSON.parse(await call(host))).toMatchObject({ token: digestOf(tokens['access'] ?? '') })
  const failures: unknown[] = []
  const failing = async (outcome: Promise<unknown>): Promise<void> => {
    failures.push(await outcome.catch((error: unknown) => error))
  }
  await failing(host.callTool({ server: 'guarded', tool: 'write', wait: 'ready' }))
  await here.server.set({ answerAll: 500 })
  await failing(host.callTool({ server: 'guarded', tool: 'whoami', wait: 'ready' }))
  await authorization.revokeGrant('ada')
  here.advance(HOUR_MS)
  await failing(host.callTool({ server: 'guarded', tool: 'whoami', wait: 'ready' }))
  await failing(host.signIn('guarded', { timeoutMs: 1_000 }))
  canaries.watch('failures', { kind: 'value', value: failures })
  canaries.watch('statuses', {
    kind: 'value',
    value: [host.statuses, await host.signInStatuses(), host.explain('guarded')],
  })
  canaries.assertNowhere()
})

/** What the sealed records hold, read the way the host reads them. */
async function tokensOf(place: string): Promise<Record<string, string>> {
  const { FileStore, openSealingKey, SealedStore } = await import('../src/store/index.ts')
  const key = await openSealingKey({ platform: nodePlatform, path: join(place, 'sign-ins.key') })
  const limits = { valueBytesMax: 1_000_000, totalBytesMax: 10_000_000, keysMax: 100, whenFull: 'refuse' } as const
  const directory = join(place, 'sign-ins/records')
  const inner = new FileStore({ platform: nodePlatform, directory, limits, durability: 'durable' })
  const store = new SealedStore({ inner, key, limits })
  const [name = ''] = await store.keys()
  const found = await store.get(name)
  if (found.kind !== 'found') throw new Error('there is a record')
  const { tokens } = JSON.parse(found.value) as { tokens: { accessToken: string; refreshToken: string } }
  return { access: tokens.accessToken, refresh: tokens.refreshToken }
}

verifies('auth.166', async () => {
  await using here = await world({ challengeScope: 'mcp' })
  const host = await here.host()
  // This program has not spoken with the server yet.
  const { scopes } = await host.signIn('guarded', willing())
  expect(scopes).toContain('mcp')
  expect(scopes).not.toContain('mcp:write')
  expect(await accountOf(host)).toBe('ada')
})

test('a server that wants no sign-in is not bothered with one', async () => {
  await using here = await world()
  const transport = {
    kind: 'http',
    url: here.server.url,
    headers: { Authorization: 'Bearer x' },
    envHeaders: {},
  } as const
  const host = await here.host({ definitions: [defineServer({ name: 'guarded', transport })] })
  expect(await host.signInStatuses()).toMatchObject([{ state: 'configured' }])
  await expect(host.signIn('guarded')).rejects.toMatchObject({ code: 'SIGN_IN_UNSUPPORTED' })
  expect(await call(host)).toBe('AUTH_REQUIRED')
  expect(host.statuses[0]?.reason?.message).toContain('configured credentials')
})
