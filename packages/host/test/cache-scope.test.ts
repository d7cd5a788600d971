// Under what a catalog is kept, as a table: every fact that matters makes another place, every other one does not.
import { defineServer, type ServerDefinition } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { type CacheFacts, type CacheScope, cacheScope, LOCAL_ENVIRONMENT } from '../src/catalog/cache-scope.ts'
import { resolveTraits, type ServerTraits } from '../src/config/index.ts'

const local = { kind: 'resolved', name: 'local', handle: LOCAL_ENVIRONMENT } as const
const server = (more: Partial<ServerDefinition> = {}, transport: object = {}): ServerDefinition =>
  defineServer({
    name: 's',
    transport: { kind: 'stdio', command: 'run', args: ['x'], env: { A: '1' }, envVars: ['TOKEN'], ...transport },
    ...more,
  })
const web = (more: Partial<ServerDefinition> = {}, transport: object = {}): ServerDefinition =>
  defineServer({
    name: 's',
    transport: { kind: 'http', url: 'https://a.example/mcp', headers: {}, envHeaders: {}, ...transport },
    ...more,
  })
function factsOf(definition: ServerDefinition, more: Partial<CacheFacts> = {}): CacheFacts {
  return {
    definition,
    traits: resolveTraits(definition),
    environment: local,
    credentials: { kind: 'none' },
    env: { TOKEN: 'secret-1' },
    cwd: '/work',
    client: { elicitation: {} },
    ...more,
  }
}
function scopeOf(facts: CacheFacts): CacheScope {
  const decision = cacheScope(facts)
  if (decision.kind !== 'cacheable') throw new Error(decision.because)
  return decision.scope
}
const keyOf = (definition: ServerDefinition, more: Partial<CacheFacts> = {}): string =>
  scopeOf(factsOf(definition, more)).key
const reason = (definition: ServerDefinition, more: Partial<CacheFacts> = {}): string => {
  const decision = cacheScope(factsOf(definition, more))
  return decision.kind === 'uncacheable' ? decision.because : 'cacheable'
}

