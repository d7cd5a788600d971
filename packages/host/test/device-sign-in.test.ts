// A sign-in with a code that is entered on another device (RFC 8628): at a table of answers, and at a real authorization server.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AuthorizationServer, Canaries, signInPerson, startAuthorizationServer, verifies } from '@convoke/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { signInWithCode } from '../src/auth/oauth/device.ts'
import { readDeviceAnswer } from '../src/auth/oauth/device-answer.ts'
import { decidePoll, type PollReply } from '../src/auth/oauth/device-poll.ts'
import type { OAuthPort } from '../src/auth/oauth/port.ts'
import { planScopes } from '../src/auth/oauth/scopes.ts'
import { SignInError } from '../src/auth/oauth/sign-in-error.ts'
import { accountWorld, speaker, toldBy, type World, willing } from './account-support.ts'
import { failureOf, portError, realPort, type Scripted, TIMEOUT_MS, tablePort } from './oauth-support.ts'

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

const SERVER = 'https://hub.example/mcp'
const ISSUER = 'https://login.example'
const DEVICE = `${ISSUER}/device-code`
const TOKEN = `${ISSUER}/token`
const METADATA = {
  issuer: ISSUER,
  token_endpoint: TOKEN,
  device_authorization_endpoint: DEVICE,
  scopes_supported: ['openid', 'offline_access', 'other'],
}
const CODE = {
  device_code: 'device-secret',
  user_code: 'WDJB-MJHT',
  verification_uri: `${ISSUER}/device`,
  expires_in: 600,
}
const pending = { error: 'authorization_pending' }
const TOKENS = { access_token: 'the-token', token_type: 'Bearer', expires_in: 60, refresh_token: 'the-refresh' }

/** A port whose pauses take no time and are noted. The limits of one question and of the code stay as they are. */
function quick(port: OAuthPort): OAuthPort & { readonly pauses: readonly number[] } {
  const pauses: number[] = []
  return {
    ...port,
    pauses,
    setTimer(callback, ms) {
      if (ms === 30_000 || ms === 600_000) return port.setTimer(callback, ms)
      pauses.push(ms)
      return port.setTimer(callback, 0)
    },
  }
}

interface DeviceWorld {
  readonly port: ReturnType<typeof quick>
  readonly asked: ReturnType<typeof tablePort>['asked']
  signIn(over?: object): ReturnType<typeof signInWithCode>
}

/** An authorization server of answers: the first to the request for a code, the others to the questions for tokens, the last of them for ever. */
function deviceWorld(
  replies: readonly (Scripted | { readonly status: number; readonly body: object })[],
  { code = CODE, metadata = {} }: { readonly code?: Scripted; readonly metadata?: object } = {},
): DeviceWorld {
  let at = 0
  const inner = tablePort({
    [`https://hub.example/.well-known/oauth-protected-resource/mcp`]: {
      resource: SERVER,
      authorization_servers: [ISSUER],
    },
    [`${ISSUER}/.well-known/oauth-authorization-server`]: { ...METADATA, ...metadata },
    [DEVICE]: code,
    [TOKEN]: 500,
  })
  const port = quick({
    ...inner,
    async fetch(url, request) {
      const answer = await inner.fetch(url, request)
      if (url !== TOKEN) return answer
      const reply = replies[Math.min(at++, replies.length - 1)]
      if (reply instanceof Error) throw reply
      if (typeof reply === 'number') return { ...answer, status: reply, body: Buffer.from('') }
      const isError = typeof reply === 'object' && 'error' in reply
      return { ...answer, status: isError ? 400 : 200, body: Buffer.from(JSON.stringify(reply)) }
    },
  })
  return {
    port,
    asked: inner.asked,
    signIn: (over = {}) =>
      signInWithCode({
        server: { name: 'hub', url: SERVER, oauth: { clientId: 'the-client' } },
        port,
        onCode: () => {},
        ...over,
      }),
  }
}

