// The pure parts of a sign-in, row by row.
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { planCallback } from '../src/auth/oauth/callback.ts'
import { isFromIssuer, readCallback, readPasted } from '../src/auth/oauth/callback-answer.ts'
import { callbackId } from '../src/auth/oauth/callback-id.ts'
import { parseChallenge } from '../src/auth/oauth/challenge.ts'
import { chooseClientAuth } from '../src/auth/oauth/client-authentication.ts'
import { coversServer } from '../src/auth/oauth/endpoints.ts'
import type { Discovery } from '../src/auth/oauth/flow.ts'
import { planClient, readRegistration } from '../src/auth/oauth/registration.ts'
import { mayDropScopes, normalizeScopes, planScopes, scopesAfterRefusal } from '../src/auth/oauth/scopes.ts'
import { SignInError } from '../src/auth/oauth/sign-in-error.ts'
import { readTokens } from '../src/auth/oauth/token-answer.ts'

function kindOfCall(call: () => unknown): unknown {
  try {
    return call()
  } catch (error) {
    return error instanceof SignInError ? error.kind : error
  }
}

verifies('auth.040', () => {
  const both = { offersBearer: true, offersDpop: false }
  const rows: readonly (readonly [string | undefined, unknown])[] = [
    [undefined, undefined],
    ['', undefined],
    ['Basic realm="x"', undefined],
    ['Bearer', both],
    ['bearer ERROR="insufficient_scope", Scope="a b"', { ...both, error: 'insufficient_scope', scopes: ['a', 'b'] }],
    ['Bearer error=invalid_token', { ...both, error: 'invalid_token' }],
    ['Bearer error = "invalid_token" ; scope = "a"', { ...both, error: 'invalid_token', scopes: ['a'] }],
    ['Basic realm="a, Bearer error=\\"x\\"", Bearer scope="b"', { ...both, scopes: ['b'] }],
    ['Basic abc==, Bearer resource_metadata="https://a/b?c=d,e"', { ...both, resourceMetadata: 'https://a/b?c=d,e' }],
    ['Bearer error_description="say \\"no\\" \\\\"', { ...both, description: 'say "no" \\' }],
    ['Bearer scope="a" scope', both],
    ['Bearer scope="a", scope="b", error="x"', { ...both, error: 'x' }],
    ['Bearer scope="a  b"', both],
    ['Bearer scope=" a"', both],
    ['Bearer scope="a\\\\b"', both],
    ['Bearer scope="ä"', both],
    ['Bearer scope="a a b"', { ...both, scopes: ['a', 'b'] }],
    ['Bearer scope=""', both],
    ['Bearer error="invalid_token', undefined],
    ['Bearer error=in"valid, scope="a"', undefined],
    ['DPoP algs="ES256", error="use_dpop_nonce"', { offersBearer: false, offersDpop: true, error: 'use_dpop_nonce' }],
    [
      'Bearer scope="b", DPoP error="invalid_token"',
      { offersBearer: true, offersDpop: true, error: 'invalid_token', scopes: ['b'] },
    ],
    ['Negotiate, Bearer scope="a"', { ...both, scopes: ['a'] }],
    ['scope="a", Bearer', both],
    [`Bearer scope="${'a'.repeat(9_000)}"`, undefined],
    [`${'Bearer x=1,'.repeat(700)}`, both],
  ]
  for (const [header, expected] of rows) expect([header, parseChallenge(header)]).toEqual([header, expected])
})

