#!/usr/bin/env node
// The scripted MCP server behind a guard that wants access tokens: options are the JSON in the last argument, `READY PORT` is printed. See
// ../src/protected-server.ts.
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { endWithParent } from './end-with-parent.mjs'
import { digestOf, faultOfProof, judgeToken } from './protected-tokens.mjs'
import { startScriptedHttp } from './scripted-http.mjs'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'
const DEFAULTS = {
  refuseTokens: [],
  answerAll: undefined,
  challenge: 'full',
  challengeScope: 'mcp',
  authorizationServers: undefined,
  metadata: {},
  documents: 'path',
  dpop: 'optional',
  dpopNonce: false,
  staticToken: undefined,
  getStream: 'serve',
  toolScopes: { read: 'mcp:read', write: 'mcp:write' },
  delayMs: 0,
  hold: false,
}
const text = { type: 'object', properties: { text: { type: 'string' } } }
const none = { type: 'object' }
const TOOLS = [
  { name: 'echo', description: 'Answers with the text', inputSchema: text },
  { name: 'whoami', description: 'Who the token speaks for', inputSchema: none },
  { name: 'read', description: 'Needs mcp:read', inputSchema: none },
  { name: 'write', description: 'Needs mcp:write', inputSchema: none },
  { name: 'seen', description: 'What the guard has seen', inputSchema: none },
].map((tool) => ({ ...tool, does: { kind: 'echo' } }))

class ProtectedServer {
  constructor({ issuer, knobs = {} }, mcp) {
    this.issuer = issuer
    this.mcp = mcp
    this.knobs = { ...DEFAULTS }
    this.nonce = undefined
    this.held = new Set()
    this.usedIds = new Set()
    this.tokens = new Map()
    this.http = {}
    this.rpc = {}
    this.openGets = 0
    this.counts = { withoutToken: 0, status401: 0, status403: 0, discoveries: 0, proofs: 0 }
    this.set(knobs)
  }

  start(port) {
    this.origin = `http://127.0.0.1:${port}`
    this.resource = `${this.origin}/mcp`
  }

