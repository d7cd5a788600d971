// What servers and their documents may say, and what is believed of it. The documents of hosts that do not exist come from a table behind the port; those
// about addresses and limits go through the real door.
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Canaries, verifies } from '@convoke/testkit'
import * as oauth4webapi from 'oauth4webapi'
import { expect } from 'vitest'
import { type DiscoverOptions, discover } from '../src/auth/oauth/discovery.ts'
import type { OAuthPort } from '../src/auth/oauth/port.ts'
import { signIn } from '../src/auth/oauth/sign-in.ts'
import { failureOf, kindOf, portError, realPort, type Scripted, TIMEOUT_MS, tablePort } from './oauth-support.ts'

const MCP = 'https://mcp.example/team/mcp'
const AT_PATH = 'https://mcp.example/.well-known/oauth-protected-resource/team/mcp'
const AT_ROOT = 'https://mcp.example/.well-known/oauth-protected-resource'
const ISSUER = 'https://as.example/tenant'
const OAUTH = 'https://as.example/.well-known/oauth-authorization-server/tenant'
const OPENID = 'https://as.example/.well-known/openid-configuration/tenant'
const OPENID_OLD = 'https://as.example/tenant/.well-known/openid-configuration'

const resource = { resource: MCP, authorization_servers: [ISSUER], scopes_supported: ['a', 'b'] }
const issuer = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  registration_endpoint: `${ISSUER}/register`,
  revocation_endpoint: `${ISSUER}/revoke`,
  jwks_uri: `${ISSUER}/jwks`,
  response_types_supported: ['code'],
  code_challenge_methods_supported: ['S256'],
}
const good = { [AT_PATH]: resource, [OAUTH]: issuer }

function look(table: Readonly<Record<string, Scripted>>, more: Partial<DiscoverOptions> = {}) {
  const port = tablePort(table)
  return { port, found: discover({ server: { name: 'mail', url: MCP }, port, ...more }) }
}

