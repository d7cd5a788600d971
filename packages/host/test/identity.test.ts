// What makes two connections the same: one row per rule.
import { inspect } from 'node:util'
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { hasExplicitAuthorization, usesStoredSignIn } from '../src/auth/own-authorization.ts'
import { defineServer, type ServerDefinition, type ServerDefinitionInput } from '../src/config/index.ts'
import { connectionIdentity, type IdentityFacts, type IdentityMatch, matchIdentity } from '../src/connection/index.ts'

const HTTP = { kind: 'http', url: 'https://a.test/mcp', headers: {}, envHeaders: {} } as const
const STDIO = { kind: 'stdio', command: 'run', args: ['a'], env: { A: '1' }, envVars: ['TOKEN'] } as const
const web = (more: Partial<ServerDefinitionInput> = {}, transport: object = {}): ServerDefinition =>
  defineServer({ name: 's', ...more, transport: { ...HTTP, ...transport } })
const local = (more: Partial<ServerDefinitionInput> = {}, transport: object = {}): ServerDefinition =>
  defineServer({ name: 's', ...more, transport: { ...STDIO, ...transport } })
const FACTS: IdentityFacts = { env: { TOKEN: 't', OTHER: 'o' }, workingDirectory: '/w', environment: 'local' }

interface Row {
  readonly it: string
  readonly one: ServerDefinition
  readonly other?: ServerDefinition
  readonly later?: Partial<IdentityFacts>
  readonly first?: Partial<IdentityFacts>
  readonly is: IdentityMatch
}

const match = ({ one, other = one, first = {}, later = {} }: Row): IdentityMatch =>
  matchIdentity(
    connectionIdentity(one, { ...FACTS, ...first }),
    connectionIdentity(other, { ...FACTS, ...first, ...later }),
  )

const check = (rows: readonly Row[]): void => {
  for (const row of rows) expect(match(row), row.it).toBe(row.is)
}
const root = (path: string): Partial<ServerDefinitionInput> => ({
  plugin: { id: 'p', displayName: 'P', root: path, isSelected: false },
})
const stored = (key: string): Partial<IdentityFacts> => ({ credentials: { kind: 'value', key } })
const place = {}

describe('what a transport is made of', () => {
  test('everything of the transport, and variables by their value', () => {
    check([
      { it: 'equal content in other objects', one: local(), other: local(), is: 'same' },
      { it: 'a name', one: local(), other: { ...local(), name: 't' }, is: 'same' },
      { it: 'arguments', one: local(), other: local({}, { args: ['b'] }), is: 'different' },
      { it: 'a literal variable', one: local(), other: local({}, { env: { A: '2' } }), is: 'different' },
      { it: 'a URL', one: web(), other: web({}, { url: 'https://b.test/mcp' }), is: 'different' },
      { it: 'a transport mode', one: web(), other: web({}, { transport: 'sse' }), is: 'different' },
      { it: 'a message limit', one: local(), other: local({ messageBytesMax: 1_000 }), is: 'different' },
      { it: 'the mode of the sign-in', one: web(), other: web({ auth: 'none' }), is: 'different' },
      { it: 'the environment by name', one: local(), other: local({ environment: 'box' }), is: 'different' },
      { it: 'a referenced variable', one: local(), later: { env: { TOKEN: 'u' } }, is: 'different' },
      { it: 'a variable that is gone', one: local(), later: { env: {} }, is: 'different' },
      { it: 'a stranger among the variables', one: local(), later: { env: { TOKEN: 't' } }, is: 'same' },
      {
        it: 'a header variable',
        one: web({}, { envHeaders: { 'x-key': 'TOKEN' } }),
        later: { env: { TOKEN: 'u' } },
        is: 'different',
      },
      {
        it: 'a bearer variable',
        one: web({}, { bearerTokenEnvVar: 'TOKEN' }),
        later: { env: { TOKEN: 'u' } },
        is: 'different',
      },
      {
        it: 'a bearer variable of another environment that is set here',
        one: web({ environment: 'box' }, { bearerTokenEnvVar: 'TOKEN' }),
        later: { env: { TOKEN: 'u' } },
        is: 'different',
      },
      {
        it: 'policy: filter, timeouts, approvals, parallel, required',
        one: local(),
        other: local({
          tools: { deny: ['x'] },
          startupTimeoutMs: 1,
          toolTimeoutMs: 1,
          approvalMode: 'prompt',
          parallelToolCalls: true,
          required: true,
        }),
        is: 'same',
      },
    ])
  })

  test('where it runs, who it speaks as, and what the client says of itself', () => {
    const account = {}
    check([
      { it: 'the same place', one: local(), first: { environment: place }, is: 'same' },
      {
        it: 'another object of the same name',
        one: local(),
        first: { environment: place },
        later: { environment: {} },
        is: 'different',
      },
      {
        it: 'the same reason against it',
        one: local(),
        first: { environment: 'no' },
        later: { environment: 'no' },
        is: 'same',
      },
      {
        it: 'another reason against it',
        one: local(),
        first: { environment: 'no' },
        later: { environment: 'never' },
        is: 'different',
      },
      {
        it: 'the working directory of a process without one',
        one: local(),
        later: { workingDirectory: '/v' },
        is: 'different',
      },
      {
        it: 'the working directory of a process with one',
        one: local({}, { cwd: '/x' }),
        later: { workingDirectory: '/v' },
        is: 'same',
      },
      {
        it: 'the working directory of a process elsewhere',
        one: local({ environment: 'box' }),
        later: { workingDirectory: '/v' },
        is: 'same',
      },
      { it: 'the working directory of a URL', one: web(), later: { workingDirectory: '/v' }, is: 'same' },
      {
        it: 'the working directory of a headers helper',
        one: web({}, { headersHelper: { command: 'h', args: [] } }),
        later: { workingDirectory: '/v' },
        is: 'different',
      },
      { it: 'the same account', one: web(), first: { account }, is: 'same' },
      { it: 'another account', one: web(), first: { account }, later: { account: {} }, is: 'different' },
      {
        it: 'signed out of the account',
        one: web(),
        first: { account },
        later: { account: undefined } as object,
        is: 'different',
      },
      { it: 'an extension', one: local(), later: { client: { extensions: { ui: {} } } }, is: 'different' },
      {
        it: 'a capability',
        one: local(),
        first: { client: { elicitation: {} } },
        later: { client: {} },
        is: 'different',
      },
      {
        it: 'equal capabilities',
        one: local(),
        first: { client: { roots: {} } },
        later: { client: { roots: {} } },
        is: 'same',
      },
    ])
  })
})

