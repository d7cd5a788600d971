#!/usr/bin/env node
// `oidc-provider` as a fixture: options are the JSON in the last argument, `READY PORT` is printed. See ../src/authorization-server.ts.
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { AuthorizationStore } from './authorization-store.mjs'
import { endWithParent } from './end-with-parent.mjs'

// Its hints for people who run it in earnest.
console.info = () => {}
console.warn = () => {}
const { Provider, errors } = await import('oidc-provider')

const SCOPES = ['openid', 'profile', 'offline_access', 'mcp', 'mcp:read', 'mcp:write']
const RESOURCE_SCOPE = 'mcp mcp:read mcp:write'
const ACCOUNTS = { ada: 'Ada Lovelace', grace: 'Grace Hopper' }
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const INTROSPECTION_CLIENT = {
  client_id: 'protected-server',
  client_secret: 'secret-of-the-protected-server',
  redirect_uris: [],
  response_types: [],
  grant_types: [],
}
const DEFAULTS = {
  accessTokenSeconds: 300,
  refreshTokens: 'always',
  rotation: 'rotate',
  omitRefreshToken: false,
  beforeTokenMs: 0,
  afterTokenMs: 0,
  hold: 'nothing',
  failNext: undefined,
  dropNext: 0,
  metadata: {},
  documents: 'both',
  tokenAnswer: {},
  callback: {},
  dpop: 'optional',
  dpopNonce: false,
  refuseScopes: [],
  defaultScope: 'mcp',
  resources: undefined,
  registration: 'open',
  clientDocuments: {},
}
const DOCUMENTS = { 'oauth-authorization-server': 'oauth', 'openid-configuration': 'oidc' }

const digestOf = (token) =>
  token === undefined ? undefined : createHash('sha256').update(token).digest('hex').slice(0, 16)
const pause = (ms) => (ms > 0 ? new Promise((resolve) => setTimeout(resolve, ms)) : undefined)

class AuthorizationServer {
  constructor({ path = '', accessTokens = 'opaque', clients = [], knobs = {} }, origin) {
    this.path = path
    this.accessTokens = accessTokens
    this.issuer = `${origin}${path}`
    this.knobs = { ...DEFAULTS }
    this.set(knobs)
    this.store = new AuthorizationStore()
    this.counts = {
      registrations: 0,
      authorizations: 0,
      revocations: 0,
      introspections: 0,
      grantsRevoked: 0,
      discoveries: 0,
    }
    this.tokenRequests = []
    this.usedUp = new Set()
    this.held = new Set()
    this.turn = Promise.resolve()
    this.provider = new Provider(this.issuer, this.configuration([INTROSPECTION_CLIENT, ...clients.map(completed)]))
    this.provider.use((ctx, next) => this.handle(ctx, next))
    this.count()
    this.answer = this.provider.callback()
  }

  configuration(clients) {
    const { knobs } = this
    const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
    return {
      clients,
      adapter: (kind) => this.store.adapterFor(kind),
      jwks: { keys: [{ ...key, use: 'sig', alg: 'RS256', kid: 'one' }] },
      cookies: { keys: [randomBytes(16).toString('hex')] },
      // A token is over when it says so.
      clockTolerance: 0,
      scopes: SCOPES,
      claims: { openid: ['sub'], profile: ['name'] },
      clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
      findAccount: (_ctx, id) =>
        ACCOUNTS[id] === undefined ? undefined : { accountId: id, claims: () => ({ sub: id, name: ACCOUNTS[id] }) },
      interactions: { url: (_ctx, { uid }) => `${this.path}/interaction/${uid}` },
      pkce: { required: () => true },
      rotateRefreshToken: () => knobs.rotation === 'rotate' && !knobs.omitRefreshToken,
      expiresWithSession: () => false,
      issueRefreshToken: (_ctx, client, { scopes }) =>
        client.grantTypeAllowed('refresh_token') &&
        (knobs.refreshTokens === 'always' ||
          (knobs.refreshTokens === 'offline-access' && scopes.has('offline_access'))),
      ttl: {
        AccessToken: () => knobs.accessTokenSeconds,
        ClientCredentials: () => knobs.accessTokenSeconds,
        AuthorizationCode: 60,
        DeviceCode: 600,
        Grant: 86_400,
        IdToken: 3_600,
        Interaction: 3_600,
        RefreshToken: 86_400,
        Session: 86_400,
      },
      fetch: (url) => {
        const document = knobs.clientDocuments[String(url)]
        return document === undefined ? new Response('', { status: 404 }) : Response.json(document)
      },
      features: this.features(),
    }
  }