verifies(
  'auth.043',
  async () => {
    const told = 'https://elsewhere.example/about-mcp'
    const challenge = `Bearer resource_metadata="${told}", scope="c"`
    const facts = {
      issuer: { issuer: ISSUER, tokenEndpoint: `${ISSUER}/token`, revocationEndpoint: `${ISSUER}/revoke` },
      resource: MCP,
      source: 'protected-resource',
      discoveredScopes: ['a', 'b'],
      addresses: 'public',
    }
    const rows: readonly (readonly [
      string,
      Readonly<Record<string, Scripted>>,
      string | undefined,
      readonly string[],
    ])[] = [
      ['path', good, undefined, [AT_PATH, OAUTH]],
      ['root', { [AT_ROOT]: resource, [OAUTH]: issuer }, undefined, [AT_PATH, AT_ROOT, OAUTH]],
      ['told', { [told]: resource, [OAUTH]: issuer }, challenge, [told, OAUTH]],
      ['told, but not there', good, challenge, [told, AT_PATH, OAUTH]],
      [
        'a page at the path',
        { ...good, [AT_PATH]: '<html>', [AT_ROOT]: resource },
        undefined,
        [AT_PATH, AT_ROOT, OAUTH],
      ],
      ['OpenID', { [AT_PATH]: resource, [OPENID]: issuer }, undefined, [AT_PATH, OAUTH, OPENID]],
      [
        'OpenID, behind',
        { [AT_PATH]: resource, [OPENID_OLD]: issuer },
        undefined,
        [AT_PATH, OAUTH, OPENID, OPENID_OLD],
      ],
      [
        'a failing place',
        { [AT_PATH]: 500, [AT_ROOT]: resource, [OAUTH]: 502, [OPENID]: issuer },
        undefined,
        [AT_PATH, AT_ROOT, OAUTH, OPENID],
      ],
    ]
    for (const [name, table, header, asked] of rows) {
      const { port, found } = look(table, { challenge: header })
      expect([name, await found]).toMatchObject([name, facts])
      expect([name, port.asked.map(({ url }) => url)]).toEqual([name, asked])
    }
    expect(await look(good, { challenge: 'DPoP scope="c"' }).found).toMatchObject({
      wantsDpop: true,
      challengedScopes: ['c'],
    })
    expect(
      await look({ ...good, [AT_PATH]: { ...resource, dpop_bound_access_tokens_required: true } }).found,
    ).toMatchObject({ wantsDpop: true })
    const named = { name: 'mail', url: MCP, oauth: { resource: 'urn:mail' } }
    expect(
      await look({ ...good, [AT_PATH]: { ...resource, resource: 'urn:mail' } }, { server: named }).found,
    ).toMatchObject({ resource: 'urn:mail' })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.044',
  async () => {
    for (const other of ['https://mcp.honest/mcp', 'https://mcp.example/team/mcp2', '', 7]) {
      const { port, found } = look({ ...good, [AT_PATH]: { ...resource, resource: other } })
      const failure = await failureOf(found)
      expect([other, failure.kind, failure.details.field]).toEqual([
        other,
        typeof other === 'string' ? 'resource-mismatch' : 'metadata-invalid',
        'resource',
      ])
      // No word to any authorization server, and no guess either.
      expect(port.asked.map(({ url }) => new URL(url).host)).toEqual(['mcp.example', 'mcp.example'])
    }
    for (const servers of [undefined, [], 'https://as.example', [7], Array.from({ length: 100 }, () => ISSUER)])
      expect(await kindOf(look({ ...good, [AT_PATH]: { ...resource, authorization_servers: servers } }).found)).toBe(
        'metadata-invalid',
      )
  },
  TIMEOUT_MS,
)

verifies(
  'auth.045',
  async () => {
    for (const claimed of [
      'https://a.example',
      `${ISSUER}/`,
      'https://AS.example/tenant',
      'https://as.example',
      undefined,
      7,
    ]) {
      const failure = await failureOf(look({ ...good, [OAUTH]: { ...issuer, issuer: claimed } }).found)
      expect([claimed, failure.kind, failure.details.field]).toEqual([claimed, 'issuer-mismatch', 'issuer'])
    }
    // Another document of the same issuer may be right.
    expect(
      await look({ ...good, [OAUTH]: { ...issuer, issuer: 'https://as.example' }, [OPENID]: issuer }).found,
    ).toMatchObject({ issuer: { issuer: ISSUER } })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.046',
  async () => {
    const origin = 'https://mcp.example'
    const own = {
      ...issuer,
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      revocation_endpoint: undefined,
    }
    const at = `${origin}/.well-known/oauth-authorization-server`
    expect(await look({ [at]: own }).found).toMatchObject({
      source: 'server',
      issuer: { issuer: origin },
      resource: MCP,
    })
    expect(await look({ [at]: { ...own, issuer: `${origin}/` } }).found).toMatchObject({
      issuer: { issuer: `${origin}/` },
    })
    expect(await look({}).found).toMatchObject({
      source: 'defaults',
      issuer: { issuer: origin, tokenEndpoint: `${origin}/token` },
      authorizationEndpoint: `${origin}/authorize`,
      registrationEndpoint: `${origin}/register`,
    })
    expect(await kindOf(look({ [at]: { ...own, issuer: 'https://honest.example' } }).found)).toBe('issuer-mismatch')
    expect(
      await kindOf(look({ [at]: { ...own, authorization_endpoint: 'https://honest.example/authorize' } }).found),
    ).toBe('endpoint-refused')
    expect(
      await kindOf(
        look({
          [at]: {
            ...own,
            authorization_endpoint: 'https://honest.example/authorize',
            token_endpoint: 'https://evil.example/token',
          },
        }).found,
      ),
    ).toBe('endpoint-refused')
    // Where something is there that does not hold, nothing is guessed.
    expect(await kindOf(look({ [AT_ROOT]: portError('refused'), [at]: 404 }).found)).toBe('endpoint-refused')
    const nothing = tablePort({})
    const failure = await failureOf(signIn({ server: { name: 'mail', url: MCP }, port: nothing }))
    expect([failure.kind, failure.message]).toEqual(['no-metadata', expect.stringContaining('oauth.clientId')])
  },
  TIMEOUT_MS,
)

const BAD_URLS = [
  'http://auth.example/x',
  'HTTP://auth.example/x',
  'http://192.168.0.5/auth',
  'http://127.0.0.1:8080/x',
  'file:///etc/passwd',
  'javascript:alert(1)',
  'data:text/html,x',
  'vbscript:x',
  'ms-msdt:/id',
  '-a Calculator',
  'https://a/$(touch CANARY)',
  'https://a/";touch CANARY;"',
  'https://a/%0d%0aX',
  'https://user:pw@a.example/',
  'https:\\\\a.example',
  'https://a.example/#part',
  ' https://a.example/',
  'https://a.example/\n',
  '//a.example/x',
  `https://a.example/${'x'.repeat(3_000)}`,
  '',
  7,
]

verifies(
  'auth.047',
  async () => {
    for (const field of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint'])
      for (const url of BAD_URLS) {
        let opened = 0
        const port = tablePort({ ...good, [OAUTH]: { ...issuer, [field]: url } })
        const failure = await failureOf(
          signIn({ server: { name: 'mail', url: MCP }, port, openPage: () => void opened++ }),
        )
        expect([field, url, failure.kind, failure.details.field, opened]).toEqual([
          field,
          url,
          'endpoint-refused',
          field,
          0,
        ])
        expect(failure.message).toContain(field)
        expect(port.asked.every(({ method }) => method === 'GET')).toBe(true)
      }
    for (const url of BAD_URLS) {
      expect(await kindOf(look({ ...good, [AT_PATH]: { ...resource, authorization_servers: [url] } }).found)).toBe(
        typeof url === 'string' && url.length < 2_048 ? 'endpoint-refused' : 'metadata-invalid',
      )
      if (typeof url === 'string' && /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/.test(url) && url.length < 3_000)
        expect([url, await kindOf(look(good, { challenge: `Bearer resource_metadata="${url}"` }).found)]).toEqual([
          url,
          'endpoint-refused',
        ])
    }
  },
  TIMEOUT_MS,
)

/** Listens on this machine; counts who connects. */
class Sink implements AsyncDisposable {
  readonly server: Server
  connections = 0

  constructor(listener: RequestListener = (_request, response) => response.end('{}')) {
    this.server = createServer(listener)
    this.server.on('connection', () => void this.connections++)
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    return this
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }
}

/** The table for the hosts of these tests, the real door for every other one. */
function mixedPort(table: Readonly<Record<string, Scripted>>): OAuthPort {
  const scripted = tablePort(table)
  return {
    ...realPort,
    reach: (host) => (host.endsWith('.example') ? Promise.resolve('public') : realPort.reach(host)),
    fetch: (url, request) =>
      new URL(url).host.endsWith('.example') ? scripted.fetch(url, request) : realPort.fetch(url, request),
  }
}

verifies(
  'auth.048',
  async () => {
    await using sink = await new Sink().start()
    const hosts = [
      '127.0.0.1',
      'localhost',
      '127.1',
      '0x7f.1',
      '017700000001',
      '2130706433',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:169.254.169.254]',
      '[64:ff9b::a9fe:a9fe]',
      '169.254.169.254',
      '0.0.0.0',
      '10.0.0.1',
      '100.64.0.1',
      '[fd00::1]',
      '[fe80::1]',
    ]
    for (const host of hosts) {
      const url = `https://${host}:${sink.port}`
      const server = { name: 'mail', url: MCP }
      const find = (table: Readonly<Record<string, Scripted>>, challenge?: string) =>
        failureOf(discover({ server, challenge, port: mixedPort(table) }))
      for (const field of [
        'authorization_endpoint',
        'token_endpoint',
        'registration_endpoint',
        'revocation_endpoint',
      ]) {
        // Beside each other, so that nothing but the address is wrong.
        const pair = field === 'authorization_endpoint' ? { authorization_response_iss_parameter_supported: true } : {}
        const failure = await find({ ...good, [OAUTH]: { ...issuer, ...pair, [field]: `${url}/x` } })
        expect([host, field, failure.kind, failure.details.field]).toEqual([host, field, 'endpoint-refused', field])
      }
      expect([host, (await find({ ...good, [AT_PATH]: { ...resource, authorization_servers: [url] } })).kind]).toEqual([
        host,
        'endpoint-refused',
      ])
      expect([host, (await find({}, `Bearer resource_metadata="${url}/x"`)).kind]).toEqual([host, 'endpoint-refused'])
    }
    expect(sink.connections).toBe(0)
    // A private address in place of a looser rule: a server on this machine leads to this machine only, one of a private network everywhere.
    const near = (url: string, reach: 'loopback' | 'private') => {
      const table = {
        'https://near.example/.well-known/oauth-protected-resource': {
          resource: 'https://near.example',
          authorization_servers: [url],
        },
        [`${url}/.well-known/oauth-authorization-server`]: {
          ...issuer,
          issuer: url,
          authorization_endpoint: `${url}/a`,
          token_endpoint: `${url}/t`,
          registration_endpoint: undefined,
          revocation_endpoint: undefined,
        },
      }
      return kindOf(
        discover({
          server: { name: 'near', url: 'https://near.example/' },
          port: tablePort(table, { 'near.example': reach, '127.0.0.1': 'loopback', '10.0.0.1': 'private' }),
        }),
      )
    }
    expect(await near('http://127.0.0.1:9', 'loopback')).toMatchObject({
      resolved: { addresses: 'public-or-loopback' },
    })
    expect(await near('https://10.0.0.1', 'loopback')).toBe('endpoint-refused')
    expect(await near('https://10.0.0.1', 'private')).toMatchObject({ resolved: { addresses: 'any' } })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.049',
  async () => {
    for (const methods of [undefined, [], ['plain'], 'S256', ['s256']])
      expect([
        methods,
        await kindOf(look({ ...good, [OAUTH]: { ...issuer, code_challenge_methods_supported: methods } }).found),
      ]).toEqual([methods, 'pkce-unsupported'])
    expect(await kindOf(look({ ...good, [OAUTH]: { ...issuer, response_types_supported: ['token'] } }).found)).toBe(
      'metadata-invalid',
    )
  },
  TIMEOUT_MS,
)

verifies(
  'auth.050',
  async () => {
    const honest = 'https://honest.example/authorize'
    const rows: readonly (readonly [object, unknown])[] = [
      [{ authorization_endpoint: honest }, 'endpoint-refused'],
      [{ authorization_endpoint: honest, token_endpoint: 'https://evil.example/token' }, 'endpoint-refused'],
      [
        { authorization_endpoint: honest, token_endpoint: 'https://honest.example/token' },
        { resolved: expect.objectContaining({ promisesIssuer: false }) },
      ],
      [
        { token_endpoint: 'https://elsewhere.example/token' },
        { resolved: expect.objectContaining({ promisesIssuer: false }) },
      ],
      [{ authorization_endpoint: honest, authorization_response_iss_parameter_supported: 'true' }, 'endpoint-refused'],
      // Its answers name their issuer: then this is noticed at the answer.
      [
        { authorization_endpoint: honest, authorization_response_iss_parameter_supported: true },
        { resolved: expect.objectContaining({ promisesIssuer: true }) },
      ],
    ]
    for (const [more, expected] of rows)
      expect([more, await kindOf(look({ ...good, [OAUTH]: { ...issuer, ...more } }).found)]).toEqual([more, expected])
  },
  TIMEOUT_MS,
)

verifies(
  'auth.051',
  async () => {
    const server = { name: 'mail', url: MCP, oauth: { issuer: ISSUER } }
    const other = { ...resource, authorization_servers: ['https://evil.example', ISSUER] }
    expect(await look({ ...good, [AT_PATH]: other }, { server }).found).toMatchObject({ issuer: { issuer: ISSUER } })
    const { port, found } = look(
      { ...good, [AT_PATH]: { ...resource, authorization_servers: ['https://evil.example', `${ISSUER}/`] } },
      { server },
    )
    const failure = await failureOf(found)
    expect([failure.kind, failure.message]).toEqual(['server-changed', expect.stringContaining('oauth.issuer')])
    expect(port.asked.some(({ url }) => url.includes('evil'))).toBe(false)
    expect(await look({ [OAUTH]: issuer }, { server }).found).toMatchObject({
      source: 'server',
      issuer: { issuer: ISSUER },
      resource: MCP,
    })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.052',
  async () => {
    await using target = await new Sink().start()
    const seen: string[] = []
    await using hostile = await new Sink((request, response) => {
      seen.push(request.url ?? '')
      if (request.url?.includes('/moved') === true)
        return void response.writeHead(302, { location: `http://127.0.0.1:${target.port}/x` }).end()
      if (request.url?.includes('/large') === true) return void response.writeHead(200).end('x'.repeat(2 * 1024 * 1024))
      // Nothing ever comes of any other path.
    }).start()
    const base = `http://127.0.0.1:${hostile.port}`
    const find = (path: string, more: object = {}) =>
      failureOf(discover({ server: { name: 'mail', url: `${base}${path}` }, port: realPort, ...more }))
    const moved = await find('/moved', { timeoutMs: 5_000, challenge: `Bearer resource_metadata="${base}/moved"` })
    expect(['endpoint-refused', 'timed-out']).toContain(moved.kind)
    expect(target.connections).toBe(0)
    expect((await find('/slow', { timeoutMs: 1_000 })).kind).toBe('timed-out')
    const stop = new AbortController()
    const waiting = find('/slow', { signal: stop.signal })
    stop.abort()
    expect((await waiting).kind).toBe('cancelled')
    expect(
      (await find('/large', { timeoutMs: 1_000, challenge: `Bearer resource_metadata="${base}/large"` })).kind,
    ).toMatch(/timed-out|answer-invalid/)
    expect(seen.some((url) => url.includes('/large'))).toBe(true)
    expect(await kindOf(look({ ...good, [AT_PATH]: portError('too-large', true) }).found)).toBe('answer-invalid')
    expect(await kindOf(look({ ...good, [AT_PATH]: portError('unreachable') }).found)).toBe('unreachable')
    const wide = {
      ...issuer,
      scopes_supported: Array.from({ length: 5_000 }, (_, at) => `scope-${at}`),
      dpop_signing_alg_values_supported: Array.from({ length: 5_000 }, () => 'x'),
    }
    const found = await look({ ...good, [OAUTH]: wide }).found
    expect([found.issuerScopes?.length, found.issuer.dpopAlgorithms?.length]).toEqual([200, 256])
  },
  TIMEOUT_MS,
)

verifies(
  'auth.077',
  async () => {
    // It compares parsed URLs, so the case of a host says nothing there; we are told to compare every character.
    const rows: readonly object[] = [
      {},
      { issuer: `${ISSUER}/` },
      { issuer: 'https://a.example' },
      { issuer: undefined },
      { issuer: 7 },
    ]
    for (const more of rows) {
      const document = { ...issuer, ...more }
      const response = new Response(JSON.stringify(document), { headers: { 'content-type': 'application/json' } })
      const theirs = await oauth4webapi.processDiscoveryResponse(new URL(ISSUER), response).then(
        () => 'taken',
        () => 'refused',
      )
      const ours = typeof (await kindOf(look({ ...good, [OAUTH]: document }).found)) === 'string' ? 'refused' : 'taken'
      expect([more, ours]).toEqual([more, theirs])
    }
    for (const claimed of [MCP, 'https://mcp.honest/mcp']) {
      const response = new Response(JSON.stringify({ ...resource, resource: claimed }), {
        headers: { 'content-type': 'application/json' },
      })
      const theirs = await oauth4webapi.processResourceDiscoveryResponse(new URL(MCP), response).then(
        () => 'taken',
        () => 'refused',
      )
      const ours =
        typeof (await kindOf(look({ ...good, [AT_PATH]: { ...resource, resource: claimed } }).found)) === 'string'
          ? 'refused'
          : 'taken'
      expect([claimed, ours]).toEqual([claimed, theirs])
    }
  },
  TIMEOUT_MS,
)

verifies(
  'auth.078',
  async () => {
    const canaries = new Canaries()
    const inQuery = canaries.plantPlain('query of a URL')
    const failures = [
      await failureOf(
        look({ ...good, [OAUTH]: { ...issuer, token_endpoint: `http://evil.example/t?key=${inQuery}` } }).found,
      ),
      await failureOf(
        look({ ...good, [AT_PATH]: { ...resource, resource: `https://evil.example/?key=${inQuery}` } }).found,
      ),
      await failureOf(look({ ...good, [OAUTH]: { ...issuer, issuer: `https://evil.example/?key=${inQuery}` } }).found),
      await failureOf(
        look(good, { challenge: `Bearer resource_metadata="http://evil.example/?key=${inQuery}"` }).found,
      ),
      await failureOf(look({ [AT_PATH]: inQuery, [AT_ROOT]: { resource: 7, secret: inQuery } }).found),
    ]
    canaries.watch('failures', { kind: 'value', value: failures })
    canaries.assertNowhere()
  },
  TIMEOUT_MS,
)