verifies('conn.043', () => {
  check([
    { it: 'the same root', one: local(root('/a')), other: local(root('/a')), is: 'same' },
    { it: 'another root', one: local(root('/a')), other: local(root('/b')), is: 'different' },
    { it: 'no root any more', one: local(root('/a')), other: local(), is: 'different' },
  ])
})

verifies('conn.033', () => {
  const oauth = (settings: object): Partial<ServerDefinitionInput> => ({ oauth: settings })
  const header = { headers: { Authorization: 'Bearer x' } }
  check([
    { it: 'the client id', one: web(oauth({ clientId: 'a' })), other: web(oauth({ clientId: 'b' })), is: 'different' },
    {
      it: 'the name of the secret',
      one: web(oauth({ clientSecretEnvVar: 'TOKEN' })),
      other: web(oauth({ clientSecretEnvVar: 'OTHER' })),
      is: 'different',
    },
    {
      it: 'the name of the secret, with the same value',
      one: web(oauth({ clientSecretEnvVar: 'TOKEN' })),
      other: web(oauth({ clientSecretEnvVar: 'TWIN' })),
      first: { env: { TOKEN: 't', TWIN: 't' } },
      is: 'different',
    },
    {
      it: 'the value of the secret',
      one: web(oauth({ clientSecretEnvVar: 'TOKEN' })),
      later: { env: { TOKEN: 'u' } },
      is: 'different',
    },
    { it: 'the issuer', one: web(oauth({ issuer: 'https://i.test' })), other: web(), is: 'different' },
    { it: 'the resource', one: web(oauth({ resource: 'r' })), other: web(), is: 'different' },
    {
      it: 'the redirect',
      one: web(oauth({ callbackUrl: 'http://a/' })),
      other: web(oauth({ callbackPort: 7 })),
      is: 'same',
    },
    {
      it: 'none of it beside an authorization of its own',
      one: web(oauth({ clientId: 'a', clientSecretEnvVar: 'TOKEN', issuer: 'i', resource: 'r' }), header),
      other: web(oauth({ clientId: 'b' }), header),
      later: { env: {} },
      is: 'same',
    },
    {
      it: 'none of it for an account',
      one: web(oauth({ clientId: 'a' })),
      other: web(oauth({ clientId: 'b' })),
      first: { account: place },
      is: 'same',
    },
  ])
  // Nothing can be read from it, however one looks.
  const secret = 'hunter2-hunter2'
  const identity = connectionIdentity(
    web({ oauth: { clientSecretEnvVar: 'S' } }, { headers: { 'x-key': secret }, envHeaders: { 'x-other': 'S' } }),
    { ...FACTS, env: { S: secret } },
  )
  for (const looksAt of [() => identity, () => identity.configKey])
    expect(inspect([looksAt(), identity], { depth: 9, showHidden: true }) + JSON.stringify(identity)).not.toContain(
      secret,
    )
  expect(identity.configKey).toMatch(/^[\da-f]{64}$/)
})

