// `convoke serve` while somebody signs in and out with another program.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type SignInNews, signInNews } from '../src/follow-sign-ins.ts'
import { EXIT } from '../src/index.ts'
import { faultsOf } from './answer-schemas.ts'
import type { Running } from './command.ts'
import { openSession, type Session } from './mcp-client.ts'
import { scripted } from './servers.ts'
import { SignInScene } from './sign-in-support.ts'

let scene: SignInScene
const running: Running[] = []
beforeEach(async () => {
  scene = await SignInScene.make()
})
afterEach(async () => {
  for (const { child, ended } of running.splice(0)) {
    child.kill('SIGTERM')
    await ended
  }
  await scene.home.whenQuiet()
  await scene[Symbol.asyncDispose]()
})

async function serve(...words: string[]): Promise<Running & { session: Session }> {
  const TMPDIR = join(scene.home.folder, 'tmp')
  await mkdir(TMPDIR, { recursive: true })
  const started = scene.home.start(['serve', '--http', '127.0.0.1:0', ...words], {
    env: { TMPDIR },
    timeoutMs: 110_000,
  })
  running.push(started)
  const [url] = await started.seen(/http:\/\/[\d.]+:\d+\/mcp/)
  return { ...started, session: await openSession(url) }
}

async function ask(session: Session, method: string, params: object = {}): Promise<Record<string, unknown>> {
  const { message } = await session.request(method, params)
  return { ...message?.result, ...message?.error }
}
const toolsOf = async (session: Session): Promise<string[]> =>
  ((await ask(session, 'tools/list'))['tools'] as { name: string }[]).map(({ name }) => name)
const whoami = async (session: Session): Promise<string> =>
  JSON.stringify(await ask(session, 'tools/call', { name: 'mail__whoami', arguments: {} }))

verifies('auth.213', async () => {
  await scene.home.configure({ mail: { url: scene.server.url }, kept: scripted() })
  const { session, seen } = await serve()
  await seen(/mail is needs-auth: .*Run: convoke login mail/)
  await expect.poll(() => toolsOf(session), { timeout: 30_000 }).toContain('kept__echo')
  expect(await toolsOf(session)).not.toContain('mail__echo')
  const pid = await pidOfKept(session)
  expect((await scene.login()).code).toBe(EXIT.ok)
  await seen(/^Signed in to mail\n/m)
  await expect.poll(() => toolsOf(session), { timeout: 30_000 }).toContain('mail__echo')
  expect(await whoami(session)).toContain('ada')
  // Somebody else: the connection is another one.
  expect((await scene.login(['--scopes', 'mcp openid'], { person: { account: 'grace' } })).code).toBe(EXIT.ok)
  await seen(/^Signed in to mail as grace\n/m)
  await expect.poll(() => whoami(session), { timeout: 30_000 }).toContain('grace')
  expect((await scene.home.run(['logout', 'mail'])).code).toBe(EXIT.ok)
  await seen(/^Signed out of mail\n/m)
  await expect.poll(() => toolsOf(session), { timeout: 30_000 }).not.toContain('mail__echo')
  expect(await pidOfKept(session)).toBe(pid)
})

const pidOfKept = async (session: Session): Promise<string | undefined> =>
  /\\"pid\\":(\d+)/.exec(JSON.stringify(await ask(session, 'tools/call', { name: 'kept__seen', arguments: {} })))?.[1]

test('tells of a sign-in to a server that came with a changed configuration, in JSON', async () => {
  const { home, server } = scene
  await home.configure({ kept: scripted() })
  const { session, child, ended, seen } = await serve('--json')
  await seen(/"ready"/)
  await home.configure({ kept: scripted(), mail: { url: server.url } })
  await seen(/"event":"configured"/)
  expect((await scene.login(['--scopes', 'mcp openid'])).code).toBe(EXIT.ok)
  await seen(/"event":"sign-in".*"signed-in"/)
  await expect.poll(() => toolsOf(session), { timeout: 30_000 }).toContain('mail__echo')
  // Ended by the person, elsewhere.
  await scene.authorization.revokeGrant('ada')
  await ask(session, 'tools/call', { name: 'mail__echo', arguments: {} })
  await seen(/"event":"sign-in".*"ended"/)
  child.kill('SIGTERM')
  const lines = (await ended).stdout.trim().split('\n')
  for (const line of lines) expect([line, await faultsOf('serve', line)]).toEqual([line, []])
  expect(lines.map((line) => JSON.parse(line) as SignInNews).filter(({ change }) => change !== undefined)).toEqual([
    { version: 1, event: 'sign-in', server: 'mail', change: 'signed-in', subject: { id: 'ada' } },
    { version: 1, event: 'sign-in', server: 'mail', change: 'ended', because: expect.any(String) },
  ])
})

test('compares two looks at the sign-ins', () => {
  const status = (signedInAtMs?: number) =>
    ({ server: 'a', state: 'signed-in', ...(signedInAtMs === undefined ? {} : { signedInAtMs }) }) as const
  const at = (atMs: number, ...statuses: ReturnType<typeof status>[]) => ({ atMs, statuses })
  const rows = [
    ['nothing new', at(10, status(5)), at(20, status(5)), []],
    ['signed in', at(10, status()), at(20, status(15)), ['signed-in']],
    ['signed in anew', at(10, status(5)), at(20, status(15)), ['signed-in']],
    ['signed out', at(10, status(5)), at(20, status()), ['signed-out']],
    ['a new server with an older sign-in', at(10), at(20, status(5)), []],
    ['a new server with a newer sign-in', at(10), at(20, status(15)), ['signed-in']],
    ['a new server without', at(10), at(20, status()), []],
    ['a server that is gone', at(10, status(5)), at(20), []],
  ] as const
  for (const [name, before, after, changes] of rows)
    expect([name, signInNews(before, after).map(({ change }) => change)]).toEqual([name, changes])
})
