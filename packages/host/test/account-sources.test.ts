// The accounts that a program brings itself: a token, a variable, callbacks.
import { callbackAccount, environmentAccount, openSignInAccount, tokenAccount } from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { AccountAuth } from '../src/auth/index.ts'
import { hostedAt, toldBy } from './account-support.ts'
import { eventOf, hostOf, statusOf } from './support.ts'

const ORIGINS = ['https://hub.example']

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
