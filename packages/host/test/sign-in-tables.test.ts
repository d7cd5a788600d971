// What happens to sign-ins, as tables: which token is sent, which is renewed, and when a person has to come.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { decideRefresh, type RefreshFacts, type RefreshPlan, recordAfter } from '../src/auth/decide.ts'
import {
  type CredentialRecord,
  newRecord,
  readRecord,
  recordId,
  recordText,
  standingOf,
  tokenDigest,
} from '../src/auth/record.ts'
import type { SignInEntry } from '../src/auth/sign-in-index.ts'
import { type SignInFacts, type SignInStatus, statusOfSignIn } from '../src/auth/sign-in-status.ts'
import { defineServer } from '../src/config/index.ts'

const NOW = 1_000_000
const LATER = NOW + 3_600_000

type Changes = Omit<Partial<CredentialRecord>, 'tokens'> & { readonly tokens?: Partial<CredentialRecord['tokens']> }

function record(over: Changes = {}): CredentialRecord {
  const { tokens, ...others } = over
  const grant = {
    issuer: { issuer: 'https://as.example', tokenEndpoint: 'https://as.example/token' },
    resource: 'https://mcp.example/mcp',
    client: { id: 'client', kind: 'registered' },
    tokens: { accessToken: 'a1', type: 'Bearer', refreshToken: 'r1', expiresAtMs: LATER },
  } as const
  const server = { name: 'one', url: 'https://mcp.example/mcp' }
  const made = newRecord(grant, { server, grantId: 'g1', nowMs: NOW - 600_000 })
  return { ...made, ...others, tokens: { ...made.tokens, ...tokens } as CredentialRecord['tokens'] }
}

const without = (...names: readonly string[]): CredentialRecord => {
  const { tokens, ...others } = record()
  const kept = Object.fromEntries(Object.entries(tokens).filter(([name]) => !names.includes(name)))
  return { ...others, tokens: kept as unknown as CredentialRecord['tokens'] }
}

const digest = tokenDigest('r1')
const rejected = { refreshDigest: digest, atMs: NOW, because: 'invalid_grant' }
/** The server has refused the access token of {@link record}. */
const refusedNow = { accessDigest: tokenDigest('a1'), atMs: NOW }
const attempt = { refreshDigest: digest, startedAtMs: NOW - 60_000 }

verifies('auth.130', () => {
  const near = { expiresAtMs: NOW + 29_000 }
  const rows: readonly (readonly [string, CredentialRecord, ReturnType<typeof standingOf>])[] = [
    ['unknown end', without('expiresAtMs'), 'usable'],
    ['unknown end, no refresh token', without('expiresAtMs', 'refreshToken'), 'usable'],
    ['good for an hour, no refresh token', without('refreshToken'), 'usable'],
    ['ends in 60 s', record({ tokens: { expiresAtMs: NOW + 60_000 } }), 'usable'],
    ['ends in 30 s', record({ tokens: { expiresAtMs: NOW + 30_000 } }), 'refreshable'],
    ['ends in 30 s and 1 ms', record({ tokens: { expiresAtMs: NOW + 30_001 } }), 'usable'],
    ['ends in 29 s', record({ tokens: near }), 'refreshable'],
    ['ends in 29 s, has just come', record({ signedInAtMs: NOW, tokens: near }), 'usable'],
    ['ends in 29 s, has lived as long', record({ signedInAtMs: NOW - 29_000, tokens: near }), 'refreshable'],
    ['is over', record({ tokens: { expiresAtMs: NOW - 1 } }), 'refreshable'],
    [
      'ends in 29 s, no refresh token',
      { ...without('refreshToken'), tokens: { ...without('refreshToken').tokens, ...near } },
      'usable',
    ],
    [
      'is over, no refresh token',
      { ...without('refreshToken'), tokens: { ...without('refreshToken').tokens, expiresAtMs: NOW } },
      'unusable',
    ],
    ['is over, blank refresh token', record({ tokens: { expiresAtMs: NOW, refreshToken: ' ' } }), 'unusable'],
    ['is over, refresh token was refused', record({ tokens: { expiresAtMs: NOW }, rejected }), 'unusable'],
    [
      'is over, another refresh token was refused',
      record({ tokens: { expiresAtMs: NOW, refreshToken: 'r2' }, rejected }),
      'refreshable',
    ],
    ['is over, a renewal was cut off', record({ tokens: { expiresAtMs: NOW }, attempt }), 'unusable'],
    [
      'is over, a renewal was cut off that uses nothing up',
      record({ tokens: { expiresAtMs: NOW }, attempt, rotation: 'stays' }),
      'refreshable',
    ],
    ['good, and the refresh token was refused', record({ rejected }), 'usable'],
    ['blank client', record({ client: { id: ' ', kind: 'configured' } }), 'unusable'],
    ['blank access token', record({ tokens: { accessToken: ' ' } }), 'refreshable'],
    ['blank access token, no refresh token', record({ tokens: { accessToken: '', refreshToken: '' } }), 'unusable'],
  ]
  for (const [what, given, expected] of rows) expect(standingOf(given, NOW), what).toBe(expected)
})

