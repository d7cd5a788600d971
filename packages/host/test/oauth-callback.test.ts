// The callback on this machine, with everybody who may come by, and a whole sign-in around it at an authorization server that is a script.
import { connect } from 'node:net'
import { Canaries, freePort, verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { openCallback, planCallback } from '../src/auth/oauth/callback.ts'
import type { SignInOptions } from '../src/auth/oauth/flow.ts'
import { machineGrant, refreshTokens, signIn } from '../src/auth/oauth/index.ts'
import type { OAuthPort } from '../src/auth/oauth/port.ts'
import { failureOf, kindOf, portError, type Scripted, TIMEOUT_MS, tablePort } from './oauth-support.ts'

const MCP = 'https://mcp.example/mcp'
const ISSUER = 'https://as.example'
const TOKEN = `${ISSUER}/token`

const documents = {
  'https://mcp.example/.well-known/oauth-protected-resource/mcp': { resource: MCP, authorization_servers: [ISSUER] },
  [`${ISSUER}/.well-known/oauth-authorization-server`]: {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize?tenant=1`,
    token_endpoint: TOKEN,
    registration_endpoint: `${ISSUER}/register`,
    code_challenge_methods_supported: ['S256'],
  },
  [`${ISSUER}/register`]: { client_id: 'me' },
}

/** Sends bytes as they are and reads to the end. @returns the status and the whole text; 0: the connection ended without an answer. */
function sendRaw(port: number, text: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    let all = ''
    const end = (): void => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(all)?.[1] ?? 0), text: all })
    socket.on('data', (bytes: Buffer) => {
      all += bytes.toString()
    })
    socket.once('error', end)
    socket.once('close', end)
  })
}

interface Line {
  readonly target: string
  readonly method?: string
  readonly hosts?: readonly string[]
}

function get(port: number, { target, method = 'GET', hosts = [`127.0.0.1:${port}`] }: Line) {
  const headers = hosts.map((host) => `Host: ${host}\r\n`).join('')
  return sendRaw(port, `${method} ${target} HTTP/1.1\r\n${headers}\r\n`)
}

function isClosed(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', () => resolve(true))
  })
}

function planned() {
  const { bind, url } = planCallback(MCP, {})
  if (bind === undefined) throw new Error('it listens')
  return { bind, url }
}

verifies(
  'auth.056',
  async () => {
    await using callback = await openCallback(planned())
    const url = new URL(callback.redirectUrl)
    const port = Number(url.port)
    const path = url.pathname
    const right = `${path}?code=C&state=STATE`
    const own = `127.0.0.1:${port}`
    // Before anybody waits.
    expect((await get(port, { target: right })).status).toBe(400)
    let answer: unknown
    const received = callback.receive('STATE').then((value) => {
      answer = value
    })
    const strays: readonly Line[] = [
      { target: path },
      { target: `${path}?code=C` },
      { target: `${path}?code=C&state=` },
      { target: `${path}?code=C&state=STATe` },
      { target: `${path}?code=C&code=D&state=STATE` },
      { target: `${path}?code=C&state=STATE&state=STATE` },
      { target: `${path}?error=access_denied&state=other` },
      { target: `${path}/?code=C&state=STATE` },
      { target: `${path.toUpperCase()}?code=C&state=STATE` },
      { target: `/callback?code=C&state=STATE` },
      { target: `/x/..${right}` },
      { target: `http://evil.example${right}` },
      { target: `http://${own}${right}` },
      { target: right, method: 'POST' },
      { target: right, method: 'HEAD' },
      { target: right, method: 'OPTIONS' },
      { target: right, hosts: ['evil.example'] },
      { target: right, hosts: [`evil.example:${port}`] },
      { target: right, hosts: [`localhost:${port}`] },
      { target: right, hosts: [`127.0.0.1`] },
      { target: right, hosts: [`${own}.`] },
      { target: right, hosts: [own, own] },
      { target: right, hosts: [own, 'evil.example'] },
      { target: right, hosts: [] },
      { target: `${path}?code=${'C'.repeat(10_000)}&state=STATE` },
      { target: `${path}?code=${'C'.repeat(30_000)}&state=STATE` },
    ]
    for (const line of strays) {
      const { status } = await get(port, line)
      expect([line, status === 400 || status === 0]).toEqual([line, true])
    }
    await sendRaw(port, 'hello\r\n\r\n')
    for (let guess = 0; guess < 500; guess++) await get(port, { target: `${path}?code=C&state=${guess}` })
    expect(answer).toBeUndefined()
    const good = await get(port, { target: `${right}&iss=https%3A%2F%2Fas.example&session_state=x` })
    await received
    expect([good.status, answer]).toEqual([200, { kind: 'code', code: 'C', iss: 'https://as.example' }])
    // Once.
    expect((await get(port, { target: right })).status).toBe(400)
  },
  TIMEOUT_MS,
)

