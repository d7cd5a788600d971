// `convoke auth status` says what is true, after everything that can happen to a sign-in.
import { symlinkSync } from 'node:fs'
import { readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { verifies } from '@convoke/testkit'
import { afterEach, beforeEach, expect } from 'vitest'
import { startKeyring } from '../../host/test/keyring-support.ts'
import { EXIT } from '../src/index.ts'
import { faultsOf } from './answer-schemas.ts'
import { scripted } from './servers.ts'
import { PAGE, SignInScene } from './sign-in-support.ts'

let scene: SignInScene
beforeEach(async () => {
  scene = await SignInScene.make()
})
afterEach(async () => {
  await scene.home.whenQuiet()
  await scene[Symbol.asyncDispose]()
})

type Row = Readonly<Record<string, unknown>>

/** What the status says of the server, in JSON and in text. */
async function status(
  env: Readonly<Record<string, string>> = {},
  ...words: string[]
): Promise<{ row: Row; text: string }> {
  const line = ['auth', 'status', ...words]
  const json = await scene.home.run([...line, '--json'], { env })
  expect([json.code, await faultsOf('auth-status', json.stdout)]).toEqual([EXIT.ok, []])
  const { servers } = JSON.parse(json.stdout) as { servers: Row[] }
  const { code, stdout } = await scene.home.run(line, { env })
  expect(code).toBe(EXIT.ok)
  return { row: servers.find(({ server }) => server === 'mail') ?? {}, text: stdout }
}

const call = async (tool: string): Promise<number | null> => (await scene.home.run(['call', `mail/${tool}`])).code

verifies('auth.207', async () => {
  const never = await status()
  expect(never.row).toEqual({
    server: 'mail',
    state: 'unknown',
    because: 'nobody is signed in',
    nextStep: 'convoke login mail',
  })
  expect(never.text).toMatch(
    /^mail +not signed in +\n {2}nobody is signed in; --probe asks whether it wants that\n {2}→ convoke login mail$/m,
  )
  await scene.login(['--scopes', 'openid,mcp'])
  const good = await status()
  expect(good.row).toEqual({
    ...{ server: 'mail', state: 'signed-in', issuer: scene.authorization.issuer, clientId: expect.any(String) },
    ...{ subject: { id: 'ada' }, scopes: ['mcp'], store: 'file', isRenewable: true },
    ...{ expiresAtMs: expect.any(Number), signedInAtMs: expect.any(Number) },
  })
  expect(Number(good.row['expiresAtMs']) - Number(good.row['signedInAtMs'])).toBeGreaterThan(200_000)
  expect(good.text).toMatch(
    /^SERVER +STATE +SIGNED IN AS +EXPIRES +RENEWED +STORE\nmail +signed in +ada +in 4 min, renewed by itself +never +file$/m,
  )
  // Over, and nobody has needed it since.
  await scene.authorization.set({ accessTokenSeconds: 1 })
  await scene.login()
  await expect
    .poll(async () => (await status()).text, { timeout: 60_000 })
    .toMatch(/mail +signed in +(?:ada +)?(?:\d+ s ago|just now), renewed at the next use +never +file$/m)
  // The next use renews it.
  await scene.authorization.set({ accessTokenSeconds: 300 })
  expect(await call('echo')).toBe(EXIT.ok)
  const renewed = await status()
  expect(renewed.row).toMatchObject({ state: 'signed-in', refreshedAtMs: expect.any(Number) })
  expect(renewed.text).toMatch(/in 4 min, renewed by itself +(?:\d+ s ago|just now) +file$/m)
  // A scope that is missing.
  await scene.login(['--scopes', 'mcp'])
  expect(await call('write')).toBe(EXIT.needsPerson)
  const lacking = await status()
  expect(lacking.row).toMatchObject({ state: 'signed-in', wantedScopes: ['mcp:write'], nextStep: 'convoke login mail' })
  expect(lacking.text).toContain('  the next sign-in will also ask for mcp:write\n  → convoke login mail\n')
  await scene.login()
  expect((await status()).row).toMatchObject({ scopes: ['mcp', 'mcp:write'] })
  expect((await status()).row).not.toHaveProperty('wantedScopes')
  // Another process has signed out.
  await scene.home.run(['logout', 'mail'])
  expect((await status()).row).toMatchObject({ state: 'unknown', nextStep: 'convoke login mail' })
  // A token without a refresh token.
  await scene.authorization.set({ refreshTokens: 'never' })
  await scene.login()
  const once = await status()
  expect(once.row).toMatchObject({ state: 'signed-in', isRenewable: false })
  expect(once.text).toMatch(/mail +signed in +in 4 min +never +file$/m)
  await scene.authorization.set({ accessTokenSeconds: 1 })
  await scene.login()
  await expect
    .poll(async () => (await status()).row, { timeout: 60_000 })
    .toMatchObject({
      state: 'ended',
      because: 'it is over, and cannot be renewed without a person',
      nextStep: 'convoke login mail',
    })
})

verifies('auth.208', async () => {
  const { authorization, home } = scene
  // Refused, with a token that would be good for minutes: the person has taken the access back, in the settings of the service.
  await scene.login()
  await authorization.revokeGrant('ada')
  expect(await call('echo')).toBe(EXIT.needsPerson)
  const refused = await status()
  expect(refused.row).toMatchObject({
    state: 'ended',
    because: 'the authorization server has ended it',
    isRenewable: false,
  })
  expect(refused.text).toMatch(
    /^mail +ended .*file\n {2}the authorization server has ended it\n {2}→ convoke login mail$/m,
  )
  // Refused, with one that was over.
  await authorization.set({ accessTokenSeconds: 1 })
  await scene.login()
  await setTimeout(1_100)
  await authorization.revokeGrant('ada')
  expect(await call('echo')).toBe(EXIT.needsPerson)
  expect((await status()).row).toMatchObject({ state: 'ended', because: 'the authorization server has ended it' })
  // Refused, with one that nobody can renew.
  await authorization.set({ accessTokenSeconds: 300, refreshTokens: 'never' })
  await scene.login()
  expect((await status()).row).toMatchObject({ state: 'signed-in', isRenewable: false })
  await authorization.revokeGrant('ada')
  expect(await call('echo')).toBe(EXIT.needsPerson)
  expect((await status()).row).toMatchObject({
    state: 'ended',
    because: 'the server does not accept it',
    nextStep: 'convoke login mail',
  })
  // A new sign-in is good again.
  await authorization.set({ accessTokenSeconds: 1, refreshTokens: 'always' })
  await scene.login()
  expect((await status()).row).toMatchObject({ state: 'signed-in' })
  // Cut off: killed between the answer and its saving.
  await authorization.set({ hold: 'after-token' })
  const renewing = home.start(['call', 'mail/echo'])
  await authorization.whenStats(({ waiting }) => waiting > 0)
  renewing.child.kill('SIGKILL')
  await renewing.ended
  await authorization.set({ hold: 'nothing' })
  // What there is can be used to its end, which is near.
  await expect
    .poll(async () => (await status()).row, { timeout: 60_000 })
    .toMatchObject({
      state: 'ended',
      because: 'a renewal was cut off, so that it may be used up',
      nextStep: 'convoke login mail',
    })
  expect(await call('echo')).toBe(EXIT.needsPerson)
  expect((await authorization.stats()).tokenRequests.filter(({ replay }) => replay)).toEqual([])
  await authorization.set({ accessTokenSeconds: 300 })
  await scene.login()
  // Another mode looks elsewhere.
  const elsewhere = await status({ CONVOKE_CREDENTIALS_STORE: 'keyring' })
  expect(elsewhere.row).toMatchObject({
    state: 'ended',
    store: 'file',
    because: 'it is kept in the file, and this program uses the keyring',
  })
  expect(elsewhere.text).toContain('  → convoke login mail, or CONVOKE_CREDENTIALS_STORE=file\n')
  expect((await status()).row).toMatchObject({ state: 'signed-in' })
  // Damaged.
  const record = await scene.keptIn('records')
  await writeFile(record, 'garbage')
  expect((await status()).row).toMatchObject({ state: 'unreadable', store: 'file', nextStep: 'convoke login mail' })
  expect(await call('echo')).not.toBe(EXIT.ok)
  expect((await scene.login()).code).toBe(EXIT.ok)
  expect((await status()).row).toMatchObject({ state: 'signed-in' })
  // A link, which somebody else may have put there.
  const kept = `${await scene.keptIn('records')}`
  await rename(kept, join(home.folder, 'away'))
  symlinkSync(join(home.folder, 'away'), kept)
  const linked = await status()
  expect(linked.row).toMatchObject({ state: 'unreadable', because: expect.stringContaining('link') })
  await rm(kept)
  // Gone, without anybody having signed out.
  expect((await status()).row).toMatchObject({
    state: 'ended',
    because: 'the file does not hold it any more',
    nextStep: 'convoke login mail',
  })
  expect((await scene.login()).code).toBe(EXIT.ok)
  // The note of where it is kept is damaged.
  await writeFile(await scene.keptIn('index'), '{}')
  expect((await status()).row).toMatchObject({ state: 'unreadable', nextStep: 'convoke login mail' })
  expect((await scene.login()).code).toBe(EXIT.ok)
  expect((await status()).row).toMatchObject({ state: 'signed-in' })
})

verifies(
  'auth.216',
  async () => {
    await using keyring = await startKeyring()
    const env = withoutPaths(keyring.platform.env)
    const login = await scene.login([], { env })
    expect([login.code, login.stderr]).toEqual([
      EXIT.ok,
      expect.stringContaining('Kept in the keyring of this system: the keyring of this system works.'),
    ])
    expect((await status(env)).row).toMatchObject({ state: 'signed-in', store: 'keyring' })
    expect((await readdir(scene.signIns)).sort()).not.toContain('records')
    expect((await scene.home.run(['call', 'mail/whoami'], { env })).stdout).toContain('"ada"')
    const probed = await scene.home.run(['auth', 'status', '--probe'], { env })
    expect(probed.stdout).toMatch(
      /^New sign-ins go to the keyring of this system: the keyring of this system works\.\n/,
    )
    // It does not answer any more, and nothing is lost.
    process.kill(keyring.pid, 'SIGSTOP')
    const silent = await scene.home.run(['auth', 'status', '--json'], { env })
    expect(JSON.parse(silent.stdout)).toMatchObject({
      servers: [
        {
          ...{
            state: 'unreadable',
            store: 'keyring',
            because: expect.stringMatching(/did not answer|Did not receive a reply/),
          },
          nextStep: 'unlock the keyring, or convoke login --store file mail',
        },
      ],
    })
    const only = await scene.home.json(['auth', 'status', '--probe'], {
      env: { ...env, CONVOKE_CREDENTIALS_STORE: 'keyring' },
    })
    expect(only.answer).toMatchObject({ store: { mode: 'keyring', because: expect.stringMatching(/keyring/) } })
    const page = await scene.home.run(['login', 'mail', '--store', 'keyring', '--no-browser'], { env })
    expect([page.code, page.stderr]).toEqual([EXIT.failed, expect.stringContaining('The keyring cannot be used')])
    expect(page.stderr).not.toMatch(PAGE)
    process.kill(keyring.pid, 'SIGCONT')
    expect((await status(env)).row).toMatchObject({ state: 'signed-in', store: 'keyring' })
    // In the file although the keyring works.
    expect((await scene.login(['--store', 'file'], { env })).stderr).toContain(
      'Kept in an encrypted file: the file was chosen.',
    )
    expect((await status(env)).row).toMatchObject({ state: 'signed-in', store: 'file' })
    expect((await scene.login(['--store', 'keyring'], { env })).code).toBe(EXIT.ok)
    expect(await readdir(join(scene.signIns, 'records'))).not.toContainEqual(expect.stringMatching(/\.json$/))
    expect((await scene.home.json(['logout', 'mail'], { env })).answer).toMatchObject({
      wasSignedIn: true,
      revocation: 'done',
    })
    expect((await status(env)).row).toMatchObject({ state: 'unknown' })
  },
  240_000,
)

/** The home of the command stays its own. */
function withoutPaths(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const { DBUS_SESSION_BUS_ADDRESS = '', XDG_RUNTIME_DIR = '' } = env
  return { DBUS_SESSION_BUS_ADDRESS, XDG_RUNTIME_DIR }
}

verifies('auth.209', async () => {
  const names = ['my mail', "it's", '-rf', '$(touch x)', 'a/b', '~']
  await scene.home.configure(Object.fromEntries(names.map((name) => [name, { url: scene.server.url }])))
  const { answer } = await scene.home.json(['auth', 'status'])
  const { servers } = answer as { servers: { server: string; nextStep: string }[] }
  expect(servers.map(({ server }) => server)).toEqual(names)
  for (const { server, nextStep } of servers) {
    const said = await scene.home.startProgram('sh', ['-c', `convoke() { printf '%s\\n' "$@"; }\n${nextStep}`]).ended
    const words = said.stdout.split('\n').filter((word) => word !== '' && word !== '--')
    expect([nextStep, words]).toEqual([nextStep, ['login', server]])
  }
  const odd = await scene.home.run(['logout', '--', '-rf'])
  expect([odd.code, odd.stdout]).toEqual([EXIT.ok, 'Nobody was signed in to -rf\n'])
})

verifies('auth.210', async () => {
  const { home, server, authorization } = scene
  await home.configure({
    mail: { url: server.url },
    open: { url: authorization.url },
    files: scripted(),
    bearer: { url: server.url, bearerTokenEnvVar: 'TOKEN' },
    off: { url: server.url, disabled: true },
  })
  const quiet = await home.run(['auth', 'status'])
  expect(quiet.stdout).toMatch(/^New sign-ins go to the keyring of this system if it works, else an encrypted file\.\n/)
  expect(quiet.stdout).toContain(
    '\nNo sign-in: files (it is a program on this machine), bearer (its entry names a variable with a bearer token), off (it is switched off)\n',
  )
  expect(quiet.stdout).not.toMatch(/^(?:files|bearer|off) /m)
  const { withoutToken, discoveries } = await server.stats()
  expect([withoutToken, discoveries]).toEqual([0, 0])
  const probed = await home.run(['auth', 'status', '--probe'])
  expect(probed.stdout).toMatch(/^New sign-ins go to an encrypted file: the keyring cannot be used: /)
  expect(probed.stdout).toMatch(/^mail +not signed in +\n {2}the server wants a sign-in\n {2}→ convoke login mail$/m)
  expect((await server.stats()).discoveries).toBeGreaterThan(0)
  const all = await home.run(['auth', 'status', '--all'])
  expect(all.stdout).toMatch(/^files +none +\n {2}it is a program on this machine$/m)
  const one = await home.json(['auth', 'status', '--server', 'files'])
  expect(one.answer).toMatchObject({ servers: [{ server: 'files', state: 'none' }] })
  const unknown = await home.run(['auth', 'status', '--server', 'fils'])
  expect([unknown.code, unknown.stderr]).toEqual([EXIT.usage, expect.stringContaining('Did you mean "files"')])
  await home.configure('{}')
  expect((await home.run(['auth', 'status'])).stderr).toContain('No server is configured')
})