verifies('auth.041', () => {
  const all = { explicit: ['e'], configured: ['c'], challenged: ['h'], discovered: ['d'] }
  const rows: readonly (readonly [Parameters<typeof planScopes>[0], unknown])[] = [
    [all, { scopes: ['e'], source: 'explicit' }],
    [
      { ...all, explicit: [] },
      { scopes: [], source: 'explicit' },
    ],
    [
      { ...all, explicit: undefined },
      { scopes: ['c'], source: 'configured' },
    ],
    [
      { configured: [], challenged: ['h'], discovered: ['d'] },
      { scopes: [], source: 'configured' },
    ],
    [
      { challenged: ['h'], discovered: ['d'] },
      { scopes: ['h'], source: 'challenge' },
    ],
    [
      { challenged: [], discovered: ['d', ' ', 'd x'] },
      { scopes: ['d', 'x'], source: 'discovered' },
    ],
    [{ discovered: [] }, { scopes: [], source: 'none' }],
    [{}, { scopes: [], source: 'none' }],
    [{ issuerScopes: ['offline_access'] }, { scopes: [], source: 'none' }],
    [
      { discovered: ['d'], issuerScopes: ['offline_access'] },
      { scopes: ['d', 'offline_access'], source: 'discovered' },
    ],
    [
      { configured: ['c'], issuerScopes: ['offline_access'] },
      { scopes: ['c'], source: 'configured' },
    ],
    [
      { ...all, stepUp: ['a', 'h'] },
      { scopes: ['a', 'h', 'e'], source: 'step-up', without: ['e'] },
    ],
    [
      { stepUp: ['a'], challenged: ['b'], configured: ['c'] },
      { scopes: ['a', 'b'], source: 'step-up', without: ['c'] },
    ],
    [
      { stepUp: [], configured: ['c'] },
      { scopes: ['c'], source: 'configured' },
    ],
  ]
  for (const [facts, expected] of rows) expect([facts, planScopes(facts)]).toEqual([facts, expected])
  expect(normalizeScopes(['a"b', 'c\\', 'ü', ' d\te '])).toEqual(['d', 'e'])
  expect(normalizeScopes(Array.from({ length: 500 }, (_, at) => `s${at}`))).toHaveLength(200)
  expect(normalizeScopes(['x'.repeat(8_000), 'y'.repeat(8_000)])).toHaveLength(1)
  const discovered = { scopes: ['d'], source: 'discovered' } as const
  expect(mayDropScopes(discovered, 'invalid_scope')).toBe(true)
  expect(mayDropScopes(discovered, 'access_denied')).toBe(false)
  expect(mayDropScopes({ scopes: [], source: 'discovered' }, 'invalid_scope')).toBe(false)
  for (const source of ['explicit', 'configured', 'challenge', 'step-up'] as const)
    expect(mayDropScopes({ scopes: ['d'], source }, 'invalid_scope')).toBe(false)
  const missed = planScopes({ stepUp: ['a', 'x'], granted: ['a'], challenged: ['x'], discovered: ['a', 'd'] })
  expect(scopesAfterRefusal(missed, 'invalid_scope')).toEqual(['a'])
  expect(scopesAfterRefusal(missed, 'access_denied')).toBeUndefined()
  expect(scopesAfterRefusal(planScopes({ stepUp: ['a'], granted: ['a'] }), 'invalid_scope')).toBeUndefined()
  expect(scopesAfterRefusal(planScopes({ stepUp: ['x'], challenged: ['x'] }), 'invalid_scope')).toEqual([])
  expect(scopesAfterRefusal(discovered, 'invalid_scope')).toEqual([])
})