verifies('auth.184', async () => {
  const slow = { error: 'slow_down' }
  const replies = [pending, slow, pending, slow, portError('unreachable'), 503, portError('timed-out', true), TOKENS]
  const here = deviceWorld(replies, { code: { ...CODE, interval: 7 } })
  const grant = await here.signIn({ scopesIfListed: ['openid', 'profile'] })
  expect(here.port.pauses).toEqual([7_000, 7_000, 12_000, 12_000, 17_000, 34_000, 60_000, 60_000])
  expect(grant).toMatchObject({ client: { id: 'the-client' }, tokens: { accessToken: 'the-token' } })
  expect(grant.requestedScopes).toEqual(['openid', 'offline_access'])
  const first = new URLSearchParams(here.asked.find(({ url }) => url === DEVICE)?.body)
  expect(Object.fromEntries(first)).toEqual({
    client_id: 'the-client',
    scope: 'openid offline_access',
    resource: SERVER,
  })
  const last = new URLSearchParams(here.asked.at(-1)?.body)
  expect(Object.fromEntries(last)).toEqual({
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    client_id: 'the-client',
    device_code: 'device-secret',
    resource: SERVER,
  })

  const failed = (kind: SignInError['kind']): PollReply => ({ kind: 'failed', error: new SignInError(kind, 'no') })
  const answered = (status: number, body: object | string): PollReply => ({
    kind: 'answered',
    status,
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  })
  const table: [string, PollReply, number, string | number][] = [
    ['nobody has entered it', answered(400, pending), 7_000, 7_000],
    ['too fast', answered(400, slow), 7_000, 12_000],
    ['nobody at home', failed('unreachable'), 7_000, 14_000],
    ['nobody at home for long', failed('timed-out'), 40_000, 60_000],
    ['an interval of more than the longest pause', failed('timed-out'), 90_000, 90_000],
    ['a broken server', answered(502, '<html>'), 7_000, 14_000],
    ['a busy server', answered(429, ''), 7_000, 14_000],
    ['a busy server in words', answered(400, { error: 'temporarily_unavailable' }), 7_000, 14_000],
    ['no', answered(400, { error: 'access_denied' }), 7_000, 'provider-refused'],
    ['no longer', answered(400, { error: 'expired_token' }), 7_000, 'timed-out'],
    ['a code that is used up', answered(400, { error: 'invalid_grant' }), 7_000, 'provider-refused'],
    ['a page', answered(404, '<html>'), 7_000, 'provider-refused'],
    ['an address that may not be asked', failed('endpoint-refused'), 7_000, 'endpoint-refused'],
    ['an end', failed('cancelled'), 7_000, 'cancelled'],
    ['tokens', answered(200, TOKENS), 7_000, 'tokens'],
    ['an error with a good status', answered(200, pending), 7_000, 7_000],
  ]
  for (const [what, reply, intervalMs, expected] of table) {
    const step = decidePoll(reply, { intervalMs, endpoint: TOKEN, secrets: [] })
    const got = step.kind === 'wait' ? step.intervalMs : step.kind === 'refused' ? step.error.kind : step.kind
    expect([what, got]).toEqual([what, expected])
  }
})

verifies(
  'auth.185',
  async () => {
    const kind = async (world: DeviceWorld, over: object = {}): Promise<[string, string | undefined]> => {
      const { kind: what, details } = await failureOf(world.signIn(over))
      return [what, details.error]
    }
    expect(await kind(deviceWorld([pending, { error: 'access_denied' }]))).toEqual([
      'provider-refused',
      'access_denied',
    ])
    expect(await kind(deviceWorld([{ error: 'expired_token' }]))).toEqual(['timed-out', 'expired_token'])
    expect(await kind(deviceWorld([{ ...TOKENS, token_type: 'mac' }]))).toEqual(['answer-invalid', undefined])
    expect(await kind(deviceWorld([pending], { code: { ...CODE, expires_in: 1 } }))).toEqual(['timed-out', undefined])
    expect(await kind(deviceWorld([pending], { metadata: { device_authorization_endpoint: null } }))).toEqual([
      'metadata-invalid',
      undefined,
    ])
    const leaving = new AbortController()
    const onCode = (): void => leaving.abort()
    expect(await kind(deviceWorld([pending]), { signal: leaving.signal, onCode })).toEqual(['cancelled', undefined])
    const throwing = (): never => {
      throw new Error('no screen')
    }
    expect(await kind(deviceWorld([pending]), { onCode: throwing })).toEqual(['settings-invalid', undefined])
    expect(await kind(deviceWorld([pending]), { dpop: 'always' })).toEqual(['settings-invalid', undefined])

    // At the real one: what a person says no to, and what was there before.
    await using here = await world()
    const account = await here.account()
    await account.signIn(willing())
    const was = account.current()
    const told = toldBy(account)
    const denying = signInPerson({ account: 'grace', consent: 'deny' })
    let denied: Promise<void> | undefined
    const refused = account.signIn({
      onCode({ userCode }) {
        denied = denying.approveDevice(authorization.issuer, userCode)
      },
    })
    await expect(refused).rejects.toMatchObject({
      code: 'SIGN_IN_FAILED',
      details: { account: 'account', kind: 'provider-refused', error: 'access_denied' },
    })
    await denied
    const given = account.signIn({ timeoutMs: 1_000, onCode: () => {} })
    await expect(given).rejects.toMatchObject({ code: 'SIGN_IN_TIMEOUT' })
    expect([account.current(), told]).toEqual([was, []])
    expect((await speaker(await here.host(account))).account).toBe('ada')
  },
  TIMEOUT_MS,
)