  set(changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (!(name in DEFAULTS)) throw new Error(`There is no knob "${name}"`)
      this.knobs[name] = value ?? DEFAULTS[name]
    }
    if ('dpopNonce' in changes) this.nonce = this.knobs.dpopNonce ? randomBytes(8).toString('hex') : undefined
    if (this.knobs.hold) return
    for (const go of this.held) go()
    this.held.clear()
  }

  stats() {
    return {
      ...this.counts,
      http: this.http,
      rpc: this.rpc,
      tokens: [...this.tokens.values()],
      sessions: this.mcp.sessions.size,
      openGets: this.openGets,
      waiting: this.held.size,
    }
  }

  async control(request, response) {
    const actions = {
      set: (body) => this.set(body),
      stats: () => this.stats(),
      'forget-sessions': () => this.mcp.forgetSessions(),
    }
    try {
      const body = request.method === 'POST' ? JSON.parse(await bodyOf(request)) : undefined
      const result = JSON.stringify(actions[request.url.slice('/control/'.length)](body) ?? null)
      response.writeHead(200, { 'content-type': 'application/json', connection: 'close' }).end(result)
    } catch (error) {
      response.writeHead(400, { connection: 'close' }).end(String(error))
    }
  }

  async receive(request, response) {
    const { pathname } = new URL(request.url, this.origin)
    if (pathname.startsWith('/control/')) return this.control(request, response)
    if (pathname.startsWith('/.well-known/')) return this.describe(pathname, response)
    if (pathname !== '/mcp') return void response.writeHead(404).end()
    const { method } = request
    this.http[method] = (this.http[method] ?? 0) + 1
    const body = await bodyOf(request)
    if (method === 'POST' && this.knobs.hold) await new Promise((resolve) => this.held.add(resolve))
    if (this.knobs.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.knobs.delayMs))
    const verdict = await this.judge(request, body)
    if (verdict.kind === 'refused') return this.refuse(response, verdict)
    if (verdict.kind === 'held') return
    if (this.nonce !== undefined) response.setHeader('dpop-nonce', this.nonce)
    if (method === 'GET') this.countOpen(response)
    const passed = this.answered(body, verdict)
    // The MCP server behind reads a request of its own, with the body that the guard has read.
    await this.mcp.handle(
      Object.assign(Readable.from([Buffer.from(passed)]), { method, url: '/mcp', headers: request.headers }),
      response,
    )
  }

  countOpen(response) {
    this.openGets++
    response.once('close', () => void this.openGets--)
  }

  /** RFC 9728. */
  describe(pathname, response) {
    const { documents, metadata, staticToken } = this.knobs
    const kind = { [`${WELL_KNOWN}/mcp`]: 'path', [WELL_KNOWN]: 'root' }[pathname]
    if (kind === undefined) return void response.writeHead(404).end()
    this.counts.discoveries++
    const isThere = staticToken === undefined && (documents === 'both' || documents === kind)
    if (!isThere) return void response.writeHead(404).end()
    const document = {
      resource: this.resource,
      authorization_servers: this.knobs.authorizationServers ?? [this.issuer],
      scopes_supported: ['mcp', 'mcp:read', 'mcp:write'],
      bearer_methods_supported: ['header'],
      ...(this.knobs.dpop === 'required' ? { dpop_bound_access_tokens_required: true } : {}),
      ...metadata,
    }
    const stated = Object.entries(document).filter(([, value]) => value !== null)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(Object.fromEntries(stated)))
  }

  /** `{kind: 'passed', holder, seen}`, `{kind: 'refused', status, seen, error, scope}` or `{kind: 'held'}`. */
  async judge(request, body) {
    const [scheme = '', token] = request.headers.authorization?.split(' ') ?? []
    const seen = this.noted(token)
    const verdict =
      this.presetVerdict(request.method, token) ??
      (token === undefined ? refused(401) : await this.judgeHolder({ scheme, token, request, body }))
    return { ...verdict, seen }
  }

  /** What is answered without a look at the token. */
  presetVerdict(method, token) {
    const { getStream, answerAll, staticToken, refuseTokens } = this.knobs
    if (method === 'GET' && getStream === 'hold') return { kind: 'held' }
    if (method === 'GET' && getStream !== 'serve') return refused(getStream)
    if (answerAll !== undefined) return refused(answerAll, answerAll === 403 ? 'insufficient_scope' : undefined)
    if (staticToken !== undefined && token === staticToken) return { kind: 'passed', holder: nobody }
    if (token === undefined) return undefined
    return staticToken !== undefined || refuseTokens.includes(digestOf(token))
      ? refused(401, 'invalid_token')
      : undefined
  }

  async judgeHolder({ scheme, token, request, body }) {
    const [issuer] = this.knobs.authorizationServers ?? [this.issuer]
    const holder = await judgeToken(token, { issuer, resource: this.resource })
    if (holder === undefined) return refused(401, 'invalid_token')
    const fault = this.faultOfBinding({ scheme, token, holder, request })
    if (fault !== undefined) return refused(401, fault)
    const scope = this.missingScope(body, holder)
    return scope === undefined ? { kind: 'passed', holder } : refused(403, 'insufficient_scope', scope)
  }

  /** A token that is bound to a key is worth nothing without a proof, and where proofs are demanded, one that is not bound neither. */
  faultOfBinding({ scheme, token, holder, request }) {
    const isBound = holder.jkt !== undefined
    if (!isBound) return this.knobs.dpop === 'required' || !/^bearer$/i.test(scheme) ? 'invalid_token' : undefined
    if (!/^dpop$/i.test(scheme)) return 'invalid_token'
    const fault = faultOfProof(request.headers.dpop, {
      method: request.method,
      url: this.resource,
      token,
      jkt: holder.jkt,
      nonce: this.nonce,
      usedIds: this.usedIds,
    })
    if (fault === undefined) this.counts.proofs++
    return fault
  }

  missingScope(body, { scopes }) {
    const message = messageOf(body)
    const needed = message?.method === 'tools/call' ? this.knobs.toolScopes[message.params?.name] : undefined
    return needed === undefined || scopes.includes(needed) ? undefined : needed
  }

  noted(token) {
    if (token === undefined) {
      this.counts.withoutToken++
      return undefined
    }
    const digest = digestOf(token)
    const seen = this.tokens.get(digest) ?? { digest, requests: 0, refused401: 0, refused403: 0 }
    this.tokens.set(digest, seen)
    seen.requests++
    return seen
  }

  refuse(response, { status, error, scope, seen }) {
    if (status === 401 || status === 403) {
      this.counts[`status${status}`]++
      if (seen !== undefined) seen[`refused${status}`]++
      const challenge = this.challenge(error, scope)
      if (challenge !== undefined) response.setHeader('www-authenticate', challenge)
      if (this.nonce !== undefined) response.setHeader('dpop-nonce', this.nonce)
    }
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: error ?? 'refused' }))
  }

  challenge(error, scope) {
    const { challenge, challengeScope, documents, dpop, staticToken } = this.knobs
    if (challenge === 'none') return undefined
    if (typeof challenge === 'object') return challenge.text
    const scheme = dpop === 'required' ? 'DPoP' : 'Bearer'
    if (challenge === 'bare') return scheme
    const hasDocument = documents !== 'none' && staticToken === undefined
    const parameters = {
      error,
      scope: (scope ?? challengeScope) || undefined,
      resource_metadata: hasDocument ? `${this.origin}${WELL_KNOWN}${documents === 'root' ? '' : '/mcp'}` : undefined,
      algs: dpop === 'required' ? 'ES256 EdDSA' : undefined,
    }
    const stated = Object.entries(parameters).filter(([, value]) => value !== undefined)
    return `${scheme} ${stated.map(([name, value]) => `${name}="${value}"`).join(', ')}`.trimEnd()
  }

  /** The body as it goes on: the guard knows the answers of the tools that speak about tokens, and has them echoed. */
  answered(body, { holder, seen }) {
    const message = messageOf(body)
    if (message === undefined) return body
    const rpc = message.method ?? 'response'
    this.rpc[rpc] = (this.rpc[rpc] ?? 0) + 1
    const answer = rpc === 'tools/call' ? ANSWERS[message.params?.name]?.({ holder, seen, server: this }) : undefined
    if (answer === undefined) return body
    return JSON.stringify({ ...message, params: { ...message.params, arguments: { text: answer } } })
  }
}