verifies('auth.131', () => {
  const over = { expiresAtMs: NOW - 1 }
  const facts: RefreshFacts = {
    stored: record({ tokens: over }),
    grantId: 'g1',
    reason: { kind: 'expiring' },
    mayRefresh: true,
    isMachine: false,
    nowMs: NOW,
  }
  const refused = { kind: 'rejected', accessToken: 'a1' } as const
  const rows: readonly (readonly [string, Partial<RefreshFacts>, RefreshPlan['kind'] | `sign-in: ${string}`])[] = [
    ['is over', {}, 'refresh'],
    ['somebody else has renewed it', { stored: record({ tokens: { accessToken: 'a2' } }) }, 'adopt'],
    ['signed out elsewhere', { stored: undefined }, 'sign-in: signed-out'],
    ['signed in anew elsewhere', { stored: record({ grantId: 'g2' }) }, 'sign-in: replaced'],
    ['the token in the store was refused', { stored: record(), reason: refused }, 'refresh'],
    ['an older token was refused', { stored: record({ tokens: { accessToken: 'a2' } }), reason: refused }, 'adopt'],
    [
      'an older token was refused, and the newer one is over',
      { stored: record({ tokens: { accessToken: 'a2', ...over } }), reason: refused },
      'refresh',
    ],
    [
      'refused a second time, and nobody has a newer one',
      { stored: record(), reason: refused, mayRefresh: false },
      'sign-in: token-refused',
    ],
    [
      'refused a second time, and somebody has a newer one',
      { stored: record({ tokens: { accessToken: 'a3' } }), reason: refused, mayRefresh: false },
      'adopt',
    ],
    [
      'refused a second time, and the newer one is over',
      { stored: record({ tokens: { accessToken: 'a3', ...over } }), reason: refused, mayRefresh: false },
      'sign-in: token-refused',
    ],
    [
      'no refresh token, to its very end',
      { stored: { ...without('refreshToken'), tokens: { accessToken: 'a1', type: 'Bearer', expiresAtMs: NOW + 1 } } },
      'adopt',
    ],
    [
      'no refresh token, over',
      { stored: { ...without('refreshToken'), tokens: { accessToken: 'a1', type: 'Bearer', expiresAtMs: NOW } } },
      'sign-in: no-refresh-token',
    ],
    ['no refresh token, refused', { stored: without('refreshToken'), reason: refused }, 'sign-in: no-refresh-token'],
    ['refresh token refused before', { stored: record({ tokens: over, rejected }) }, 'sign-in: refresh-rejected'],
    [
      'refresh token refused before, token still good',
      { stored: record({ tokens: { expiresAtMs: NOW + 10 }, rejected }) },
      'adopt',
    ],
    ['a renewal was cut off', { stored: record({ tokens: over, attempt }) }, 'sign-in: refresh-interrupted'],
    [
      'a renewal was cut off, of an earlier refresh token',
      { stored: record({ tokens: { ...over, refreshToken: 'r2' }, attempt }) },
      'refresh',
    ],
    [
      'a renewal was cut off where refresh tokens stay',
      { stored: record({ tokens: over, attempt, rotation: 'stays' }) },
      'refresh',
    ],
    ['a machine without a token', { stored: undefined, isMachine: true }, 'obtain'],
    [
      'a machine whose token is over',
      {
        stored: { ...without('refreshToken'), tokens: { accessToken: 'a1', type: 'Bearer', expiresAtMs: NOW } },
        isMachine: true,
      },
      'obtain',
    ],
    [
      'a machine that was refused twice',
      { stored: without('refreshToken'), reason: refused, mayRefresh: false, isMachine: true },
      'sign-in: no-refresh-token',
    ],
  ]
  for (const [what, over, expected] of rows) {
    const plan = decideRefresh({ ...facts, ...over })
    expect(plan.kind === 'sign-in' ? `sign-in: ${plan.because}` : plan.kind, what).toBe(expected)
  }
})

