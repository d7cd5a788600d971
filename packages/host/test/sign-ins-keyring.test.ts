// Where a sign-in is kept: in a real keyring, or not, and never in two places one after the other.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHost, defineServer, type Host, type StoreMode } from '@convoke/host'
import {
  type AuthorizationServer,
  type ProtectedServer,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  verifies,
} from '@convoke/testkit'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { nodePlatform, type Platform } from '../src/protocol/index.ts'
import { startKeyring } from './keyring-support.ts'

const HOUR_MS = 3_600_000
let authorization: AuthorizationServer
let server: ProtectedServer
let folder: string

beforeAll(async () => {
  authorization = await startAuthorizationServer({ knobs: { accessTokenSeconds: 3_600 } })
  server = await startProtectedServer({ issuer: authorization.issuer })
})
afterAll(async () => {
  await server.close()
  await authorization.close()
})
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'convoke-sign-ins-'))
  return () => rm(folder, { recursive: true, force: true })
})

interface Clock {
  offsetMs: number
}

function hostOn({ env }: Pick<Platform, 'env'>, store: StoreMode, clock: Clock = { offsetMs: 0 }): Promise<Host> {
  const transport = { kind: 'http', url: server.url, headers: {}, envHeaders: {} } as const
  return createHost({
    definitions: [defineServer({ name: 'guarded', transport })],
    // Other tests run beside this one: how long a keyring may take is shown elsewhere.
    signIns: { store, directory: join(folder, 'sign-ins'), keyringProbeMs: 30_000 },
    platform: { ...nodePlatform, env, dateMs: () => Date.now() + clock.offsetMs },
    start: [],
  })
}

async function signIn(host: Host): Promise<string> {
  const person = signInPerson()
  const { store } = await host.signIn('guarded', {
    async openPage(url) {
      await person.signIn(url)
    },
  })
  return `${store.kind}: ${store.because}`
}

async function call(host: Host): Promise<string> {
  const outcome = await host.callTool({ server: 'guarded', tool: 'whoami', wait: 'ready' })
  return 'error' in outcome ? outcome.error.code : outcome.kind
}

const files = async (part: string): Promise<readonly string[]> =>
  (await readdir(join(folder, 'sign-ins', part)).catch(() => [])).filter((name) => name.endsWith('.json'))

verifies('auth.163', async () => {
  await using keyring = await startKeyring()
  const clock: Clock = { offsetMs: 0 }
  await using host = await hostOn(keyring.platform, 'auto', clock)
  expect(await signIn(host)).toBe('keyring: the keyring of this system works')
  expect(await call(host)).toBe('ok')
  expect(await host.signInStatuses()).toMatchObject([{ state: 'signed-in', store: 'keyring' }])
  expect(await files('records')).toEqual([])
  expect((await files('index')).length).toBe(1)
  // Another program finds it, renews it, and keeps it where it was.
  clock.offsetMs += HOUR_MS
  await using other = await hostOn(keyring.platform, 'auto', clock)
  expect(await call(other)).toBe('ok')
  expect(await other.signInStatuses()).toMatchObject([{ store: 'keyring', refreshedAtMs: expect.any(Number) }])
  expect(await files('records')).toEqual([])
  expect(await other.signOut('guarded')).toMatchObject({ wasSignedIn: true, revocation: 'done' })
  expect(await other.signInStatuses()).toMatchObject([{ state: 'unknown' }])
})

verifies('auth.164', async () => {
  await using keyring = await startKeyring()
  const clock: Clock = { offsetMs: 0 }
  await using host = await hostOn(keyring.platform, 'auto', clock)
  await signIn(host)
  expect(await call(host)).toBe('ok')
  // The keyring is gone. What is in memory goes on; then nobody looks for another copy, and nobody calls it a sign-out.
  const away = { env: { ...keyring.platform.env, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' } }
  process.kill(keyring.pid, 'SIGSTOP')
  expect(await call(host)).toBe('ok')
  await using other = await hostOn(away, 'auto', clock)
  expect(await call(other)).toBe('CREDENTIALS_UNAVAILABLE')
  expect(other.statuses[0]).toMatchObject({ state: 'failed', reason: { code: 'CREDENTIALS_UNAVAILABLE' } })
  expect(await other.signInStatuses()).toMatchObject([{ state: 'unreadable', store: 'keyring' }])
  await expect(other.signOut('guarded')).rejects.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE' })
  expect((await files('index')).length).toBe(1)
  expect(await files('records')).toEqual([])
  process.kill(keyring.pid, 'SIGCONT')
  await using again = await hostOn(keyring.platform, 'auto', clock)
  expect(await call(again)).toBe('ok')
})

verifies('auth.165', async () => {
  const nowhere = { env: { ...process.env, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' } }
  const opened: string[] = []
  await using strict = await hostOn(nowhere, 'keyring')
  const refused = strict.signIn('guarded', { openPage: (url) => void opened.push(url) })
  await expect(refused).rejects.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE' })
  expect(opened).toEqual([])
  await using host = await hostOn(nowhere, 'auto')
  expect(await signIn(host)).toMatch(/^file: the keyring cannot be used: /)
  expect(await call(host)).toBe('ok')
  expect((await files('records')).length).toBe(1)
  // A keyring that works now does not take over what is kept in the file.
  await using keyring = await startKeyring()
  await using other = await hostOn(keyring.platform, 'auto')
  expect(await call(other)).toBe('ok')
  expect(await other.signInStatuses()).toMatchObject([{ state: 'signed-in', store: 'file' }])
  // Who only looks into the keyring is told where it is.
  await using elsewhere = await hostOn(keyring.platform, 'keyring')
  expect(await elsewhere.signInStatuses()).toMatchObject([{ state: 'ended', because: expect.stringContaining('file') }])
})