verifies('auth.054', () => {
  const discovery: Discovery = {
    issuer: { issuer: 'https://as.example', tokenEndpoint: 'https://as.example/token' },
    authorizationEndpoint: 'https://as.example/authorize',
    registrationEndpoint: 'https://as.example/register',
    takesClientDocuments: true,
    promisesIssuer: false,
    resource: 'https://mcp.example/mcp',
    wantsDpop: false,
    addresses: 'public',
    source: 'protected-resource',
  }
  const { registrationEndpoint: _, ...closed } = discovery
  const clientMetadataUrl = 'https://convoke.example/client.json'
  const register = { kind: 'register', endpoint: 'https://as.example/register' }
  const rows = [
    [discovery, { clientId: 'mine', clientMetadataUrl }, { kind: 'configured', id: 'mine' }],
    [discovery, { clientId: ' ', clientMetadataUrl }, { kind: 'document', url: clientMetadataUrl }],
    [discovery, {}, register],
    [{ ...discovery, takesClientDocuments: false }, { clientMetadataUrl }, register],
    [discovery, { clientMetadataUrl: 'https://convoke.example/' }, register],
    [discovery, { clientMetadataUrl: 'http://convoke.example/client.json' }, register],
    [discovery, { clientMetadataUrl: 'https://convoke.example/a/../client.json' }, register],
    [
      { ...discovery, issuer: { ...discovery.issuer, tokenEndpointAuthMethods: ['client_secret_basic'] } },
      { clientMetadataUrl },
      register,
    ],
    [{ ...closed, takesClientDocuments: false }, { clientMetadataUrl }, { kind: 'missing' }],
  ] as const
  for (const [found, settings, expected] of rows) expect(planClient(found, settings)).toEqual(expected)
  const { issuer } = discovery
  const client = { id: 'c', kind: 'configured' } as const
  const methods = (list: string[]) => ({ ...issuer, tokenEndpointAuthMethods: list })
  expect(chooseClientAuth({ client }, methods(['client_secret_basic']))).toBe('none')
  expect(chooseClientAuth({ client, secret: 's' }, issuer)).toBe('client_secret_basic')
  expect(chooseClientAuth({ client, secret: 's' }, methods(['client_secret_post', 'none']))).toBe('client_secret_post')
  expect(chooseClientAuth({ client, secret: 's' }, methods(['client_secret_post', 'client_secret_basic']))).toBe(
    'client_secret_basic',
  )
  expect(
    chooseClientAuth({ client: { ...client, tokenEndpointAuthMethod: 'client_secret_post' }, secret: 's' }, issuer),
  ).toBe('client_secret_post')
})

verifies('auth.055', () => {
  const to = { endpoint: 'https://as.example/register', redirectUrl: 'http://127.0.0.1:1/callback/x' }
  const good = { client_id: 'c', redirect_uris: [to.redirectUrl], token_endpoint_auth_method: 'none' }
  const read = (more: object) => kindOfCall(() => readRegistration({ ...good, ...more }, to))
  expect(read({})).toEqual({
    client: { id: 'c', kind: 'registered', tokenEndpointAuthMethod: 'none' },
    secret: undefined,
  })
  expect(
    read({ client_secret: 's', client_secret_expires_at: 10, token_endpoint_auth_method: 'client_secret_post' }),
  ).toEqual({
    client: {
      id: 'c',
      kind: 'registered',
      secret: 's',
      secretExpiresAtMs: 10_000,
      tokenEndpointAuthMethod: 'client_secret_post',
    },
    secret: 's',
  })
  expect(
    read({ client_secret: 's', client_secret_expires_at: 0, token_endpoint_auth_method: undefined }),
  ).toMatchObject({ client: { secret: 's' } })
  expect(read({ redirect_uris: undefined })).toMatchObject({ client: { id: 'c' } })
  for (const bad of [
    { client_id: '' },
    { client_id: 7 },
    { client_id: 'c'.repeat(3_000) },
    { redirect_uris: ['https://evil.example/'] },
    { redirect_uris: `${to.redirectUrl}` },
    { client_secret: 7 },
    { token_endpoint_auth_method: 'private_key_jwt' },
    { token_endpoint_auth_method: 'client_secret_basic' },
    { token_endpoint_auth_method: 7 },
  ])
    expect([bad, read(bad)]).toEqual([bad, 'answer-invalid'])
})