describe('the place of an ordinary server', () => {
  test('is the same for the same facts, whatever they do not mention', () => {
    expect(keyOf(server())).toMatch(/^[0-9a-f]{64}$/)
    expect(keyOf(server())).toBe(keyOf(server()))
    const policies: Partial<ServerDefinition>[] = [
      { tools: { allow: ['a'] } },
      { approvalMode: 'prompt' },
      { parallelToolCalls: true },
      { required: true, startup: 'eager' },
      { startupTimeoutMs: 5, toolTimeoutMs: 5 },
      { omitToolsFrom: ['model'] },
    ]
    for (const policy of policies) expect(keyOf(server(policy))).toBe(keyOf(server()))
    expect(keyOf(server(), { env: { TOKEN: 'secret-1', OTHER: 'x' } })).toBe(keyOf(server()))
    expect(scopeOf(factsOf(server()))).toMatchObject({ server: 's', sharing: 'own', liveKey: '' })
  })

  test.each<[string, string]>([
    ['its name', keyOf(server({ name: 't' }))],
    ['its command', keyOf(server({}, { command: 'walk' }))],
    ['its arguments', keyOf(server({}, { args: ['y'] }))],
    ['its variables', keyOf(server({}, { env: { A: '2' } }))],
    ['what it inherits', keyOf(server({}, { envVars: [] }))],
    ['its folder', keyOf(server({}, { cwd: '/else' }))],
    ['the folder of the host', keyOf(server(), { cwd: '/else' })],
    ['what this side declares', keyOf(server(), { client: {} })],
    ['the version on disk', keyOf(server(), { localVersion: 'p@1' })],
    ['another version on disk', keyOf(server(), { localVersion: 'p@2' })],
    ['the items of a listing', keyOf(server(), { traits: traits({ catalogItemLimit: 8_192 }) })],
    ['the environment', keyOf(server({}, { envVars: [] }), { environment: { ...local, name: 'box' } })],
    ['another value of a variable', keyOf(server(), { env: { TOKEN: 'secret-2' } })],
    ['a variable that is not set', keyOf(server(), { env: {} })],
  ])('changes with %s', (_, key) => {
    expect(key).not.toBe(keyOf(server()))
  })

  test.each<[string, string]>([
    ['the URL', keyOf(web({}, { url: 'https://a.example/mcp2' }))],
    ['a header', keyOf(web({}, { headers: { 'x-a': '1' } }))],
    ['a header from a variable', keyOf(web({}, { envHeaders: { 'x-a': 'TOKEN' } }))],
    ['a bearer token from a variable', keyOf(web({}, { bearerTokenEnvVar: 'TOKEN' }))],
    ['whose token it sees', keyOf(web({ auth: 'none' }))],
    ['the settings of the sign-in', keyOf(web({ oauth: { clientId: 'c' } }))],
    ['its scopes', keyOf(web({ scopes: ['read'] }))],
    ['a stored sign-in', keyOf(web(), { credentials: { kind: 'record', id: 'r1' } })],
    ['another stored sign-in', keyOf(web(), { credentials: { kind: 'record', id: 'r2' } })],
    ['the account', keyOf(web(), { credentials: { kind: 'account', id: 'r1' } })],
  ])('of an HTTP server changes with %s', (_, key) => {
    expect(key).not.toBe(keyOf(web()))
  })

  test('keeps all of them apart from each other', () => {
    const keys = [
      keyOf(web(), { credentials: { kind: 'record', id: 'r1' } }),
      keyOf(web(), { credentials: { kind: 'record', id: 'r2' } }),
      keyOf(web(), { credentials: { kind: 'account', id: 'r1' } }),
      keyOf(server(), { localVersion: 'p@1' }),
      keyOf(server(), { localVersion: 'p@2' }),
    ]
    expect(new Set(keys).size).toBe(keys.length)
  })

  verifies('conn.078', () => {
    const header = { envHeaders: { 'x-key': 'KEY' }, bearerTokenEnvVar: 'BEARER' }
    const keys = [
      keyOf(server(), { env: { TOKEN: 'one' } }),
      keyOf(server(), { env: { TOKEN: 'two' } }),
      keyOf(web({}, header), { env: { KEY: 'a', BEARER: 'b' } }),
      keyOf(web({}, header), { env: { KEY: 'b', BEARER: 'b' } }),
      keyOf(web({}, header), { env: { KEY: 'a', BEARER: 'c' } }),
    ]
    expect(new Set(keys).size).toBe(5)
    // And no value can be read from a place.
    expect(JSON.stringify(scopeOf(factsOf(web({}, header), { env: { KEY: 'a-secret-value' } })))).not.toContain(
      'secret',
    )
  })
})

describe('what is not kept', () => {
  verifies('conn.075', () => {
    const box = { kind: 'resolved', name: 'box', handle: {} } as const
    expect(reason(server(), { environment: box })).toMatch(/variables from environment "box"/)
    expect(reason(server({}, { envVars: [] }), { environment: box })).toBe('cacheable')
    expect(reason(web({}, { envHeaders: { a: 'B' } }), { environment: box })).toBe('cacheable')
  })

  verifies('conn.076', () => {
    expect(reason(web({}, { headersHelper: { command: 'h', args: [] } }))).toMatch(/headersHelper/)
  })

  verifies('conn.077', () => {
    expect(reason(web(), { credentials: { kind: 'unreadable', because: 'the store is locked' } })).toBe(
      'its stored sign-in cannot be read: the store is locked',
    )
    expect(reason(web(), { credentials: { kind: 'record', id: 'r1' } })).toBe('cacheable')
    // A process has no sign-in that could be unreadable.
    expect(reason(web({ oauth: { clientId: 'c' }, scopes: ['s'] }))).toBe('cacheable')
  })

  verifies('conn.060', () => {
    const hosted = web({ hosted: true, auth: 'account' }, { bearerTokenEnvVar: 'TOKEN' })
    expect(reason(hosted, { credentials: { kind: 'account', id: 'a1' } })).toMatch(/nothing says whose catalog/)
    expect(reason(web({}, { bearerTokenEnvVar: 'TOKEN' }))).toBe('cacheable')
  })

  test('an environment that cannot be resolved', () => {
    expect(reason(server(), { environment: { kind: 'unresolved', because: 'there is no "box"' } })).toBe(
      'its environment cannot be resolved: there is no "box"',
    )
  })
})

