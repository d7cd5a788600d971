// The fixtures for sign-ins do what they promise, judged by an independent OAuth client (`oauth4webapi`) and the SDK's own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import * as oauth from 'oauth4webapi'
import { describe, expect, test } from 'vitest'
import {
  type AuthorizationServer,
  Canaries,
  digestOf,
  INTROSPECTION_CLIENT,
  type ProtectedServer,
  type SignInPersonOptions,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
} from '../src/index.ts'
import { plainRequest } from '../src/plain-request.ts'

const REDIRECT = 'http://127.0.0.1:9/callback'
const PUBLIC = { client_id: 'public', redirect_uris: [REDIRECT] }

/** Every request on a connection of its own. */
async function fetchOnce(
  url: string,
  options: { readonly method: string; readonly headers: Readonly<Record<string, string>>; readonly body?: unknown },
): Promise<Response> {
  const { method, headers, body } = options
  const text = body === undefined || body === null ? {} : { body: String(body) }
  const form = body instanceof URLSearchParams ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
  const answer = await plainRequest(url, { method, headers: { ...form, ...headers }, ...text })
  const kept = new Headers()
  for (const [name, value] of Object.entries(answer.headers)) kept.set(name, String(value))
  return new Response(answer.body === '' ? null : answer.body, { status: answer.status, headers: kept })
}
const base = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: fetchOnce } as const

/** `oauth4webapi` at one authorization server, as one client. */
class Oracle {
  readonly as: oauth.AuthorizationServer
  readonly client: oauth.Client
  readonly auth: oauth.ClientAuth
  readonly dpop: oauth.DPoPHandle | undefined

  constructor(options: {
    readonly as: oauth.AuthorizationServer
    readonly client: oauth.Client
    readonly auth?: oauth.ClientAuth
    readonly dpop?: oauth.DPoPHandle
  }) {
    this.as = options.as
    this.client = options.client
    this.auth = options.auth ?? oauth.None()
    this.dpop = options.dpop
  }

  get #options(): typeof base & { DPoP?: oauth.DPoPHandle } {
    return { ...base, ...(this.dpop === undefined ? {} : { DPoP: this.dpop }) }
  }

  async signIn(
    resource: string,
    options: SignInPersonOptions & { readonly scope?: string } = {},
  ): Promise<oauth.TokenEndpointResponse> {
    const verifier = oauth.generateRandomCodeVerifier()
    const url = new URL(this.as.authorization_endpoint ?? '')
    const parameters = {
      client_id: this.client.client_id,
      redirect_uri: REDIRECT,
      response_type: 'code',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      resource,
      state: 'state',
      scope: options.scope ?? 'mcp mcp:read',
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    const callback = await signInPerson(options).visit(url.href)
    const answer = oauth.validateAuthResponse(this.as, this.client, new URL(callback), 'state')
    return this.#tokens(async () => {
      const response = await oauth.authorizationCodeGrantRequest(
        this.as,
        this.client,
        this.auth,
        answer,
        REDIRECT,
        verifier,
        { ...this.#options, additionalParameters: { resource } },
      )
      return oauth.processAuthorizationCodeResponse(this.as, this.client, response)
    })
  }

  refresh(token: string): Promise<oauth.TokenEndpointResponse> {
    return this.#tokens(async () => {
      const response = await oauth.refreshTokenGrantRequest(this.as, this.client, this.auth, token, this.#options)
      return oauth.processRefreshTokenResponse(this.as, this.client, response)
    })
  }

  async revoke(token: string): Promise<void> {
    await oauth.processRevocationResponse(await oauth.revocationRequest(this.as, this.client, this.auth, token, base))
  }

  async #tokens(ask: () => Promise<oauth.TokenEndpointResponse>): Promise<oauth.TokenEndpointResponse> {
    try {
      return await ask()
    } catch (error) {
      if (!oauth.isDPoPNonceError(error)) throw error
      return ask()
    }
  }
}

async function discover({ issuer }: AuthorizationServer): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer)
  return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { ...base, algorithm: 'oauth2' }))
}