verifies('auth.132', () => {
  const before = record({ attempt, tokens: { scopes: ['a', 'b'], expiresAtMs: NOW } })
  const fresh = { accessToken: 'a2', type: 'Bearer' } as const
  const after = (tokens: CredentialRecord['tokens']): CredentialRecord =>
    recordAfter(before, { kind: 'refreshed', tokens }, NOW + 5)
  const { attempt: _, ...unmarked } = before
  expect(after(fresh)).toEqual({
    ...unmarked,
    tokens: { ...fresh, refreshToken: 'r1', scopes: ['a', 'b'] },
    refreshedAtMs: NOW + 5,
    rotation: 'stays',
  })
  const rotated = { ...fresh, refreshToken: 'r2', scopes: ['a'], expiresAtMs: LATER }
  expect(after(rotated)).toEqual({ ...unmarked, tokens: rotated, refreshedAtMs: NOW + 5, rotation: 'rotates' })
  expect(after({ ...fresh, refreshToken: 'r1' }).rotation).toBe('stays')
  expect(recordAfter(before, { kind: 'failed' }, NOW + 5)).toEqual(unmarked)
  expect(recordAfter(before, { kind: 'rejected', because: 'invalid_grant' }, NOW)).toEqual({ ...unmarked, rejected })
})

verifies('auth.133', () => {
  const facts = { issuer: 'https://as', resource: 'https://r', clientId: 'c', server: 'one' }
  const id = recordId(facts)
  expect(id).toMatch(/^[0-9a-f]{32}$/)
  for (const [name, value] of Object.entries({
    issuer: 'https://as/',
    resource: 'https://r/',
    clientId: 'd',
    server: 'two',
  }))
    expect(recordId({ ...facts, [name]: value }), name).not.toBe(id)
})

test('a record is read as it was written, and nothing else is', () => {
  const whole = record({
    attempt,
    rejected,
    refused: refusedNow,
    refreshedAtMs: 3,
    subject: { id: 's', name: 'Ada' },
    client: { id: 'c', kind: 'registered', secret: 's', tokenEndpointAuthMethod: 'client_secret_post' },
  })
  expect(readRecord(recordText(whole))).toEqual(whole)
  const spoilt: readonly ((one: Record<string, unknown>) => void)[] = [
    (one) => (one['version'] = 2),
    (one) => delete one['grantId'],
    (one) => (one['tokens'] = { accessToken: 'a' }),
    (one) => (one['tokens'] = { accessToken: 1, type: 'Bearer' }),
    (one) => (one['tokens'] = { accessToken: 'a', type: 'Bearer', refreshToken: 5 }),
    (one) => (one['tokens'] = { accessToken: 'a', type: 'Bearer', expiresAtMs: 'soon' }),
    (one) => (one['tokens'] = { accessToken: 'a', type: 'Bearer', scopes: ['a', 1] }),
    (one) => (one['client'] = { id: 'c' }),
    (one) => (one['client'] = { id: 'c', kind: 'registered', secret: {} }),
    (one) => (one['issuer'] = { issuer: 'https://as' }),
    (one) => (one['issuer'] = 'https://as'),
    (one) => (one['server'] = { name: 'one' }),
    (one) => (one['subject'] = { id: 7 }),
    (one) => (one['rotation'] = 'perhaps'),
    (one) => (one['resource'] = null),
    (one) => (one['signedInAtMs'] = '1'),
    (one) => (one['attempt'] = { startedAtMs: 1 }),
    (one) => (one['rejected'] = { refreshDigest: 1 }),
    (one) => (one['refused'] = { atMs: 1 }),
  ]
  for (const [index, spoil] of spoilt.entries()) {
    const one = JSON.parse(recordText(whole)) as Record<string, unknown>
    spoil(one)
    expect(readRecord(JSON.stringify(one)), `${index}`).toBeUndefined()
  }
  for (const text of ['', '{', 'null', '[]', '"x"']) expect(readRecord(text), text).toBeUndefined()
})

