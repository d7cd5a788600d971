// Sign-ins at a real authorization server in a process of its own, with a person who clicks.
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import {
  type AuthorizationServer,
  type AuthorizationServerOptions,
  Canaries,
  freePort,
  type ProtectedServer,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  verifies,
} from '@convoke/testkit'
import { expect } from 'vitest'
import type { Grant } from '../src/auth/grant.ts'
import { canBind } from '../src/auth/oauth/dpop.ts'
import type { SignInOptions } from '../src/auth/oauth/flow.ts'
import { machineGrant, openDpop, probe, refreshTokens, revokeTokens, signIn } from '../src/auth/oauth/index.ts'
import { failureOf, kindOf, realPort, TIMEOUT_MS } from './oauth-support.ts'

interface Place extends AsyncDisposable {
  readonly authorization: AuthorizationServer
  readonly server: ProtectedServer
  /** Signs Ada in. */
  signIn(options?: Partial<SignInOptions>): Promise<Grant>
}

async function startPlace(options: AuthorizationServerOptions = {}): Promise<Place> {
  const authorization = await startAuthorizationServer(options)
  const server = await startProtectedServer({ issuer: authorization.issuer })
  return {
    authorization,
    server,
    signIn: (more) =>
      signIn({
        server: { name: 'mail', url: server.url },
        openPage: async (url) => void (await signInPerson().signIn(url)),
        port: realPort,
        ...more,
      }),
    async [Symbol.asyncDispose]() {
      await server.close()
      await authorization.close()
    },
  }
}

/** What the MCP server makes of a token. */
async function statusWith(url: string, headers: Record<string, string>): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const answer = await realPort.fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body,
    addresses: 'any',
    answerBytesMax: 1_000_000,
    timeoutMs: 30_000,
  })
  return answer.status
}

verifies(
  'auth.061',
  async () => {
    await using place = await startPlace()
    const pages: unknown[] = []
    const grant = await place.signIn({
      onPage: (page) => void pages.push({ ...page, url: new URL(page.url).pathname }),
    })
    expect(grant).toMatchObject({
      issuer: { issuer: place.authorization.issuer },
      resource: place.server.url,
      client: { kind: 'registered' },
      tokens: { type: 'Bearer', refreshToken: expect.any(String), expiresAtMs: expect.any(Number) },
      requestedScopes: expect.arrayContaining(['mcp']),
    })
    expect(pages).toEqual([
      {
        url: expect.any(String),
        redirectUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback\/[\w-]{12}$/),
        listens: true,
      },
    ])
    expect(await statusWith(place.server.url, { authorization: `Bearer ${grant.tokens.accessToken}` })).not.toBe(401)
    const { tokenRequests } = await place.authorization.stats()
    expect(tokenRequests).toMatchObject([
      { grantType: 'authorization_code', resource: place.server.url, account: 'ada' },
    ])
  },
  TIMEOUT_MS,
)

