// `convoke login` and `convoke logout`, as a process of their own each.
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { signInPerson, verifies } from '@convoke/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { EXIT } from '../src/index.ts'
import { faultsOf } from './answer-schemas.ts'
import { scripted, startsIn } from './servers.ts'
import { PAGE, SignInScene } from './sign-in-support.ts'

let scene: SignInScene
beforeEach(async () => {
  scene = await SignInScene.make()
})
afterEach(async () => {
  await scene.home.whenQuiet()
  await scene[Symbol.asyncDispose]()
})

const whoami = async (): Promise<unknown> => {
  const { code, stdout, stderr } = await scene.home.run(['call', 'mail/whoami'])
  return code === EXIT.ok ? JSON.parse(stdout) : stderr
}

verifies('auth.201', async () => {
  const BROWSER = await scene.browser()
  await scene.home.configure({ mail: { url: scene.server.url, scopes: ['openid', 'mcp'] } })
  const { code, stdout, stderr } = await scene.home.run(['login', 'mail'], { env: { BROWSER } })
  expect([code, stdout]).toEqual([EXIT.ok, 'Signed in to mail as ada (scopes: mcp)\n'])
  const [page = ''] = PAGE.exec(stderr) ?? []
  expect(stderr).toMatch(/^Sign in to mail at this address:\n {2}http/)
  expect(stderr).toMatch(
    /\nKept in an encrypted file: the keyring cannot be used: .+\.\nTry it: convoke tools --server mail\n$/,
  )
  const { args } = JSON.parse(await readFile(join(scene.home.folder, 'browser.json'), 'utf8')) as { args: string[] }
  expect(args).toEqual([page])
  expect(await whoami()).toMatchObject({ account: 'ada', scopes: ['mcp'] })
  const again = await scene.home.run(['login', 'mail', '--json'], { env: { BROWSER } })
  expect(await faultsOf('login', again.stdout)).toEqual([])
  expect(JSON.parse(again.stdout)).toMatchObject({ server: 'mail', subject: { id: 'ada' }, store: { kind: 'file' } })
  expect(again.stderr).toMatch(PAGE)
  // Nothing that could open it is no reason to give up.
  const alone = scene.home.start(['login', 'mail'], { env: { BROWSER: '/no/such/browser' } })
  await alone.seen(
    /No browser was opened \("\/no\/such\/browser" is not there\): open the address yourself\. .*--no-browser/,
  )
  const [shown] = await alone.seen(PAGE)
  expect(await signInPerson().signIn(shown)).toMatchObject({ status: 200 })
  expect((await alone.ended).code).toBe(EXIT.ok)
})