verifies(
  'auth.059',
  async () => {
    const canaries = new Canaries()
    const [code, state, description] = ['code', 'state', 'description'].map((name) => canaries.plantPlain(name))
    for (const query of [
      `code=${code}&state=${state}`,
      `error=${description}&error_description=${description}&state=${state}`,
      `code=${code}&state=x`,
    ]) {
      await using callback = await openCallback(planned())
      const { port, pathname } = new URL(callback.redirectUrl)
      void callback.receive(String(state))
      const { text } = await get(Number(port), { target: `${pathname}?${query}` })
      canaries.watch(query.slice(0, 5), text)
      expect(text).not.toMatch(/<script|<img|<link|<style|https?:/i)
      for (const header of [
        "content-security-policy: default-src 'none'; frame-ancestors 'none'",
        'referrer-policy: no-referrer',
        'x-frame-options: DENY',
        'cache-control: no-store',
        'x-content-type-options: nosniff',
      ])
        expect(text).toContain(header)
      expect(text).not.toMatch(/^location:|^set-cookie:|^access-control/im)
    }
    canaries.assertNowhere()
  },
  TIMEOUT_MS,
)

/** A port with the documents of these tests and a token endpoint that does as it is told. */
function place(
  answer: Scripted = { access_token: 'A', token_type: 'Bearer', refresh_token: 'R' },
  more: Readonly<Record<string, Scripted>> = {},
) {
  return tablePort({ ...documents, [TOKEN]: answer, ...more })
}

/** A browser that goes straight to the callback with a code. */
async function approve(url: string, more = ''): Promise<string> {
  const parameters = new URL(url).searchParams
  const target = new URL(parameters.get('redirect_uri') ?? '')
  const { text } = await get(Number(target.port), {
    target: `${target.pathname}?code=CODE&state=${parameters.get('state')}${more}`,
  })
  return text
}

function begin(port: OAuthPort, more: Partial<SignInOptions> = {}) {
  return signIn({
    server: { name: 'mail', url: MCP },
    port,
    openPage: async (url) => void (await approve(url)),
    ...more,
  })
}

verifies(
  'auth.057',
  async () => {
    await using taken = await openCallback(planned())
    const callbackPort = Number(new URL(taken.redirectUrl).port)
    let opened = 0
    const failure = await failureOf(
      begin(place(), { server: { name: 'mail', url: MCP, oauth: { callbackPort } }, openPage: () => void opened++ }),
    )
    expect([failure.kind, failure.details.field, opened]).toEqual(['callback-unavailable', 'oauth.callbackPort', 0])
    expect(failure.message).toContain(String(callbackPort))
    // Two sign-ins to one server at once: each has its own place, and gets its own code.
    const [one, other] = await Promise.all([begin(place()), begin(place())])
    expect([one.tokens.accessToken, other.tokens.accessToken]).toEqual(['A', 'A'])
  },
  TIMEOUT_MS,
)