verifies('auth.186', async () => {
  const read = (over: object, status = 200): unknown => {
    try {
      const body = Buffer.from(JSON.stringify({ ...CODE, ...over }))
      return readDeviceAnswer(status, body, { endpoint: DEVICE, addresses: 'public', secrets: ['client-secret'] })
    } catch (error) {
      return error instanceof SignInError ? error.kind : error
    }
  }
  const table: [string, object, unknown][] = [
    ['as it should be', { interval: 7 }, expect.objectContaining({ lifeMs: 600_000, intervalMs: 7_000 })],
    ['no interval', {}, expect.objectContaining({ intervalMs: 5_000 })],
    ['an interval that is no number', { interval: 'soon' }, expect.objectContaining({ intervalMs: 5_000 })],
    ['an interval of nothing', { interval: 0 }, expect.objectContaining({ intervalMs: 1_000 })],
    ['a life of days', { expires_in: 1e6 }, expect.objectContaining({ lifeMs: 3_600_000 })],
    ['a page without encryption', { verification_uri: 'http://login.example/device' }, 'endpoint-refused'],
    ['a page of a program', { verification_uri: 'javascript:alert(1)' }, 'endpoint-refused'],
    ['no page', { verification_uri: undefined }, 'endpoint-refused'],
    ['a file', { verification_uri_complete: 'file:///etc/passwd' }, 'endpoint-refused'],
    ['a code that moves the cursor', { user_code: 'A\u001b[2J' }, 'answer-invalid'],
    ['a code that is a novel', { user_code: 'A'.repeat(65) }, 'answer-invalid'],
    ['no code', { user_code: '' }, 'answer-invalid'],
    ['no code for us', { device_code: 7 }, 'answer-invalid'],
    ['no life', { expires_in: undefined }, 'answer-invalid'],
    ['a life of nothing', { expires_in: 0 }, 'answer-invalid'],
    ['an error', { device_code: undefined, error: 'invalid_scope' }, 'scope-refused'],
  ]
  for (const [what, over, expected] of table) expect([what, read(over)]).toEqual([what, expected])
  expect(read({ error: 'invalid_client' }, 401)).toBe('provider-refused')

  const canaries = new Canaries()
  const deviceCode = canaries.plantPlain('device code')
  const secret = canaries.plantPlain('client secret')
  const refusing = { error: 'invalid_grant', error_description: `you sent ${deviceCode} and ${secret}` }
  const here = deviceWorld([refusing], { code: { ...CODE, device_code: deviceCode } })
  canaries.watch('failure', { kind: 'value', value: await failureOf(here.signIn({ clientSecret: secret })) })
  canaries.assertNowhere()
})

test('an endpoint for codes that leads where it may not is refused before anything is asked there', async () => {
  const here = deviceWorld([TOKENS], {
    metadata: { device_authorization_endpoint: 'http://login.example/device-code' },
  })
  expect((await failureOf(here.signIn())).kind).toBe('endpoint-refused')
  const inner = deviceWorld([TOKENS], { metadata: { device_authorization_endpoint: 'https://inside.example/x' } })
  const port = { ...inner.port, reach: async (host: string) => (host === 'inside.example' ? 'private' : 'public') }
  expect((await failureOf(inner.signIn({ port }))).details.field).toBe('device_authorization_endpoint')
  expect(inner.asked.some(({ method }) => method === 'POST')).toBe(false)
})

test('scopes that tell who signs in are asked for where they are listed, and not besides what somebody chose', () => {
  const issuerScopes = ['openid', 'offline_access']
  const ifListed = ['openid', 'profile']
  expect(planScopes({ discovered: ['mcp'], issuerScopes, ifListed }).scopes).toEqual([
    'mcp',
    'openid',
    'offline_access',
  ])
  expect(planScopes({ issuerScopes, ifListed })).toEqual({ scopes: ['openid', 'offline_access'], source: 'discovered' })
  expect(planScopes({ issuerScopes: ['offline_access'], ifListed })).toEqual({ scopes: [], source: 'none' })
  expect(planScopes({ explicit: ['mcp'], issuerScopes, ifListed }).scopes).toEqual(['mcp'])
  expect(planScopes({ configured: [], issuerScopes, ifListed }).scopes).toEqual([])
})

test('the real port waits between two questions, and leaves no timer when it is given up', async () => {
  const leaving = new AbortController()
  const here = deviceWorld([pending])
  const waiting = here.signIn({ port: { ...here.port, setTimer: realPort.setTimer }, signal: leaving.signal })
  await expect.poll(() => here.asked.some(({ url }) => url === DEVICE)).toBe(true)
  leaving.abort()
  expect((await failureOf(waiting)).kind).toBe('cancelled')
})