verifies('auth.060', () => {
  const redirect = 'http://127.0.0.1:7777/callback/abc'
  const read = (line: string) => {
    const { kind, ...rest } = readPasted(line, redirect, 'STATE')
    return kind === 'stray' ? 'stray' : { kind, ...rest }
  }
  const code = { kind: 'code', code: 'C' }
  const rows: readonly (readonly [string, unknown])[] = [
    [`${redirect}?code=C&state=STATE`, code],
    [`  ${redirect}?code=C&state=STATE&iss=https%3A%2F%2Fas\n`, { ...code, iss: 'https://as' }],
    ['?code=C&state=STATE', code],
    ['state=STATE&code=C', code],
    ['error=access_denied&state=STATE', { kind: 'error', error: 'access_denied' }],
    ['C', 'stray'],
    ['code=C', 'stray'],
    ['code=C&state=', 'stray'],
    ['code=C&state=STATe', 'stray'],
    ['code=C&state=STATE&state=STATE', 'stray'],
    ['code=C&code=D&state=STATE', 'stray'],
    ['code=C&error=x&state=STATE', 'stray'],
    ['code=&state=STATE', 'stray'],
    ['code=%00&state=STATE', 'stray'],
    ['iss=a&iss=b&code=C&state=STATE', 'stray'],
    ['state=STATE', 'stray'],
    ['http://127.0.0.1:7778/callback/abc?code=C&state=STATE', 'stray'],
    ['http://127.0.0.1:7777/callback/abd?code=C&state=STATE', 'stray'],
    ['https://evil.example/callback/abc?code=C&state=STATE', 'stray'],
    [`${redirect}?code=${'C'.repeat(9_000)}&state=STATE`, 'stray'],
  ]
  for (const [line, expected] of rows) expect([line, read(line)]).toEqual([line, expected])
  expect(readCallback('code=C&state=STATE&x=%E0%A4%A', 'STATE')).toEqual(code)
})

verifies('auth.066', () => {
  const issuer = 'https://as.example'
  const rows = [
    [issuer, true, true],
    [issuer, false, true],
    [undefined, true, false],
    [undefined, false, true],
    [`${issuer}/`, true, false],
    [`${issuer}/`, false, false],
    ['https://AS.example', false, false],
    ['', false, false],
  ] as const
  for (const [iss, promisesIssuer, expected] of rows)
    expect([iss, promisesIssuer, isFromIssuer(iss, { issuer, promisesIssuer })]).toEqual([
      iss,
      promisesIssuer,
      expected,
    ])
})

verifies('auth.067', () => {
  const question = { endpoint: 'https://as.example/token', askedAtMs: 1_000, isBound: false, secrets: [] }
  const good = { access_token: 'A', token_type: 'bearer' }
  const read = (document: unknown, status = 200, isBound = false) =>
    kindOfCall(() =>
      readTokens(status, Buffer.from(typeof document === 'string' ? document : JSON.stringify(document)), {
        ...question,
        isBound,
      }),
    )
  const tokens = { accessToken: 'A', type: 'Bearer' }
  const idToken = `x.${Buffer.from(JSON.stringify({ sub: '7', name: ' Ada\n\u202eL ' })).toString('base64url')}.y`
  const rows: readonly (readonly [object, unknown])[] = [
    [{}, { tokens }],
    [
      { refresh_token: 'R', scope: 'a b a', expires_in: 60 },
      { tokens: { ...tokens, refreshToken: 'R', scopes: ['a', 'b'], expiresAtMs: 61_000 } },
    ],
    [{ expires_in: '60' }, { tokens: { ...tokens, expiresAtMs: 61_000 } }],
    [{ expires_in: 0.5 }, { tokens: { ...tokens, expiresAtMs: 1_500 } }],
    [{ expires_in: -5 }, { tokens }],
    [{ expires_in: 0 }, { tokens }],
    [{ expires_in: 1e300 }, { tokens: { ...tokens, expiresAtMs: 315_360_001_000 } }],
    [{ expires_in: 'soon' }, { tokens }],
    [{ expires_in: null, refresh_token: null, scope: ['a'] }, { tokens }],
    [{ refresh_token: '' }, { tokens }],
    [{ id_token: idToken }, { tokens, subject: { id: '7', name: 'Ada L' } }],
    [{ id_token: 'no jwt' }, { tokens }],
    [{ access_token: '' }, 'answer-invalid'],
    [{ access_token: 'a b' }, 'answer-invalid'],
    [{ access_token: 'a\r\nx: y' }, 'answer-invalid'],
    [{ access_token: 'a'.repeat(40_000) }, 'answer-invalid'],
    [{ access_token: { a: 1 } }, 'answer-invalid'],
    [{ refresh_token: 7 }, 'answer-invalid'],
    [{ token_type: 'mac' }, 'answer-invalid'],
    [{ token_type: undefined }, 'answer-invalid'],
    [{ token_type: 'DPoP' }, 'answer-invalid'],
  ]
  for (const [more, expected] of rows) expect([more, read({ ...good, ...more })]).toEqual([more, expected])
  expect(read({ ...good, token_type: 'dpop' }, 200, true)).toEqual({ tokens: { accessToken: 'A', type: 'DPoP' } })
  expect(read(good, 200, true)).toBe('answer-invalid')
  expect(read('<html>')).toBe('answer-invalid')
  expect(read([good])).toBe('answer-invalid')
  expect(read({ error: 'bad_verification_code' })).toBe('provider-refused')
  expect(read({ error: 'invalid_scope' }, 400)).toBe('scope-refused')
  expect(read(good, 302)).toBe('provider-refused')
})