verifies(
  'auth.058',
  async () => {
    const ends: readonly (readonly [string, Partial<SignInOptions>, unknown, Scripted?])[] = [
      ['success', {}, { resolved: expect.objectContaining({ resource: MCP }) }],
      ['the token endpoint refuses', {}, 'provider-refused', 400],
      ['the token endpoint cannot be reached', {}, 'unreachable', portError('closed', true)],
      ['the time is over', { openPage: () => {}, timeoutMs: 1_000 }, 'timed-out'],
      ['less time than a person needs', { openPage: () => {}, timeoutMs: 1 }, 'timed-out'],
      [
        'a browser that does not start',
        { openPage: () => Promise.reject(new Error('no browser')), timeoutMs: 1_000 },
        'timed-out',
      ],
    ]
    for (const [name, more, expected, answer] of ends) {
      let callbackPort = 0
      const onPage: SignInOptions['onPage'] = ({ redirectUrl }) => {
        callbackPort = Number(new URL(redirectUrl).port)
      }
      expect([name, await kindOf(begin(place(answer), { onPage, ...more }))]).toEqual([name, expected])
      expect([name, callbackPort > 0, await isClosed(callbackPort)]).toEqual([name, true, true])
    }
    // Whoever is half-way through a request, or has not begun one, is not waited for.
    const callback = await openCallback(planned())
    const open = Number(new URL(callback.redirectUrl).port)
    const lingering = [sendRaw(open, 'GET / HT'), sendRaw(open, '')]
    await Promise.all([0, 1].map(() => get(open, { target: '/' })))
    await callback.close()
    expect(await Promise.all(lingering)).toEqual([expect.anything(), expect.anything()])
    const stop = new AbortController()
    let callbackPort = 0
    const aborted = kindOf(
      begin(place(), {
        signal: stop.signal,
        openPage: () => stop.abort(),
        onPage: ({ redirectUrl }) => {
          callbackPort = Number(new URL(redirectUrl).port)
        },
      }),
    )
    expect([await aborted, await isClosed(callbackPort)]).toEqual(['cancelled', true])
    // At every question on the way.
    for (let at = 0; at < 4; at++) {
      const controller = new AbortController()
      const port = place()
      let count = 0
      const stopping: OAuthPort = {
        ...port,
        fetch: (url, request) => {
          if (count++ !== at) return port.fetch(url, request)
          controller.abort()
          return new Promise(
            (_resolve, reject) =>
              request.signal?.addEventListener('abort', () => reject(portError('cancelled'))) ??
              reject(portError('cancelled')),
          )
        },
      }
      expect([at, await kindOf(begin(stopping, { signal: controller.signal }))]).toEqual([at, 'cancelled'])
    }
  },
  TIMEOUT_MS,
)

verifies(
  'auth.060',
  async () => {
    const server = { name: 'mail', url: MCP, oauth: { callbackUrl: 'https://hub.example/back' } }
    const none = await failureOf(begin(place(), { server }))
    expect([none.kind, none.details.field]).toEqual(['callback-unavailable', 'oauth.callbackUrl'])
    const refused: string[] = []
    let page: { url: string; listens: boolean } = { url: '', listens: true }
    async function* person() {
      while (page.url === '') await new Promise((resolve) => setImmediate(resolve))
      const state = new URL(page.url).searchParams.get('state')
      yield ''
      yield 'CODE'
      yield 'https://hub.example/back?code=CODE&state=wrong'
      yield `https://hub.example/back?code=CODE&state=${state}`
      throw new Error('nobody asks for more')
    }
    const port = place()
    const grant = await begin(port, {
      server,
      paste: person(),
      openPage: () => {},
      onPage: (shown) => {
        page = shown
      },
      onPasteRefused: (because) => void refused.push(because),
    })
    expect([grant.tokens.accessToken, page.listens, refused.length]).toEqual(['A', false, 2])
    const exchange = new URLSearchParams(port.asked.find(({ url }) => url === TOKEN)?.body)
    expect([exchange.get('code'), exchange.get('redirect_uri'), exchange.get('resource')]).toEqual([
      'CODE',
      'https://hub.example/back',
      MCP,
    ])
    async function* silent() {
      yield 'nothing that fits'
    }
    expect(await kindOf(begin(place(), { server, paste: silent(), openPage: () => {} }))).toBe('state-mismatch')
    // Both at once: the browser comes back although somebody could still paste.
    const forever: AsyncIterable<string> = { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) }
    expect((await begin(place(), { paste: forever })).tokens.accessToken).toBe('A')
  },
  TIMEOUT_MS,
)