async function oracleOf(server: AuthorizationServer, dpop?: oauth.DPoPHandle): Promise<Oracle> {
  const client = { client_id: 'public', token_endpoint_auth_method: 'none' }
  return new Oracle({ as: await discover(server), client, ...(dpop === undefined ? {} : { dpop }) })
}

const refreshOf = ({ refresh_token: token }: oauth.TokenEndpointResponse): string => token ?? 'none'
const errorOf = (error: unknown): unknown =>
  error instanceof oauth.ResponseBodyError ? { status: error.status, error: error.error } : error

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Asks a protected server for one thing by hand. */
async function ask(
  server: ProtectedServer,
  message: { readonly method: string; readonly params?: object },
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly challenge: string | undefined; readonly text: string }> {
  const meta = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }
  const answer = await plainRequest(server.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message, params: { ...message.params, ...meta } }),
  })
  return { status: answer.status, challenge: answer.headers['www-authenticate'], text: answer.body }
}

const call = (name: string): { method: string; params: object } => ({
  method: 'tools/call',
  params: { name, arguments: {} },
})
const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` })

describe('the authorization server', () => {
  test('gives out a rotated refresh token once, and revokes the grant of one that comes back', async () => {
    await using server = await startAuthorizationServer({ clients: [PUBLIC] })
    const oracle = await oracleOf(server)
    const first = await oracle.signIn('http://127.0.0.1:1/mcp')
    const second = await oracle.refresh(refreshOf(first))
    expect(second.refresh_token).not.toBe(first.refresh_token)
    await expect(oracle.refresh(refreshOf(first)).catch(errorOf)).resolves.toEqual({
      status: 400,
      error: 'invalid_grant',
    })
    await expect(oracle.refresh(refreshOf(second)).catch(errorOf)).resolves.toMatchObject({ error: 'invalid_grant' })
    const { tokenRequests, grantsRevoked, authorizations } = await server.stats()
    expect(tokenRequests.map(({ grantType, outcome, replay }) => [grantType, outcome, replay])).toEqual([
      ['authorization_code', 'issued', false],
      ['refresh_token', 'issued', false],
      ['refresh_token', 'error', true],
      ['refresh_token', 'error', false],
    ])
    expect(tokenRequests[1]?.presented).toBe(digestOf(refreshOf(first)))
    expect({ grantsRevoked, authorizations }).toEqual({ grantsRevoked: 1, authorizations: 1 })
  })

  test('lets only one of many requests with the same refresh token through', async () => {
    await using server = await startAuthorizationServer({ clients: [PUBLIC] })
    const oracle = await oracleOf(server)
    const token = refreshOf(await oracle.signIn('http://127.0.0.1:1/mcp'))
    await server.set({ hold: 'before-token' })
    const asked = Promise.allSettled([1, 2, 3].map(() => oracle.refresh(token)))
    await server.whenStats(({ waiting }) => waiting === 3)
    await server.set({ hold: undefined })
    expect((await asked).map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect((await server.stats()).tokenRequests.filter(({ replay }) => replay)).toHaveLength(2)
  })

  test('fails, drops and patches token answers as it is told to', async () => {
    await using server = await startAuthorizationServer({ clients: [PUBLIC] })
    const oracle = await oracleOf(server)
    const first = await oracle.signIn('http://127.0.0.1:1/mcp')
    await server.set({ failNext: { count: 1, status: 503, error: 'temporarily_unavailable' } })
    await expect(oracle.refresh(refreshOf(first)).catch(errorOf)).resolves.toMatchObject({ message: expect.anything() })
    await server.set({ omitRefreshToken: true, accessTokenSeconds: 7 })
    expect(await oracle.refresh(refreshOf(first))).toMatchObject({ expires_in: 7 })
    await server.set({ omitRefreshToken: undefined, tokenAnswer: { expires_in: null, scope: 'mcp' }, dropNext: 1 })
    await expect(oracle.refresh(refreshOf(first))).rejects.toThrow()
    const { tokenRequests } = await server.stats()
    expect(tokenRequests.map(({ outcome, dropped, replay }) => [outcome, dropped, replay])).toEqual([
      ['issued', false, false],
      ['error', false, false],
      ['issued', false, false],
      ['issued', true, false],
    ])
  })

  test('registers clients, revokes tokens and takes back the grants of an account', async () => {
    await using server = await startAuthorizationServer()
    const as = await discover(server)
    const response = await oauth.dynamicClientRegistrationRequest(
      as,
      {
        redirect_uris: [REDIRECT],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
      },
      base,
    )
    const client = await oauth.processDynamicClientRegistrationResponse(response)
    const oracle = new Oracle({ as, client })
    const ada = await oracle.signIn('http://127.0.0.1:1/mcp')
    const grace = await oracle.signIn('http://127.0.0.1:1/mcp', { account: 'grace' })
    await oracle.revoke(refreshOf(ada))
    await expect(oracle.refresh(refreshOf(ada)).catch(errorOf)).resolves.toMatchObject({ error: 'invalid_grant' })
    expect(await server.revokeGrant('grace')).toBe(1)
    await expect(oracle.refresh(refreshOf(grace)).catch(errorOf)).resolves.toMatchObject({ error: 'invalid_grant' })
    expect(await server.stats()).toMatchObject({ registrations: 1, revocations: 1, grantsRevoked: 2 })
  })

  test('sends back a refusal, a stop halfway, and fewer scopes than were asked for', async () => {
    await using server = await startAuthorizationServer({ clients: [PUBLIC] })
    const oracle = await oracleOf(server)
    const denied = await oracle.signIn('http://127.0.0.1:1/mcp', { consent: 'deny' }).catch((error: unknown) => error)
    expect(denied).toMatchObject({ error: 'access_denied' })
    expect(await oracle.signIn('http://127.0.0.1:1/mcp', { scopes: ['mcp'] })).toMatchObject({ scope: 'mcp' })
    await expect(oracle.signIn('http://127.0.0.1:1/mcp', { stopAt: 'consent' })).rejects.toThrow()
  })

  test('has a path, hostile documents and a hostile callback', async () => {
    await using server = await startAuthorizationServer({ clients: [PUBLIC], path: '/tenant' })
    const oracle = await oracleOf(server)
    expect(oracle.as.token_endpoint).toBe(`${server.issuer}/token`)
    expect(await oracle.signIn('http://127.0.0.1:1/mcp')).toMatchObject({ token_type: 'bearer' })
    await server.set({ callback: { iss: 'https://evil.example' }, metadata: { token_endpoint: null } })
    await expect(oracle.signIn('http://127.0.0.1:1/mcp')).rejects.toThrow('"iss"')
    expect((await discover(server)).token_endpoint).toBeUndefined()
    const oidc = await plainRequest(`${server.issuer}/.well-known/openid-configuration`)
    expect(JSON.parse(oidc.body)).toMatchObject({ issuer: server.issuer })
  })

  test('knows clients by their metadata documents, secrets and keys', async () => {
    const keys = await oauth.generateKeyPair('ES256', { extractable: true })
    const jwk = { ...(await crypto.subtle.exportKey('jwk', keys.publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }
    const machine = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] }
    const id = 'https://client.example/metadata.json'
    await using server = await startAuthorizationServer({
      clients: [
        { client_id: 'secret', client_secret: 'a secret of some length', ...machine },
        { client_id: 'key', jwks: { keys: [jwk] }, token_endpoint_auth_signing_alg: 'ES256', ...machine },
      ],
      knobs: {
        clientDocuments: {
          [id]: {
            client_id: id,
            redirect_uris: [REDIRECT],
            token_endpoint_auth_method: 'none',
            application_type: 'native',
          },
        },
      },
    })
    const as = await discover(server)
    const auths = {
      secret: oauth.ClientSecretBasic('a secret of some length'),
      key: oauth.PrivateKeyJwt({ key: keys.privateKey, kid: 'k' }),
    }
    for (const [name, auth] of Object.entries(auths)) {
      const client = { client_id: name }
      const parameters = { resource: 'http://127.0.0.1:1/mcp', scope: 'mcp:read' }
      const response = await oauth.clientCredentialsGrantRequest(as, client, auth, parameters, base)
      expect(await oauth.processClientCredentialsResponse(as, client, response)).toMatchObject({ scope: 'mcp:read' })
    }
    const oracle = new Oracle({ as, client: { client_id: id } })
    expect(await oracle.signIn('http://127.0.0.1:1/mcp')).toMatchObject({ scope: 'mcp mcp:read' })
  })

  test('ends soon after the process that started it was killed', async () => {
    const source = new URL('../src/index.ts', import.meta.url).href
    const script = `const { startAuthorizationServer } = await import(${JSON.stringify(source)})
      process.stdout.write(String((await startAuthorizationServer()).pid) + '\\n')`
    const child = spawn(process.execPath, ['--conditions=@convoke/source', '--input-type=module', '-e', script])
    const [printed] = (await once(child.stdout, 'data')) as [Buffer]
    const pid = Number(printed)
    expect(isAlive(pid)).toBe(true)
    const ended = once(child, 'close')
    child.kill('SIGKILL')
    await ended
    await expect.poll(() => isAlive(pid), { timeout: 20_000 }).toBe(false)
  })

  test('lets a device be approved', async () => {
    await using server = await startAuthorizationServer({ clients: [PUBLIC] })
    const { as, client } = await oracleOf(server)
    const parameters = { resource: 'http://127.0.0.1:1/mcp', scope: 'mcp' }
    const answer = await oauth.processDeviceAuthorizationResponse(
      as,
      client,
      await oauth.deviceAuthorizationRequest(as, client, oauth.None(), parameters, base),
    )
    await signInPerson({ account: 'grace' }).approveDevice(server.issuer, answer.user_code)
    const response = await oauth.deviceCodeGrantRequest(as, client, oauth.None(), answer.device_code, base)
    await oauth.processDeviceCodeResponse(as, client, response)
    expect((await server.stats()).tokenRequests).toMatchObject([{ account: 'grace', outcome: 'issued' }])
  })
})

describe('the protected server', () => {
  test('tells who it trusts, and refuses what is not for it', async () => {
    await using authorization = await startAuthorizationServer({ clients: [PUBLIC] })
    await using server = await startProtectedServer({ issuer: authorization.issuer })
    const oracle = await oracleOf(authorization)
    const document = `${new URL(server.url).origin}/.well-known/oauth-protected-resource/mcp`
    expect(await ask(server, call('echo'))).toMatchObject({
      status: 401,
      challenge: `Bearer scope="mcp", resource_metadata="${document}"`,
    })
    expect(JSON.parse((await plainRequest(document)).body)).toMatchObject({
      resource: server.url,
      authorization_servers: [authorization.issuer],
    })
    const { access_token: foreign } = await oracle.signIn('http://127.0.0.1:1/mcp')
    expect(await ask(server, call('echo'), bearer(foreign))).toMatchObject({
      status: 401,
      challenge: expect.stringContaining('error="invalid_token"'),
    })
    const { access_token: token } = await oracle.signIn(server.url, { account: 'grace' })
    const who = await ask(server, call('whoami'), bearer(token))
    expect(who).toMatchObject({ status: 200, text: expect.stringContaining('grace') })
    expect(await ask(server, call('read'), bearer(token))).toMatchObject({ status: 200 })
    expect(await ask(server, call('write'), bearer(token))).toMatchObject({
      status: 403,
      challenge: expect.stringContaining('error="insufficient_scope", scope="mcp:write"'),
    })
    await server.set({ refuseTokens: [digestOf(token)] })
    expect(await ask(server, call('echo'), bearer(token))).toMatchObject({ status: 401 })
    const { tokens, status401, status403, withoutToken } = await server.stats()
    expect({ status401, status403, withoutToken }).toEqual({ status401: 3, status403: 1, withoutToken: 1 })
    expect(tokens.at(-1)).toEqual({ digest: digestOf(token), requests: 4, refused401: 1, refused403: 1 })
  })

  for (const accessTokens of ['opaque', 'jwt'] as const)
    test(`knows when a token of the kind "${accessTokens}" is over`, async () => {
      await using authorization = await startAuthorizationServer({ clients: [PUBLIC], accessTokens })
      await using server = await startProtectedServer({ issuer: authorization.issuer })
      const oracle = await oracleOf(authorization)
      const { access_token: long, refresh_token: refresh = '' } = await oracle.signIn(server.url)
      expect(await ask(server, call('echo'), bearer(long))).toMatchObject({ status: 200 })
      await authorization.set({ accessTokenSeconds: 1 })
      const { access_token: short } = await oracle.refresh(refresh)
      await expect
        .poll(async () => (await ask(server, call('echo'), bearer(short))).status, { timeout: 20_000 })
        .toBe(401)
      const introspection = await plainRequest(`${authorization.issuer}/token/introspection`, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          authorization: `Basic ${Buffer.from(`${INTROSPECTION_CLIENT.id}:${INTROSPECTION_CLIENT.secret}`).toString('base64')}`,
        },
        body: `token=${short}`,
      })
      if (accessTokens === 'opaque') expect(JSON.parse(introspection.body)).toEqual({ active: false })
      await authorization.revokeGrant('ada')
      const status = accessTokens === 'jwt' ? 200 : 401
      expect(await ask(server, call('echo'), bearer(long))).toMatchObject({ status })
    })

  test('serves both eras of the protocol to a client that has a token', async () => {
    await using authorization = await startAuthorizationServer({ clients: [PUBLIC] })
    await using server = await startProtectedServer({ issuer: authorization.issuer })
    const { access_token: token } = await (await oracleOf(authorization)).signIn(server.url)
    for (const mode of ['legacy', { pin: '2026-07-28' }] as const) {
      const client = new Client({ name: 'oracle', version: '1.0.0' }, { versionNegotiation: { mode } })
      const transport = new StreamableHTTPClientTransport(new URL(server.url), {
        requestInit: { headers: bearer(token) },
      })
      try {
        await client.connect(transport)
        expect((await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).content).toMatchObject([
          { text: 'hi' },
        ])
      } finally {
        await transport.terminateSession().catch(() => undefined)
        await client.close()
      }
    }
    const { rpc } = await server.stats()
    expect(rpc).toMatchObject({ initialize: 1, 'tools/call': 2 })
  })

  test('moves to another authorization server, and knows only the tokens of that one', async () => {
    await using before = await startAuthorizationServer({ clients: [PUBLIC] })
    await using after = await startAuthorizationServer({ clients: [PUBLIC] })
    await using server = await startProtectedServer({ issuer: before.issuer })
    const { access_token: old } = await (await oracleOf(before)).signIn(server.url)
    const { access_token: young } = await (await oracleOf(after)).signIn(server.url)
    expect((await ask(server, call('echo'), bearer(old))).status).toBe(200)
    expect((await ask(server, call('echo'), bearer(young))).status).toBe(401)
    await server.set({ authorizationServers: [after.issuer] })
    expect((await ask(server, call('echo'), bearer(old))).status).toBe(401)
    expect((await ask(server, call('echo'), bearer(young))).status).toBe(200)
  })

  test('challenges, describes itself and holds back as it is told to', async () => {
    await using server = await startProtectedServer({
      issuer: 'http://127.0.0.1:1',
      knobs: { staticToken: 'other', challengeScope: '' },
    })
    const { origin } = new URL(server.url)
    expect((await ask(server, call('echo'), bearer('static token'))).status).toBe(401)
    await server.set({ staticToken: 'static' })
    expect((await ask(server, call('echo'), bearer('static'))).status).toBe(200)
    expect((await ask(server, call('echo'))).challenge).toBe('Bearer')
    const rows = [
      [{ challenge: 'none' }, undefined],
      [{ challenge: 'bare' }, 'Bearer'],
      [{ challenge: { text: 'Basic realm="x"' } }, 'Basic realm="x"'],
    ] as const
    for (const [knobs, challenge] of rows) {
      await server.set(knobs)
      expect(await ask(server, call('echo'))).toMatchObject({ status: 401, challenge })
    }
    await server.set({ staticToken: undefined, documents: 'root', metadata: { resource: 'https://evil.example/mcp' } })
    const status = async (path: string): Promise<number> => (await plainRequest(`${origin}/.well-known/${path}`)).status
    expect(await status('oauth-protected-resource/mcp')).toBe(404)
    expect(await status('oauth-protected-resource')).toBe(200)
    await server.set({ answerAll: 403, hold: true })
    const held = ask(server, call('echo'))
    await server.whenStats(({ waiting }) => waiting === 1)
    await server.set({ hold: undefined })
    expect((await held).status).toBe(403)
    await server.set({ getStream: 405 })
    expect((await plainRequest(server.url)).status).toBe(405)
    await expect(server.set({ typo: 1 } as object)).rejects.toThrow('There is no knob')
  })

  test('wants a proof with a nonce for a token that is bound to a key', async () => {
    await using authorization = await startAuthorizationServer({
      clients: [PUBLIC],
      knobs: { dpop: 'required', dpopNonce: true },
    })
    await using server = await startProtectedServer({
      issuer: authorization.issuer,
      knobs: { dpop: 'required', dpopNonce: true },
    })
    const dpop = oauth.DPoP({}, await oauth.generateKeyPair('ES256'))
    const oracle = await oracleOf(authorization, dpop)
    const tokens = await oracle.signIn(server.url)
    expect(tokens.token_type).toBe('dpop')
    expect((await authorization.stats()).tokenRequests.map(({ error }) => error ?? 'none')).toEqual([
      'use_dpop_nonce',
      'none',
    ])
    const plain = await oracleOf(authorization)
    await expect(plain.refresh(refreshOf(tokens)).catch(errorOf)).resolves.toMatchObject({
      error: 'invalid_dpop_proof',
    })
    const message = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      ...call('echo'),
      params: { name: 'echo', arguments: {}, _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
    })
    const send = (handle?: oauth.DPoPHandle, options: typeof base = base): Promise<Response> =>
      oauth.protectedResourceRequest(
        tokens.access_token,
        'POST',
        new URL(server.url),
        new Headers({ 'content-type': 'application/json' }),
        message,
        { ...options, ...(handle === undefined ? {} : { DPoP: handle }) },
      )
    const asBearer: typeof fetchOnce = (url, { headers, ...rest }) =>
      fetchOnce(url, { ...rest, headers: { ...headers, authorization: bearer(tokens.access_token).authorization } })
    const first = await send(dpop).catch((error: unknown) => error)
    expect(oauth.isDPoPNonceError(first)).toBe(true)
    expect((await send(dpop)).status).toBe(200)
    await expect(send()).rejects.toThrow()
    await expect(send(dpop, { ...base, [oauth.customFetch]: asBearer })).rejects.toThrow()
    const other = oauth.DPoP({}, await oauth.generateKeyPair('ES256'))
    await send(other).catch(() => undefined)
    await expect(send(other)).rejects.toThrow()
    expect((await server.stats()).proofs).toBe(1)
  })
})

describe('canaries', () => {
  test('are found in every form in which a secret comes out', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'convoke-canaries-'))
    try {
      const canaries = new Canaries()
      const secret = canaries.plant('secret')
      await mkdir(join(folder, 'deep'))
      await writeFile(join(folder, 'deep', 'out.log'), `x${encodeURIComponent(secret)}`)
      await writeFile(join(folder, 'allowed'), secret)
      const cause = new Error(`token ${secret}`)
      canaries.watch('folder', { kind: 'path', path: folder, except: ['allowed'] })
      canaries.watch('error', { kind: 'value', value: new Error('failed', { cause }) })
      canaries.watch('header', `Basic ${Buffer.from(`client:${secret}`).toString('base64')}`)
      canaries.watch('later', { kind: 'later', content: () => JSON.stringify({ secret }) })
      canaries.watch('clean', 'nothing here')
      const found = canaries.found().join('\n')
      expect(() => canaries.assertNowhere()).toThrow('secret (percent-encoded) in folder')
      for (const place of ['in error', 'in error as JSON', '(base64) in header', '(JSON-escaped) in later'])
        expect(found).toContain(place)
      expect(found).not.toMatch(/clean|allowed/)
      expect(found).not.toContain(secret)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('prove nothing when nothing was planted or watched', () => {
    const canaries = new Canaries()
    expect(() => canaries.assertNowhere()).toThrow('Nothing')
    canaries.plantPlain('token')
    expect(() => canaries.assertNowhere()).toThrow('Nothing')
    canaries.watch('output', 'clean')
    expect(() => canaries.assertNowhere()).not.toThrow()
  })
})