verifies(
  'auth.062',
  async () => {
    const canaries = new Canaries()
    const secret = canaries.plant('client secret')
    await using place = await startPlace({
      clients: [
        {
          client_id: 'client:with%colon',
          client_secret: secret,
          redirect_uris: [],
          token_endpoint_auth_method: 'client_secret_basic',
        },
      ],
    })
    const port = await freePort()
    const oauth = { clientId: 'client:with%colon', callbackPort: port }
    const redirect = `http://127.0.0.1:${port}/callback`
    const grant = await kindOf(
      place.signIn({
        server: { name: 'mail', url: place.server.url, oauth: { ...oauth, callbackUrl: redirect } },
        clientSecret: secret,
        timeoutMs: 1_000,
      }),
    )
    expect(grant).toBe('timed-out') // its redirect URI is not registered: the page stays at the authorization server
    await using known = await startPlace({
      clients: [
        {
          client_id: 'client:with%colon',
          client_secret: secret,
          redirect_uris: [redirect],
          token_endpoint_auth_method: 'client_secret_basic',
          application_type: 'native',
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
    })
    const signedIn = await known.signIn({
      server: { name: 'mail', url: known.server.url, oauth: { ...oauth, callbackUrl: redirect } },
      clientSecret: secret,
    })
    expect(signedIn.client).toEqual({ id: 'client:with%colon', kind: 'configured' })
    canaries.watch('grant', { kind: 'value', value: { ...signedIn, tokens: undefined } })
    const refreshed = await refreshTokens(
      {
        grant: signedIn,
        server: { url: known.server.url },
        refreshToken: signedIn.tokens.refreshToken ?? '',
        clientSecret: secret,
      },
      realPort,
    )
    expect(refreshed).toMatchObject({ kind: 'refreshed', rotated: true })
    const wrong = await refreshTokens(
      { grant: signedIn, server: { url: known.server.url }, refreshToken: 'x', clientSecret: 'not it' },
      realPort,
    )
    expect(wrong).toMatchObject({ kind: 'rejected', reason: 'client', error: 'invalid_client' })
    canaries.watch('outcome', { kind: 'value', value: wrong })
    canaries.assertNowhere()
    expect((await known.authorization.stats()).registrations).toBe(0)
  },
  TIMEOUT_MS,
)

verifies(
  'auth.063',
  async () => {
    const document = 'https://convoke.example/client.json'
    const port = await freePort()
    const oauth = { callbackUrl: `http://127.0.0.1:${port}/callback` }
    await using place = await startPlace({
      knobs: {
        clientDocuments: {
          [document]: {
            client_id: document,
            client_name: 'Convoke',
            redirect_uris: [oauth.callbackUrl],
            application_type: 'native',
            token_endpoint_auth_method: 'none',
            grant_types: ['authorization_code', 'refresh_token'],
            response_types: ['code'],
          },
        },
      },
    })
    const grant = await place.signIn({
      server: { name: 'mail', url: place.server.url, oauth },
      clientMetadataUrl: document,
    })
    expect(grant.client).toEqual({ id: document, kind: 'document' })
    expect((await place.authorization.stats()).registrations).toBe(0)
  },
  TIMEOUT_MS,
)

verifies(
  'auth.064',
  async () => {
    await using place = await startPlace({ knobs: { refuseScopes: ['mcp:read'] } })
    await place.server.set({ metadata: { scopes_supported: ['mcp', 'mcp:read'] } })
    let dropped = 0
    const grant = await place.signIn({ onScopesDropped: () => void dropped++ })
    expect([dropped, grant.requestedScopes, grant.tokens.scopes]).toEqual([1, undefined, ['mcp']])
    const own = await failureOf(place.signIn({ scopes: ['mcp:read'] }))
    expect([own.kind, own.details.error]).toEqual(['scope-refused', 'invalid_scope'])
    const denied = await failureOf(
      place.signIn({
        scopes: ['mcp'],
        openPage: async (url) => void (await signInPerson({ consent: 'deny' }).signIn(url)),
      }),
    )
    expect([denied.kind, denied.details.error]).toEqual(['provider-refused', 'access_denied'])
    expect(
      await place.signIn({
        stepUp: { scopes: ['mcp'] },
        challenge: 'Bearer error="insufficient_scope", scope="mcp:write"',
      }),
    ).toMatchObject({
      requestedScopes: ['mcp', 'mcp:write', 'offline_access'],
      tokens: { scopes: expect.arrayContaining(['mcp', 'mcp:write']) },
    })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.066',
  async () => {
    await using place = await startPlace()
    const canaries = new Canaries()
    const described = canaries.plantPlain('error text of somebody else')
    for (const callback of [
      { iss: 'https://other.example' },
      { iss: null },
      { iss: `${place.authorization.issuer}/` },
      { iss: 'https://other.example', code: null, error: 'access_denied', error_description: described },
    ]) {
      await place.authorization.set({ callback })
      const failure = await failureOf(place.signIn())
      expect([callback, failure.kind]).toEqual([callback, 'issuer-mismatch'])
      canaries.watch('failure', { kind: 'value', value: failure })
    }
    for (const callback of [{ state: 'another' }, { state: null }]) {
      await place.authorization.set({ callback })
      expect(await kindOf(place.signIn({ timeoutMs: 1_500 }))).toBe('timed-out')
    }
    // Nothing of these was ever redeemed.
    expect((await place.authorization.stats()).tokenRequests).toEqual([])
    canaries.assertNowhere()
  },
  TIMEOUT_MS,
)

verifies(
  'auth.068',
  async () => {
    await using place = await startPlace()
    const grant = await place.signIn()
    const server = { url: place.server.url }
    const first = await refreshTokens({ grant, server, refreshToken: grant.tokens.refreshToken ?? '' }, realPort)
    if (first.kind !== 'refreshed') throw new Error(first.because)
    expect(first).toMatchObject({ rotated: true, tokens: { type: 'Bearer', scopes: expect.arrayContaining(['mcp']) } })
    await place.authorization.set({ omitRefreshToken: true, rotation: 'keep', tokenAnswer: { scope: null } })
    const second = await refreshTokens(
      { grant: { ...grant, tokens: first.tokens }, server, refreshToken: first.tokens.refreshToken ?? '' },
      realPort,
    )
    expect(second).toMatchObject({
      kind: 'refreshed',
      rotated: false,
      tokens: { refreshToken: first.tokens.refreshToken, scopes: first.tokens.scopes },
    })
    // The used one again: everything is over.
    expect(
      await refreshTokens({ grant, server, refreshToken: grant.tokens.refreshToken ?? '' }, realPort),
    ).toMatchObject({ kind: 'rejected', reason: 'grant', error: 'invalid_grant' })
    const { tokenRequests } = await place.authorization.stats()
    expect(
      tokenRequests
        .filter(({ grantType }) => grantType === 'refresh_token')
        .map(({ resource, replay }) => (replay ? 'replay' : resource)),
    ).toEqual([place.server.url, place.server.url, 'replay'])
  },
  TIMEOUT_MS,
)

verifies(
  'auth.069',
  async () => {
    await using place = await startPlace()
    const grant = await place.signIn()
    const refresh = (more: object = {}) =>
      refreshTokens(
        { grant, server: { url: place.server.url }, refreshToken: grant.tokens.refreshToken ?? '', ...more },
        realPort,
      )
    const rows = [
      [{ failNext: { count: 1, status: 503 } }, { kind: 'failed', sent: 'answered', retryable: true }],
      [
        { failNext: { count: 1, status: 429, error: 'slow_down' } },
        { kind: 'failed', sent: 'answered', retryable: true },
      ],
      [{ failNext: { count: 1, status: 400, error: 'invalid_client' } }, { kind: 'rejected', reason: 'client' }],
      [{ failNext: { count: 1, status: 400, error: 'invalid_target' } }, { kind: 'rejected', reason: 'other' }],
      [{ failNext: { count: 1, status: 200, body: 'hello' } }, { kind: 'failed', sent: 'maybe', retryable: false }],
      [{ failNext: { count: 1, status: 403, body: 'who are you' } }, { kind: 'failed', sent: 'answered' }],
    ] as const
    for (const [knobs, outcome] of rows) {
      await place.authorization.set(knobs)
      expect([knobs, await refresh()]).toMatchObject([knobs, outcome])
    }
    await place.authorization.set({ failNext: undefined, dropNext: 1 })
    expect(await refresh()).toMatchObject({ kind: 'failed', sent: 'maybe', retryable: true })
    await place.authorization.set({ hold: 'before-token' })
    const stop = new AbortController()
    const aborted = refresh({ signal: stop.signal })
    await place.authorization.whenStats(({ waiting }) => waiting === 1)
    stop.abort()
    expect(await aborted).toMatchObject({ kind: 'failed', sent: 'maybe', retryable: true })
    expect(await refresh({ timeoutMs: 500 })).toMatchObject({ kind: 'failed', sent: 'maybe', retryable: true })
    await place.authorization.close()
    expect(await refresh()).toMatchObject({ kind: 'failed', sent: 'no', retryable: true })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.070',
  async () => {
    await using place = await startPlace()
    const grant = await place.signIn()
    const old = {
      ...grant,
      issuer: { ...grant.issuer, tokenEndpoint: `${place.authorization.issuer}/token-of-last-year` },
    }
    // The server itself names somebody else now, and is not asked.
    await place.server.set({ authorizationServers: ['https://elsewhere.example'] })
    const outcome = await refreshTokens(
      { grant: old, server: { url: place.server.url }, refreshToken: grant.tokens.refreshToken ?? '' },
      realPort,
    )
    expect(outcome).toMatchObject({ kind: 'refreshed' })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.071',
  async () => {
    await using place = await startPlace()
    const grant = await place.signIn()
    const server = { url: place.server.url }
    expect(await revokeTokens({ grant, server }, realPort)).toEqual({ kind: 'revoked' })
    expect(await place.authorization.stats()).toMatchObject({ revocations: 2, grantsRevoked: 1 })
    expect(await statusWith(place.server.url, { authorization: `Bearer ${grant.tokens.accessToken}` })).toBe(401)
    const { revocationEndpoint: _, ...issuer } = grant.issuer
    expect(await revokeTokens({ grant: { ...grant, issuer }, server }, realPort)).toEqual({ kind: 'unsupported' })
    await place.authorization.close()
    expect(await revokeTokens({ grant, server }, realPort)).toMatchObject({ kind: 'failed' })
  },
  TIMEOUT_MS,
)

verifies(
  'auth.072',
  async () => {
    await using place = await startPlace({ knobs: { dpop: 'required', dpopNonce: true } })
    await place.server.set({ dpop: 'required' })
    const grant = await place.signIn()
    expect(canBind(grant.issuer.dpopAlgorithms)).toBe(true)
    expect(grant.tokens.type).toBe('DPoP')
    const { accessToken } = grant.tokens
    const dpop = await openDpop(grant.dpopKey ?? {})
    const url = place.server.url
    const proof = await dpop.proof({ method: 'POST', url, accessToken })
    expect(await statusWith(url, { authorization: `DPoP ${accessToken}`, dpop: proof })).not.toBe(401)
    expect(await statusWith(url, { authorization: `Bearer ${accessToken}` })).toBe(401)
    const outcome = await refreshTokens(
      { grant, server: { url }, refreshToken: grant.tokens.refreshToken ?? '' },
      realPort,
    )
    expect(outcome).toMatchObject({ kind: 'refreshed', tokens: { type: 'DPoP' } })
    // The same key, from what a record keeps of it.
    const kept = await openDpop(JSON.parse(JSON.stringify(grant.dpopKey)))
    expect(kept.thumbprint).toBe(dpop.thumbprint)
    await place.authorization.set({ tokenAnswer: { token_type: 'Bearer' } })
    expect(await kindOf(place.signIn())).toBe('answer-invalid')
  },
  TIMEOUT_MS,
)

verifies(
  'auth.073',
  async () => {
    const canaries = new Canaries()
    const clientSecret = canaries.plant('client secret')
    const { privateKey, publicKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    canaries.add('private key', privateKey.split('\n')[1] ?? '')
    const jwk = createPublicKey(publicKey).export({ format: 'jwk' })
    await using place = await startPlace({
      clients: [
        {
          client_id: 'machine',
          client_secret: clientSecret,
          redirect_uris: [],
          grant_types: ['client_credentials'],
          response_types: [],
          scope: 'mcp',
        },
        {
          client_id: 'signer',
          redirect_uris: [],
          grant_types: ['client_credentials'],
          response_types: [],
          token_endpoint_auth_method: 'private_key_jwt',
          jwks: { keys: [jwk] },
          scope: 'mcp',
        },
      ],
    })
    const server = { name: 'mail', url: place.server.url, scopes: ['mcp'] }
    const expectedIssuer = place.authorization.issuer
    const ask = { server, expectedIssuer, port: realPort }
    const shared = await machineGrant({
      ...ask,
      credentials: { kind: 'client-secret', clientId: 'machine', clientSecret },
    })
    expect(shared).toMatchObject({
      client: { id: 'machine', kind: 'configured' },
      tokens: { type: 'Bearer', scopes: ['mcp'] },
      resource: server.url,
    })
    expect(shared.tokens.refreshToken).toBeUndefined()
    const signed = await machineGrant({ ...ask, credentials: { kind: 'private-key', clientId: 'signer', privateKey } })
    expect(await statusWith(server.url, { authorization: `Bearer ${signed.tokens.accessToken}` })).not.toBe(401)
    const before = (await place.authorization.stats()).tokenRequests.length
    const failures = [
      await failureOf(
        machineGrant({
          ...ask,
          expectedIssuer: `${expectedIssuer}/`,
          credentials: { kind: 'client-secret', clientId: 'machine', clientSecret },
        }),
      ),
      await failureOf(
        machineGrant({
          ...ask,
          credentials: { kind: 'private-key', clientId: 'signer', privateKey: privateKey.slice(0, 100) },
        }),
      ),
    ]
    expect(failures.map(({ kind }) => kind)).toEqual(['server-changed', 'settings-invalid'])
    expect((await place.authorization.stats()).tokenRequests.length).toBe(before)
    const refused = await failureOf(
      machineGrant({ ...ask, credentials: { kind: 'client-secret', clientId: 'signer', clientSecret } }),
    )
    expect([refused.kind, refused.details.error]).toEqual(['provider-refused', 'invalid_client'])
    canaries.watch('failures', { kind: 'value', value: [...failures, refused] })
    canaries.assertNowhere()
  },
  TIMEOUT_MS,
)

verifies(
  'auth.053',
  async () => {
    await using place = await startPlace()
    const look = (url: string) => probe({ server: { name: 'mail', url }, port: realPort })
    expect(await look(place.server.url)).toEqual({
      kind: 'sign-in',
      issuer: place.authorization.issuer,
      scopes: expect.any(Array),
    })
    await place.authorization.set({ metadata: { code_challenge_methods_supported: ['plain'] } })
    expect(await look(place.server.url)).toEqual({ kind: 'unusable', because: expect.stringContaining('S256') })
    await place.server.set({ documents: 'none' })
    // Without a document only the server itself can tell, and it lets nobody in.
    expect(await look(place.server.url)).toMatchObject({ kind: 'sign-in' })
    expect(await look(`http://127.0.0.1:${await freePort()}/mcp`)).toMatchObject({ kind: 'unreachable' })
  },
  TIMEOUT_MS,
)