verifies(
  'auth.061',
  async () => {
    let opened = ''
    const port = place()
    const grant = await begin(port, {
      openPage: async (url) => {
        opened = url
        await approve(url)
      },
    })
    const url = new URL(opened)
    expect(Object.fromEntries(url.searchParams)).toEqual({
      tenant: '1',
      response_type: 'code',
      client_id: 'me',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback\/[\w-]{12}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      resource: MCP,
    })
    expect(url.href).toBe(opened)
    const registration: unknown = JSON.parse(port.asked.find(({ url: at }) => at.endsWith('/register'))?.body ?? '')
    expect(registration).toEqual({
      client_name: 'Convoke',
      redirect_uris: [url.searchParams.get('redirect_uri')],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    })
    expect(grant).toEqual({
      issuer: { issuer: ISSUER, tokenEndpoint: TOKEN },
      resource: MCP,
      client: { id: 'me', kind: 'registered' },
      tokens: { accessToken: 'A', type: 'Bearer', refreshToken: 'R' },
    })
    const { [`${ISSUER}/register`]: _, ...closed } = documents
    const refused = await failureOf(begin(tablePort({ ...closed, [`${ISSUER}/register`]: 403 })))
    expect([refused.kind, refused.details.field]).toEqual(['registration-refused', 'oauth.clientId'])
  },
  TIMEOUT_MS,
)

verifies(
  'auth.078',
  async () => {
    const canaries = new Canaries()
    const [refreshToken = '', clientSecret = '', idToken = ''] = ['refresh token', 'client secret', 'id token'].map(
      (name) => canaries.plantPlain(name),
    )
    const failures: unknown[] = []
    /** The other side sends back everything that it got. */
    const echo: Scripted = ({ body = '', headers = {} }) => {
      for (const [name, value] of new URLSearchParams(body))
        if (/code|verifier/.test(name) && value.length > 7) canaries.add(name, value)
      return {
        error: 'invalid_request',
        error_description: `${body} ${decodeURIComponent(body)} ${JSON.stringify(headers)}`,
      }
    }
    const approveLong = async (url: string): Promise<void> => {
      const parameters = new URL(url).searchParams
      const state = canaries.add('state', parameters.get('state') ?? '')
      const target = new URL(parameters.get('redirect_uri') ?? '')
      const code = canaries.plantPlain('code')
      await get(Number(target.port), { target: `${target.pathname}?code=${code}&state=${state}` })
    }
    const server = { name: 'mail', url: MCP, oauth: { clientId: 'me' } }
    // Several: a verifier often has a character that a form writes otherwise than an address.
    for (let at = 0; at < 8; at++)
      failures.push(await failureOf(begin(place(echo), { server, clientSecret, openPage: approveLong })))
    const grant = await begin(place())
    failures.push(
      await refreshTokens(
        { grant: { ...grant, client: { id: 'me', kind: 'configured' } }, server, refreshToken, clientSecret },
        place(echo),
      ),
    )
    const ask = { server, expectedIssuer: ISSUER, port: place(echo) }
    failures.push(
      await failureOf(machineGrant({ ...ask, credentials: { kind: 'client-secret', clientId: 'me', clientSecret } })),
    )
    failures.push(
      await failureOf(machineGrant({ ...ask, credentials: { kind: 'workload', clientId: 'me', token: idToken } })),
    )
    const idp = { issuer: ISSUER, clientId: 'app', clientSecret, idToken }
    failures.push(
      await failureOf(
        machineGrant({ ...ask, credentials: { kind: 'cross-app', clientId: 'me', identityProvider: idp } }),
      ),
    )
    canaries.watch('failures', { kind: 'value', value: failures })
    canaries.assertNowhere()
    expect(failures).toHaveLength(12)
  },
  TIMEOUT_MS,
)

