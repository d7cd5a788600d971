import { defineServer, type ServerDefinition } from '@convoke/host'
import { expect, test } from 'vitest'
import { resolveTraits } from '../src/config/index.ts'
import { http, scripted } from './support.ts'

const at = (more: Partial<ServerDefinition>, transport: object = {}): ServerDefinition =>
  http('s', 'https://a.example/mcp', more, transport)

test('a server is what its definition says, whatever its name', () => {
  const ordinary = {
    isHosted: false,
    catalogItemLimit: 2_048,
    sharesToolCache: false,
    passesMeta: false,
    credentialSource: 'sign-in',
  }
  const hosted = { ...ordinary, isHosted: true, catalogItemLimit: 8_192, passesMeta: true }
  expect(resolveTraits(at({}))).toEqual(ordinary)
  expect(resolveTraits({ ...at({}), name: 'apps' })).toEqual(ordinary)
  expect(resolveTraits(at({ hosted: true }))).toEqual(hosted)
  expect(resolveTraits(at({ hosted: true, auth: 'account' }))).toEqual({
    ...hosted,
    sharesToolCache: true,
    credentialSource: 'account',
  })
  expect(resolveTraits(at({ auth: 'account' }))).toEqual({ ...ordinary, credentialSource: 'account' })
})

test('what an entry names itself comes before an account and a sign-in', () => {
  const table = [
    [at({ auth: 'none' }), 'none'],
    [at({ auth: 'oauth' }, { headers: { 'X-Key': 'k' } }), 'sign-in'],
    [at({ auth: 'oauth' }, { headers: { AUTHORIZATION: 'Bearer x' } }), 'configured'],
    [at({ auth: 'account' }, { envHeaders: { authorization: 'TOKEN' } }), 'configured'],
    [at({ auth: 'none' }, { bearerTokenEnvVar: 'TOKEN' }), 'configured'],
    [at({ auth: 'account', hosted: true }, { bearerTokenEnvVar: 'TOKEN' }), 'configured'],
    [scripted('p', {}, { auth: 'account' }), 'none'],
  ] as const
  for (const [definition, source] of table) expect(resolveTraits(definition).credentialSource).toBe(source)
  // A token of its own may be another account's: its listing is not shared.
  expect(resolveTraits(table[5][0]).sharesToolCache).toBe(false)
})

test('a definition is not hosted and of no plugin unless it says so', () => {
  const definition = defineServer({
    name: 's',
    transport: { kind: 'http', url: 'https://a.example', headers: {}, envHeaders: {} },
  })
  expect([definition.hosted, 'plugin' in definition]).toEqual([false, false])
})