  features() {
    const { knobs } = this
    return {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      registrationManagement: { enabled: true, rotateRegistrationAccessToken: false },
      revocation: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02', cacheDuration: { min: 0, max: 0 } },
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => knobs.dpopNonce },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => {
          if (knobs.resources !== undefined && !knobs.resources.includes(resource)) throw new errors.InvalidTarget()
          return {
            scope: RESOURCE_SCOPE,
            audience: resource,
            accessTokenFormat: this.accessTokens,
            accessTokenTTL: knobs.accessTokenSeconds,
            ...(this.accessTokens === 'jwt' ? { jwt: { sign: { alg: 'RS256' } } } : {}),
          }
        },
      },
    }
  }

  count() {
    const events = {
      'registration_create.success': 'registrations',
      'authorization.success': 'authorizations',
      'grant.revoked': 'grantsRevoked',
    }
    for (const [event, name] of Object.entries(events)) this.provider.on(event, () => this.counts[name]++)
    this.provider.on('server_error', (_ctx, error) => process.stderr.write(`${error.stack}\n`))
  }

  set(changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (!(name in DEFAULTS)) throw new Error(`There is no knob "${name}"`)
      this.knobs[name] = value ?? DEFAULTS[name]
    }
    for (const look of this.held ?? []) look()
  }

  stats() {
    return { ...this.counts, tokenRequests: this.tokenRequests, waiting: this.held.size }
  }

  revoke(account) {
    const grants = this.store.grantsOf(account)
    for (const id of grants) this.store.removeGrant(id)
    this.counts.grantsRevoked += grants.length
    return grants.length
  }

  /** Resolves as soon as requests of this kind are not held. */
  async pass(...kinds) {
    if (!kinds.includes(this.knobs.hold)) return
    await new Promise((resolve) => {
      const look = () => {
        if (kinds.includes(this.knobs.hold)) return
        this.held.delete(look)
        resolve()
      }
      this.held.add(look)
    })
  }

  receive(request, response) {
    if (request.url.startsWith('/control/')) return void this.control(request, response)
    request.url = this.withoutPath(request.url)
    this.answer(request, response)
  }

  async control(request, response) {
    const action = request.url.slice('/control/'.length)
    const actions = {
      set: (body) => this.set(body) ?? null,
      stats: () => this.stats(),
      revoke: ({ account }) => this.revoke(account),
    }
    try {
      const body = request.method === 'POST' ? JSON.parse(await textOf(request)) : undefined
      const result = JSON.stringify(actions[action](body))
      response.writeHead(200, { 'content-type': 'application/json', connection: 'close' }).end(result)
    } catch (error) {
      response.writeHead(400, { connection: 'close' }).end(String(error))
    }
  }

  /** The provider knows its routes without the path of the issuer. Metadata may stand on either side of it. */
  withoutPath(url) {
    if (this.path === '' || !url.endsWith(this.path) || !url.startsWith('/.well-known/'))
      return url.startsWith(`${this.path}/`) ? url.slice(this.path.length) : url
    return url.slice(0, -this.path.length)
  }

  async handle(ctx, next) {
    // Where its routes are for others; it looks here.
    ctx.mountPath = this.path
    await this.pass('everything')
    const { path, method } = ctx
    if (path.startsWith('/.well-known/')) return this.discover(ctx, next)
    if (path === '/token' && method === 'POST') return this.token(ctx, next)
    if (path.startsWith('/interaction/')) return this.interact(ctx)
    if (path === '/reg' && method === 'POST' && this.knobs.registration === 'refused')
      return refuse(ctx, 403, 'access_denied')
    if (path === '/auth') return this.authorize(ctx, next)
    await next()
    if (path.startsWith('/auth/')) this.patchCallback(ctx)
    if (path === '/token/revocation' && ctx.status === 200) this.counts.revocations++
    if (path === '/token/introspection' && ctx.status === 200) this.counts.introspections++
  }

  async discover(ctx, next) {
    this.counts.discoveries++
    const { documents, metadata } = this.knobs
    const kind = DOCUMENTS[ctx.path.slice('/.well-known/'.length)]
    if (kind === undefined || (documents !== 'both' && documents !== kind)) return void (ctx.status = 404)
    await next()
    lay(metadata, ctx.body)
  }

  async authorize(ctx, next) {
    const { refuseScopes, defaultScope } = this.knobs
    const scopes = ctx.query.scope?.split(' ') ?? []
    const refused = scopes.find((scope) => refuseScopes.includes(scope))
    if (refused !== undefined) {
      const back = new URL(ctx.query.redirect_uri)
      back.searchParams.set('error', 'invalid_scope')
      back.searchParams.set('error_description', `scope ${refused} is not served`)
      if (ctx.query.state !== undefined) back.searchParams.set('state', ctx.query.state)
      back.searchParams.set('iss', this.issuer)
      ctx.redirect(back.href)
    } else {
      if (scopes.length === 0 && defaultScope !== '') ctx.query = { ...ctx.query, scope: defaultScope }
      await next()
    }
    this.patchCallback(ctx)
  }

  /** A redirect that leaves this server is the answer to the client. */
  patchCallback(ctx) {
    const location = ctx.response.get('location')
    if (!URL.canParse(location) || location.startsWith(`${this.issuer}/`)) return
    const url = new URL(location)
    for (const [name, value] of Object.entries(this.knobs.callback))
      if (value === null) url.searchParams.delete(name)
      else url.searchParams.set(name, value)
    ctx.set('location', url.href)
  }

  async token(ctx, next) {
    const text = await textOf(ctx.req)
    ctx.req.body = text
    const form = new URLSearchParams(text)
    await this.pass('before-token', 'everything')
    await pause(this.knobs.beforeTokenMs)
    const seen = await this.inTurn(() => this.process(ctx, next, form))
    await this.pass('after-token', 'everything')
    await pause(this.knobs.afterTokenMs)
    if (!seen.dropped) return
    ctx.respond = false
    ctx.req.socket.destroy()
  }

  /** One token request after another: two that come together with one refresh token must not both find it unused. */
  inTurn(task) {
    const mine = this.turn.then(task)
    this.turn = mine.catch(() => {})
    return mine
  }

  async process(ctx, next, form) {
    const { knobs } = this
    const presented = digestOf(form.get('refresh_token') ?? undefined)
    const isReplay = presented !== undefined && this.usedUp.has(presented)
    const isProcessed = !this.failsAsAsked(ctx, form) && !this.lacksProof(ctx)
    if (isProcessed) await next()
    const dropped = isProcessed && knobs.dropNext > 0
    if (dropped) knobs.dropNext--
    const outcome = outcomeOf(ctx, isProcessed)
    const isRotated = outcome.refreshToken !== undefined && outcome.refreshToken !== presented
    if (isRotated) this.usedUp.add(presented)
    const known = this.known(ctx, form, isProcessed)
    const seen = { ...known, presented, ...outcome, replay: isReplay, dropped, atMs: Date.now() }
    this.tokenRequests.push(seen)
    if (outcome.outcome === 'error') return seen
    if (knobs.omitRefreshToken && seen.grantType === 'refresh_token') delete ctx.body.refresh_token
    lay(knobs.tokenAnswer, ctx.body)
    return seen
  }

  known(ctx, form, isProcessed) {
    const { AccessToken, ClientCredentials, Client } = isProcessed ? ctx.oidc.entities : {}
    return {
      grantType: form.get('grant_type') ?? '',
      clientId: Client?.clientId ?? form.get('client_id') ?? undefined,
      withDpop: ctx.get('dpop') !== '',
      account: AccessToken?.accountId,
      scope: (AccessToken ?? ClientCredentials)?.scope,
      resource: (AccessToken ?? ClientCredentials)?.resourceServer?.identifier(),
    }
  }

  failsAsAsked(ctx, form) {
    const { failNext } = this.knobs
    if (failNext === undefined || failNext.count <= 0) return false
    if (failNext.grantType !== undefined && failNext.grantType !== form.get('grant_type')) return false
    this.knobs.failNext = { ...failNext, count: failNext.count - 1 }
    refuse(ctx, failNext.status, failNext.error ?? 'server_error')
    if (failNext.body !== undefined) ctx.body = failNext.body
    ctx.set(failNext.headers ?? {})
    return true
  }

  lacksProof(ctx) {
    if (this.knobs.dpop !== 'required' || ctx.get('dpop') !== '') return false
    refuse(ctx, 400, 'invalid_dpop_proof')
    return true
  }

  /** The login and consent pages, as plain forms. */
  async interact(ctx) {
    const { provider } = this
    const { uid, prompt, params, session, grantId } = await provider.interactionDetails(ctx.req, ctx.res)
    if (ctx.method === 'GET') {
      ctx.type = 'html'
      ctx.body = page(`${this.path}/interaction/${uid}`, prompt.name, params)
      return
    }
    const form = new URLSearchParams(await textOf(ctx.req))
    const finish = (result) => provider.interactionResult(ctx.req, ctx.res, result)
    const deny = { error: 'access_denied', error_description: 'The person said no' }
    const allow = async () =>
      prompt.name === 'login'
        ? { login: { accountId: form.get('login') } }
        : { consent: { grantId: await this.grant({ grantId, session, params, prompt, form }) } }
    ctx.status = 303
    ctx.set('location', await finish(form.get('decision') === 'deny' ? deny : await allow()))
    ctx.body = ''
  }

  /** Grants what is asked for, or of that only what the person ticked. */
  async grant({ grantId, session, params, prompt, form }) {
    const { Grant } = this.provider
    const known = grantId === undefined ? undefined : await Grant.find(grantId)
    const grant = known ?? new Grant({ accountId: session.accountId, clientId: params.client_id })
    const ticked = form.get('scopes')?.split(' ')
    const allowed = (scopes) => scopes.filter((scope) => ticked === undefined || ticked.includes(scope))
    const give = (scopes, allow, reject) => {
      const given = allowed(scopes)
      const rest = scopes.filter((scope) => !given.includes(scope))
      if (given.length > 0) allow(given.join(' '))
      if (rest.length > 0) reject(rest.join(' '))
    }
    const { missingOIDCScope = [], missingOIDCClaims, missingResourceScopes = {} } = prompt.details
    give(
      missingOIDCScope,
      (scope) => grant.addOIDCScope(scope),
      (scope) => grant.rejectOIDCScope(scope),
    )
    if (missingOIDCClaims !== undefined) grant.addOIDCClaims(missingOIDCClaims)
    for (const [resource, scopes] of Object.entries(missingResourceScopes))
      give(
        scopes,
        (scope) => grant.addResourceScope(resource, scope),
        (scope) => grant.rejectResourceScope(resource, scope),
      )
    return grant.save()
  }
}