describe('the place of a hosted server', () => {
  const hosted = (more: Partial<ServerDefinition> = {}, transport: object = {}): ServerDefinition =>
    web({ hosted: true, auth: 'account', ...more }, transport)
  const account = (id: string): Partial<CacheFacts> => ({ credentials: { kind: 'account', id } })

  test('belongs to the account and to where it is asked, not to a name or a header', () => {
    const key = keyOf(hosted(), account('a1'))
    expect(scopeOf(factsOf(hosted(), account('a1'))).sharing).toBe('account')
    expect(keyOf(hosted({ name: 'other' }), account('a1'))).toBe(key)
    expect(keyOf(hosted({}, { headers: { 'x-a': '1' }, url: 'https://a.example/mcp?session=1' }), account('a1'))).toBe(
      key,
    )
    expect(keyOf(hosted(), account('a2'))).not.toBe(key)
    expect(keyOf(hosted({}, { url: 'https://b.example/mcp' }), account('a1'))).not.toBe(key)
    expect(keyOf(hosted({}, { url: 'https://a.example/other' }), account('a1'))).not.toBe(key)
  })

  test('without an account, or with a header of its own, is that of an ordinary server', () => {
    expect(scopeOf(factsOf(hosted()))).toMatchObject({ sharing: 'own', liveKey: '' })
    const own = hosted({}, { headers: { Authorization: 'Bearer x' } })
    expect(scopeOf(factsOf(own, account('a1')))).toMatchObject({ sharing: 'own' })
  })

  verifies('conn.059', () => {
    const mine = scopeOf(factsOf(hosted({ name: 'apps' }), account('a1')))
    const stranger = scopeOf(factsOf(web({ name: 'apps', auth: 'account' }), account('a1')))
    expect(stranger.sharing).toBe('own')
    expect(stranger.key).not.toBe(mine.key)
  })

  test.each<[string, boolean, CacheFacts]>([
    ['the originator', true, factsOf(hosted({}, { headers: { Originator: 'x' } }), account('a1'))],
    ['its name', true, factsOf(hosted({ name: 'other' }), account('a1'))],
    ['the account', true, factsOf(hosted(), account('a2'))],
    ['another header', false, factsOf(hosted({}, { headers: { 'x-a': '1' } }), account('a1'))],
    ['a header from a variable', false, factsOf(hosted({}, { envHeaders: { 'x-a': 'TOKEN' } }), account('a1'))],
    ['the query', false, factsOf(hosted({}, { url: 'https://a.example/mcp?x=1' }), account('a1'))],
    [
      'the items of a listing',
      false,
      {
        ...factsOf(hosted(), account('a1')),
        traits: traits({ isHosted: true, sharesToolCache: true, catalogItemLimit: 1 }),
      },
    ],
    ['what this side declares', false, factsOf(hosted(), { ...account('a1'), client: {} })],
  ])('lets connections run each other’s tools over %s: %s', (_, isSame, facts) => {
    const { liveKey } = scopeOf(factsOf(hosted(), account('a1')))
    expect(liveKey).toMatch(/^[0-9a-f]{64}$/)
    expect(scopeOf(facts).liveKey === liveKey).toBe(isSame)
  })

  test('values of variables are part of what connections have in common', () => {
    const facts = (value: string): CacheFacts =>
      factsOf(hosted({}, { envHeaders: { 'x-a': 'TOKEN' } }), { ...account('a1'), env: { TOKEN: value } })
    expect(scopeOf(facts('1')).liveKey).not.toBe(scopeOf(facts('2')).liveKey)
    expect(scopeOf(facts('1')).key).toBe(scopeOf(facts('2')).key)
  })
})

function traits(more: Partial<ServerTraits>): ServerTraits {
  return { ...resolveTraits(server()), ...more }
}