const refused = (status, error, scope) => ({ kind: 'refused', status, error, scope })
const nobody = { account: null, clientId: null, scopes: [], jkt: undefined }
const ANSWERS = {
  whoami: ({ holder: { account, clientId, scopes }, seen }) =>
    JSON.stringify({ account, clientId, scopes, token: seen?.digest ?? null }),
  read: ({ holder }) => `read by ${holder.account ?? holder.clientId}`,
  write: ({ holder }) => `written by ${holder.account ?? holder.clientId}`,
  seen: ({ server }) => JSON.stringify(server.stats()),
}

function messageOf(body) {
  try {
    return body === '' ? undefined : JSON.parse(body)
  } catch {
    return undefined
  }
}

async function bodyOf(request) {
  const parts = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts).toString()
}

const options = JSON.parse(process.argv.at(-1))
const mcp = await startScriptedHttp({ name: 'protected', era: 'both', tools: TOOLS, ...options.script })
const guard = new ProtectedServer(options, mcp)
const server = createServer((request, response) => {
  guard.receive(request, response).catch((error) => {
    process.stderr.write(`${error.stack}\n`)
    if (!response.headersSent) response.writeHead(503)
    response.end()
  })
})
server.listen(options.port ?? 0, '127.0.0.1', () => {
  guard.start(server.address().port)
  process.stdout.write(`READY ${server.address().port}\n`)
})
endWithParent()