verifies('auth.202', async () => {
  const running = scene.home.startPiped(['login', 'mail', '--no-browser'])
  const [page] = await running.seen(PAGE)
  const callback = await signInPerson().visit(page)
  running.child.stdin?.write(`what?\n\nhttps://elsewhere.example/callback?code=x&state=y\n${page}\n`)
  await running.seen(/not taken: it is not the whole address that the browser ended at/)
  await running.seen(/not taken: it does not begin with http:\/\/127\.0\.0\.1:\d+\/callback\//)
  // The last line has no end of line, because the pipe ends.
  running.child.stdin?.end(callback)
  expect((await running.ended).code).toBe(EXIT.ok)
  expect(await whoami()).toMatchObject({ account: 'ada' })
  const onTerminal = scene.home.startOnTerminal(['login', 'mail'])
  const [typed] = await onTerminal.seen(PAGE)
  await onTerminal.seen(/No browser was opened \(there is no desktop here\)/)
  await onTerminal.seen(/paste the address that it ended at/)
  onTerminal.child.stdin?.write(`${await signInPerson({ account: 'grace' }).visit(typed)}\n`)
  expect((await onTerminal.ended).code).toBe(EXIT.ok)
  expect(await whoami()).toMatchObject({ account: 'grace' })
})

verifies('auth.203', async () => {
  const scopeOf = (text: string): string | null => new URL(PAGE.exec(text)?.[0] ?? '').searchParams.get('scope')
  const named = await scene.login(['--scopes', 'mcp:read, mcp'])
  expect([
    named.code,
    scopeOf(named.stderr)
      ?.split(' ')
      .filter((one) => one !== 'offline_access'),
  ]).toEqual([EXIT.ok, ['mcp:read', 'mcp']])
  const none = await scene.login(['--scopes', ''])
  expect([none.code, scopeOf(none.stderr)]).toEqual([EXIT.ok, null])
  // Only what a server lists is given up; what its challenge names is wanted.
  await scene.server.set({ challengeScope: '' })
  await scene.authorization.set({ refuseScopes: ['mcp:write'] })
  const running = scene.home.startPiped(['login', 'mail', '--no-browser'])
  const [first] = await running.seen(PAGE)
  running.child.stdin?.write(`${await signInPerson().visit(first)}\n`)
  await running.seen(/refused the scopes that were asked for; asking again without any/)
  const [second = ''] = await running.seen(new RegExp(`(?<=${PAGE.source}[\\s\\S]*)${PAGE.source}`))
  expect(new URL(second).searchParams.has('scope')).toBe(false)
  running.child.stdin?.write(`${await signInPerson().visit(second)}\n`)
  expect((await running.ended).code).toBe(EXIT.ok)
  const odd = await scene.home.run(['login', 'mail', '--scopes', 'a"b'])
  expect([odd.code, odd.stderr]).toEqual([EXIT.usage, expect.stringContaining('"a\\"b" cannot be a scope')])
})

verifies('auth.204', async () => {
  await scene.home.configure({
    mail: { url: scene.server.url },
    stdio: scripted(),
    bearer: { url: scene.server.url, bearerTokenEnvVar: 'TOKEN' },
    wrong: { url: 5 },
    gone: { url: 'http://127.0.0.1:9/mcp' },
  })
  expect((await scene.login([], { person: { account: 'grace' } })).code).toBe(EXIT.ok)
  const late = await scene.home.json(['login', 'mail', '--no-browser', '--timeout', '1000'])
  expect([late.code, late.answer]).toMatchObject([EXIT.needsPerson, { error: { code: 'SIGN_IN_TIMEOUT' } }])
  const denied = await scene.login([], { person: { consent: 'deny' } })
  expect([denied.code, denied.stderr]).toEqual([EXIT.failed, expect.stringContaining('access_denied')])
  const rows: [string, number, RegExp][] = [
    ['mial', EXIT.usage, /There is no server "mial"\. Did you mean "mail"/],
    ['stdio', EXIT.usage, /Nobody can sign in to server "stdio": it is a program/],
    ['bearer', EXIT.usage, /Nobody can sign in to server "bearer"/],
    ['wrong', EXIT.configuration, /"url" must be/],
    ['gone', EXIT.failed, /The sign-in to server "gone" failed/],
  ]
  for (const [name, exit, message] of rows) {
    const { code, stderr, stdout } = await scene.home.run(['login', name])
    expect([name, code, stdout]).toEqual([name, exit, ''])
    expect(stderr).toMatch(message)
  }
  const short = await scene.home.run(['login', 'mail', '--timeout', '10'])
  expect([short.code, short.stderr]).toEqual([EXIT.usage, expect.stringContaining('from 1000')])
  const cancelled = scene.home.startPiped(['login', 'mail', '--no-browser'])
  await cancelled.seen(PAGE)
  cancelled.child.kill('SIGINT')
  expect(await cancelled.ended).toMatchObject({ code: EXIT.cancelled, signal: null })
  // Whoever was signed in still is.
  expect(await whoami()).toMatchObject({ account: 'grace' })
})

verifies('auth.200', async () => {
  const { home } = scene
  for (const words of [
    ['login', 'mail', '--store', 'vault'],
    ['login', 'mail', '--store', 'memory'],
  ]) {
    const { code, stderr } = await home.run(words)
    expect([code, stderr]).toEqual([EXIT.usage, expect.stringMatching(/--store takes auto, keyring, file, not "/)])
  }
  const env = { CONVOKE_CREDENTIALS_STORE: 'fiel' }
  for (const words of [['tools'], ['auth', 'status'], ['serve', '--stdio'], ['login', 'mail']]) {
    const { code, stderr } = await home.run(words, { env })
    expect([words, code]).toEqual([words, EXIT.usage])
    expect(stderr).toContain('The variable CONVOKE_CREDENTIALS_STORE takes auto, keyring, file, not "fiel"')
  }
  const { stderr } = await scene.login([], { env: { CONVOKE_CREDENTIALS_STORE: 'file' } })
  expect(stderr).toContain('Kept in an encrypted file: the file was chosen.')
  const mode = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8)
  const key = join(home.folder, 'config/convoke-keys/sign-ins.key')
  expect([await mode(key), await mode(join(key, '..'))]).toEqual(['600', '700'])
  expect(await mode(await scene.keptIn('records'))).toBe('600')
  const folder = join(home.folder, 'elsewhere')
  expect((await scene.login(['--data-dir', folder])).code).toBe(EXIT.ok)
  expect(await mode(join(folder, 'keys/sign-ins.key'))).toBe('600')
  expect((await stat(join(folder, 'state/sign-ins/records'))).isDirectory()).toBe(true)
})

verifies('auth.205', async () => {
  const log = join(scene.home.folder, 'log')
  await scene.home.configure({
    mail: { url: scene.server.url },
    other: { ...scripted({ log }), required: true },
    eager: { ...scripted({ log }), startup: 'eager' },
  })
  expect((await scene.login()).code).toBe(EXIT.ok)
  for (const words of [
    ['auth', 'status'],
    ['auth', 'status', '--probe', '--all'],
    ['logout', 'mail'],
  ])
    expect([words, (await scene.home.run(words)).code]).toEqual([words, EXIT.ok])
  expect(await startsIn(log)).toBe(0)
  expect((await scene.server.stats()).rpc).toEqual({})
})

verifies('auth.206', async () => {
  const logout = async (): Promise<unknown> => {
    const { stdout, code } = await scene.home.run(['logout', 'mail', '--json'])
    expect(await faultsOf('logout', stdout)).toEqual([])
    return [code, JSON.parse(stdout)]
  }
  const answer = (wasSignedIn: boolean, revocation: string): unknown => [
    EXIT.ok,
    { version: 1, server: 'mail', wasSignedIn, revocation },
  ]
  expect(await logout()).toEqual(answer(false, 'nothing-to-revoke'))
  await scene.login()
  const { code, stdout, stderr } = await scene.home.run(['logout', 'mail'])
  expect([code, stdout]).toEqual([EXIT.ok, 'Signed out of mail\n'])
  expect(stderr).toContain('the authorization server has taken them back')
  expect((await scene.authorization.stats()).revocations).toBeGreaterThan(0)
  expect(await whoami()).toContain('Run: convoke login mail')
  const none = await scene.home.run(['logout', 'mail'])
  expect([none.code, none.stdout]).toEqual([EXIT.ok, 'Nobody was signed in to mail\n'])
  await scene.authorization.set({ metadata: { revocation_endpoint: null } })
  await scene.login()
  expect(await logout()).toEqual(answer(true, 'unsupported'))
  await scene.authorization.set({ metadata: undefined })
  await scene.login()
  await scene.authorization.close()
  expect(await logout()).toEqual(answer(true, 'failed'))
  const unknown = await scene.home.run(['logout', 'mial'])
  expect([unknown.code, unknown.stderr]).toEqual([EXIT.usage, expect.stringContaining('Did you mean "mail"')])
})

verifies('auth.212', async () => {
  const { home, server } = scene
  await home.configure({ 'my mail': { url: server.url } })
  const command = "Run: convoke login 'my mail'"
  const call = await home.json(['call', 'my mail/echo'])
  expect([call.code, call.stderr]).toEqual([EXIT.needsPerson, expect.stringContaining(command)])
  expect(call.answer).toMatchObject({ outcome: 'failed', error: { code: 'AUTH_REQUIRED' } })
  const tools = await home.run(['tools'])
  expect([tools.code, tools.stderr]).toEqual([EXIT.ok, expect.stringContaining(command)])
  expect((await home.run(['tools', '--strict'])).code).toBe(EXIT.notAvailable)
  expect((await home.run(['status'])).stdout).toMatch(/^my mail +needs-auth: .*Run: convoke login 'my mail'/)
  await home.configure({ mail: { url: server.url } })
  await scene.login(['--scopes', 'mcp'])
  expect((await home.run(['call', 'mail/echo'])).code).toBe(EXIT.ok)
  const lacking = await home.run(['call', 'mail/write'])
  expect(lacking.code).toBe(EXIT.needsPerson)
  expect(lacking.stderr).toContain('The sign-in lacks a scope: mcp:write. This asks for it besides: convoke login mail')
  expect((await scene.login()).stdout).toContain('mcp:write')
  expect((await home.run(['call', 'mail/write'])).stdout).toBe('written by ada\n')
})

test('leaves other sign-ins as they are when one of two servers of the same address is signed out', async () => {
  const { url } = scene.server
  await scene.home.configure({ mail: { url }, work: { url } })
  await scene.login([], { person: { account: 'ada' } })
  const running = scene.home.startPiped(['login', 'work', '--no-browser'])
  const [page] = await running.seen(PAGE)
  running.child.stdin?.write(`${await signInPerson({ account: 'grace' }).visit(page)}\n`)
  expect((await running.ended).code).toBe(EXIT.ok)
  expect((await scene.home.run(['call', 'work/whoami'])).stdout).toContain('grace')
  expect(await whoami()).toMatchObject({ account: 'ada' })
  await scene.home.run(['logout', 'work'])
  expect(await whoami()).toMatchObject({ account: 'ada' })
  expect((await scene.home.run(['call', 'work/whoami'])).code).toBe(EXIT.needsPerson)
})

test('asks for exactly what --scopes says, also after a call has lacked a scope', async () => {
  await scene.login(['--scopes', 'mcp'])
  expect((await scene.home.run(['call', 'mail/write'])).code).toBe(EXIT.needsPerson)
  const { stderr } = await scene.login(['--scopes', ''])
  expect(new URL(PAGE.exec(stderr)?.[0] ?? '').searchParams.get('scope')).toBe(null)
})