function outcomeOf({ status, body }, isProcessed) {
  if (!isProcessed || status !== 200) return { outcome: 'error', error: body?.error ?? `status ${status}` }
  return {
    outcome: 'issued',
    accessToken: digestOf(body.access_token),
    refreshToken: digestOf(body.refresh_token),
  }
}

/** A public client that may use codes, refreshes and devices, where the test says nothing else. */
function completed(client) {
  const isPublic = client.client_secret === undefined && client.jwks === undefined && client.jwks_uri === undefined
  return {
    token_endpoint_auth_method: isPublic
      ? 'none'
      : client.client_secret === undefined
        ? 'private_key_jwt'
        : 'client_secret_basic',
    grant_types: ['authorization_code', 'refresh_token', DEVICE_CODE],
    application_type: 'native',
    redirect_uris: [],
    ...((client.redirect_uris ?? []).length === 0
      ? { response_types: [], grant_types: [DEVICE_CODE, 'refresh_token'] }
      : {}),
    ...client,
  }
}

function page(action, prompt, { client_id: client, scope }) {
  const fields = prompt === 'login' ? '<input name="login"/>' : '<input name="scopes"/>'
  const text = `${escaped(client)} asks for ${escaped(scope ?? 'nothing')}`
  return `<!DOCTYPE html><title>${prompt}</title><p>${text}</p><form method="post" action="${action}"><input type="hidden" name="prompt" value="${prompt}"/>${fields}<input name="decision"/></form>`
}

const escaped = (text) => String(text).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

function refuse(ctx, status, error) {
  ctx.status = status
  ctx.body = { error, error_description: 'as the test wants it' }
}

function lay(members, body) {
  for (const [name, value] of Object.entries(members))
    if (value === null) delete body[name]
    else body[name] = value
}

async function textOf(request) {
  const parts = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts).toString()
}

const options = JSON.parse(process.argv.at(-1))
let authorization
const receive = (request, response) => authorization.receive(request, response)
const server = options.tls === undefined ? createServer(receive) : createSecureServer(options.tls, receive)
server.listen(options.port ?? 0, '127.0.0.1', () => {
  const { port } = server.address()
  authorization = new AuthorizationServer(
    options,
    `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
  )
  process.stdout.write(`READY ${port}\n`)
})
endWithParent()