verifies('auth.134', () => {
  const http = { kind: 'http', url: 'https://mcp.example/mcp', headers: {}, envHeaders: {} } as const
  const definition = defineServer({ name: 'one', transport: http })
  const facts = { env: {}, hasAccount: false, nowMs: NOW, mode: 'auto' } as const
  const entry: SignInEntry = {
    version: 1,
    server: { name: 'one', url: http.url },
    recordId: 'id',
    grantId: 'g1',
    store: 'file',
    issuer: 'https://as',
    resource: 'r',
    clientId: 'c',
    signedInAtMs: 1,
  }
  const reading = { kind: 'entry', entry, text: '' } as const
  const state = (over: Partial<SignInFacts>, of = definition): string => {
    const { state: is, because } = statusOfSignIn(of, { ...facts, ...over })
    return because === undefined ? is : `${is}: ${because}`
  }
  const rows: readonly (readonly [string, string])[] = [
    [state({}, { ...definition, enabled: false }), 'none: it is switched off'],
    [
      state(
        {},
        defineServer({ name: 'p', transport: { kind: 'stdio', command: 'x', args: [], env: {}, envVars: [] } }),
      ),
      'none: it is a program on this machine',
    ],
    [state({ hasAccount: true }), 'account'],
    [state({}, { ...definition, auth: 'none' }), 'none: its entry says auth: "none"'],
    [
      state({}, { ...definition, transport: { ...http, bearerTokenEnvVar: 'T' } }),
      'configured: its entry names a variable with a bearer token',
    ],
    [
      state({}, { ...definition, transport: { ...http, headers: { Authorization: 'x' } } }),
      'configured: its entry names an Authorization header',
    ],
    [state({ reading: { kind: 'unreadable', because: 'it is a link' } }), 'unreadable: it is a link'],
    [state({ reading: { kind: 'none' } }), 'unknown: nobody is signed in'],
    [state({ reading: { kind: 'none' }, wants: 'sign-in' }), 'signed-out: the server wants a sign-in'],
    [state({ reading: { kind: 'none' }, wants: 'nothing' }), 'open'],
    [state({ reading, record: record() }), 'signed-in'],
    [state({ reading, record: record({ tokens: { expiresAtMs: NOW - 1 } }) }), 'signed-in'],
    [state({ reading, record: without('refreshToken') }), 'signed-in'],
    [
      state({ reading, record: record({ rejected }) }),
      'signed-in: the authorization server has ended it; what there is can be used to its end',
    ],
    [
      state({ reading, record: record({ rejected, refused: refusedNow }) }),
      'ended: the authorization server has ended it',
    ],
    [state({ reading, record: record({ refused: refusedNow }) }), 'signed-in'],
    [
      state({ reading, record: { ...without('refreshToken'), refused: refusedNow } }),
      'ended: the server does not accept it',
    ],
    [
      state({ reading, record: { ...without('refreshToken'), refused: { ...refusedNow, accessDigest: 'another' } } }),
      'signed-in',
    ],
    [
      state({ reading, record: record({ rejected, tokens: { expiresAtMs: NOW } }) }),
      'ended: the authorization server has ended it',
    ],
    [
      state({ reading, record: record({ attempt, tokens: { expiresAtMs: NOW } }) }),
      'ended: a renewal was cut off, so that it may be used up',
    ],
    [state({ reading }), 'ended: the file does not hold it any more'],
    [state({ reading, unreadableBecause: 'the keyring is locked' }), 'unreadable: the keyring is locked'],
    [
      state({ reading, isOutOfMode: true, mode: 'keyring' }),
      'ended: it is kept in the file, and this program uses the keyring',
    ],
  ]
  for (const [is, expected] of rows) expect(is).toBe(expected)
  const whole = statusOfSignIn(definition, {
    ...facts,
    reading: { ...reading, entry: { ...entry, subject: { id: 's' }, wantedScopes: ['w'] } },
    record: record({ refreshedAtMs: 5, tokens: { scopes: ['a'] } }),
  })
  expect(whole).toEqual({
    server: 'one',
    state: 'signed-in',
    subject: { id: 's' },
    issuer: 'https://as',
    clientId: 'c',
    scopes: ['a'],
    wantedScopes: ['w'],
    store: 'file',
    expiresAtMs: LATER,
    isRenewable: true,
    signedInAtMs: 1,
    refreshedAtMs: 5,
  } satisfies SignInStatus)
})