verifies(
  'auth.074',
  async () => {
    const bodies = (port: ReturnType<typeof place>) =>
      port.asked.filter(({ url }) => url === TOKEN).map(({ body }) => Object.fromEntries(new URLSearchParams(body)))
    const server = { name: 'mail', url: MCP, scopes: ['a'] }
    const credentials = { kind: 'workload', clientId: 'me', token: ' aaa.bbb.ccc\n' } as const
    const port = place()
    const grant = await machineGrant({ server, expectedIssuer: ISSUER, port, credentials })
    expect(grant).toMatchObject({ tokens: { accessToken: 'A' }, client: { id: 'me' } })
    expect(grant.tokens.refreshToken).toBeUndefined()
    await machineGrant({
      server,
      expectedIssuer: ISSUER,
      port,
      credentials: { ...credentials, use: 'client-assertion' },
    })
    expect(bodies(port)).toEqual([
      {
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: 'aaa.bbb.ccc',
        client_id: 'me',
        scope: 'a',
        resource: MCP,
      },
      {
        grant_type: 'client_credentials',
        client_id: 'me',
        client_assertion: 'aaa.bbb.ccc',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        scope: 'a',
        resource: MCP,
      },
    ])
    for (const error of ['invalid_grant', 'invalid_scope', 'unauthorized_client']) {
      const refusing = place({ error })
      expect(await kindOf(machineGrant({ server, expectedIssuer: ISSUER, port: refusing, credentials }))).toMatch(
        /refused/,
      )
      expect(bodies(refusing)).toHaveLength(1)
    }
    expect(
      await kindOf(machineGrant({ server, expectedIssuer: ISSUER, port, credentials: { ...credentials, token: '' } })),
    ).toBe('settings-invalid')
  },
  TIMEOUT_MS,
)

verifies(
  'auth.075',
  async () => {
    const idp = 'https://idp.example'
    const told: unknown[] = []
    const table = {
      [`${idp}/.well-known/openid-configuration`]: { issuer: idp, token_endpoint: `${idp}/token` },
      [`${idp}/token`]: (({ body }) => {
        told.push(Object.fromEntries(new URLSearchParams(body)))
        return {
          access_token: 'ID.JAG.X',
          issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
          token_type: 'N_A',
        }
      }) satisfies Scripted,
    }
    const credentials = {
      kind: 'cross-app',
      clientId: 'me',
      clientSecret: 'sec+ret',
      identityProvider: { issuer: idp, clientId: 'app', idToken: 'ID.TOKEN.X' },
    } as const
    const server = { name: 'mail', url: MCP, scopes: ['a'] }
    const port = place(undefined, table)
    expect(await machineGrant({ server, expectedIssuer: ISSUER, port, credentials })).toMatchObject({
      issuer: { issuer: ISSUER },
      tokens: { accessToken: 'A' },
    })
    expect(told).toEqual([
      expect.objectContaining({
        audience: ISSUER,
        resource: MCP,
        subject_token: 'ID.TOKEN.X',
        client_id: 'app',
        scope: 'a',
      }),
    ])
    const body = port.asked.find(({ url }) => url === TOKEN)?.body ?? ''
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: 'ID.JAG.X',
      scope: 'a',
      resource: MCP,
    })
    expect(body).not.toContain('ID.TOKEN')
    const wrong = place(undefined, {
      ...table,
      [`${idp}/token`]: { access_token: 'x', issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' },
    })
    expect(await kindOf(machineGrant({ server, expectedIssuer: ISSUER, port: wrong, credentials }))).toBe(
      'answer-invalid',
    )
    expect(wrong.asked.some(({ url }) => url === TOKEN)).toBe(false)
  },
  TIMEOUT_MS,
)

verifies(
  'auth.054',
  async () => {
    const metadata = {
      ...(documents[`${ISSUER}/.well-known/oauth-authorization-server`] as object),
      registration_endpoint: undefined,
    }
    const port = place(undefined, { [`${ISSUER}/.well-known/oauth-authorization-server`]: metadata })
    const callbackPort = await freePort()
    const failure = await failureOf(begin(port, { server: { name: 'mail', url: MCP, oauth: { callbackPort } } }))
    expect([failure.kind, failure.details.field]).toEqual(['client-missing', 'oauth.clientId'])
    expect(failure.message).toContain(`http://127.0.0.1:${callbackPort}/callback/`)
  },
  TIMEOUT_MS,
)