verifies('conn.034', () => {
  const own = { headers: { authorization: 'Bearer x' } }
  const modes: readonly [string, ServerDefinition, IdentityMatch][] = [
    ['no authorization', web(), 'different'],
    ['a static one', web({}, own), 'same'],
    ['a static one that is blank', web({}, { headers: { Authorization: ' ' } }), 'same'],
    ['a static one that no header can carry', web({}, { headers: { Authorization: 'a\u007fb' } }), 'different'],
    ['one from a variable', web({}, { envHeaders: { AUTHORIZATION: 'TOKEN' } }), 'same'],
    ['one from a variable that is not set', web({}, { envHeaders: { Authorization: 'NONE' } }), 'different'],
    ['one from a variable that no header can carry', web({}, { envHeaders: { Authorization: 'BAD' } }), 'different'],
    ['another header from a variable', web({}, { envHeaders: { 'x-key': 'TOKEN' } }), 'different'],
    ['a bearer variable, set or not', web({}, { bearerTokenEnvVar: 'NONE' }), 'same'],
    ['a server without a sign-in', web({ auth: 'none' }), 'same'],
    ['an account elsewhere', web({ auth: 'account', environment: 'box' }), 'same'],
    ['an account here', web({ auth: 'account' }), 'different'],
    ['a process', local(), 'same'],
  ]
  const env = { TOKEN: 't', BAD: 'a\u007f' }
  check(
    modes.map(([it, one, is]) => ({
      it,
      one,
      first: { env, storeMode: 'files' },
      later: { storeMode: 'keychain' },
      is,
    })),
  )
  const credentials = modes.map(([it, one, is]): Row => {
    const matters = is === 'different' ? 'same-config' : 'same'
    return { it: `credentials: ${it}`, one, first: { env, ...stored('a') }, later: stored('b'), is: matters }
  })
  check(credentials)
  check([
    { it: 'signed out', one: web(), first: stored('a'), later: { credentials: { kind: 'none' } }, is: 'same-config' },
    {
      it: 'unreadable',
      one: web(),
      first: stored('a'),
      later: { credentials: { kind: 'unreadable' } },
      is: 'same-config',
    },
    { it: 'unreadable both times', one: web(), first: { credentials: { kind: 'unreadable' } }, is: 'same' },
    {
      it: 'nothing stored is not the same as nothing known',
      one: web(),
      first: { credentials: { kind: 'none' } },
      later: { credentials: { kind: 'unreadable' } },
      is: 'same-config',
    },
    { it: 'contention says nothing', one: web(), first: stored('a'), later: { isContended: true }, is: 'same' },
  ])
  expect(connectionIdentity(web(), { ...FACTS, isContended: true }).isContended).toBe(true)
  expect(connectionIdentity(web({}, own), { ...FACTS, isContended: true }).isContended).toBe(false)
  expect(connectionIdentity(web(), FACTS).credentials).toBeNull()
})

test('an authorization that depends on nothing outside of the entry is a stricter thing', () => {
  const rows: readonly [object, boolean][] = [
    [{ headers: { authorization: 'Bearer x' } }, true],
    [{ headers: { Authorization: 'caf\u00e9' } }, true],
    [{ headers: { Authorization: ' ' } }, false],
    [{ headers: { Authorization: 'a\u007f' } }, false],
    [{ headers: { 'x-key': 'k' } }, false],
    [{ headers: { Authorization: 'x' }, bearerTokenEnvVar: 'T' }, false],
    [{ headers: { Authorization: 'x' }, envHeaders: { 'x-key': 'K' } }, false],
  ]
  for (const [transport, is] of rows)
    expect(hasExplicitAuthorization({ ...HTTP, ...transport }), JSON.stringify(transport)).toBe(is)
  expect(usesStoredSignIn(web(), { env: {}, hasAccount: true })).toBe(false)
})