verifies('auth.080', () => {
  const id = callbackId('https://mcp.example/mcp')
  expect(id).toMatch(/^[\w-]{12}$/)
  expect(callbackId('https://mcp.example/mcp#part')).toBe(id)
  expect(callbackId('https://mcp.example/mcp2')).not.toBe(id)
  expect(callbackId('https://mcp.example/mcp?tenant=1')).not.toBe(id)
  const url = 'https://mcp.example/mcp'
  const loopback = { address: '127.0.0.1', port: 0 }
  const rows = [
    [{}, { bind: loopback, url: `http://127.0.0.1:0/callback/${id}` }],
    [{ callbackPort: 7 }, { bind: { ...loopback, port: 7 }, url: `http://127.0.0.1:7/callback/${id}` }],
    [{ callbackUrl: 'http://localhost:8/x' }, { bind: { ...loopback, port: 8 }, url: 'http://localhost:8/x' }],
    [{ callbackUrl: 'http://127.0.0.1/x' }, { bind: loopback, url: 'http://127.0.0.1/x' }],
    [{ callbackUrl: 'http://[::1]:8/x' }, { bind: { address: '::1', port: 8 }, url: 'http://[::1]:8/x' }],
    [{ callbackUrl: 'https://hub.example/x' }, { bind: undefined, url: 'https://hub.example/x' }],
    [
      { callbackUrl: 'https://hub.example/x', callbackPort: 9 },
      { bind: { ...loopback, port: 9 }, url: 'https://hub.example/x' },
    ],
    [{ callbackUrl: 'http://hub.example/x' }, 'settings-invalid'],
    [{ callbackUrl: 'http://0.0.0.0:8/x' }, 'settings-invalid'],
    [{ callbackUrl: 'https://hub.example/x?y' }, 'settings-invalid'],
    [{ callbackUrl: 'file:///x' }, 'settings-invalid'],
  ] as const
  for (const [settings, expected] of rows)
    expect([settings, kindOfCall(() => planCallback(url, settings))]).toEqual([settings, expected])
})

verifies('auth.044', () => {
  const server = 'https://mcp.example/team/mcp?tenant=1'
  const rows = [
    [server, true],
    ['https://mcp.example/team/mcp', true],
    ['https://mcp.example/team/', true],
    ['https://mcp.example/team', true],
    ['https://mcp.example', true],
    ['https://MCP.example/team/mcp', true],
    ['https://mcp.example/tea', false],
    ['https://mcp.example/team/mcp/more', false],
    ['https://mcp.example/Team/mcp', false],
    ['https://mcp.example/team/mcp?tenant=2', false],
    ['https://mcp.example:8443/team/mcp', false],
    ['http://mcp.example/team/mcp', false],
    ['https://mcp.honest/team/mcp', false],
    ['https://mcp.example.evil/team/mcp', false],
    ['https://user@mcp.example/team/mcp', false],
    ['urn:mcp', false],
    ['', false],
  ] as const
  for (const [resource, expected] of rows)
    expect([resource, coversServer(resource, server)]).toEqual([resource, expected])
})
