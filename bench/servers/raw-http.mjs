// Workload server over streamable HTTP, written by hand; prints `READY PORT`. Flags: common.mjs, and `--mode stateless|stateful --sse --sign-in`. With the
// last one it is its own authorization server, where everybody is let in at once, and takes requests with a token only.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { answer, makeTools, readFlags } from './common.mjs'

const flags = readFlags()
const tools = makeTools(flags)
const world = { flags, tools, list: flags.page > 0 ? undefined : JSON.stringify({ tools }) }
const sessions = new Set()

async function post(request, response, body) {
  const message = JSON.parse(body)
  const headers = {}
  if (flags.mode === 'stateful') {
    if (message.method === 'initialize') {
      headers['mcp-session-id'] = randomUUID()
      sessions.add(headers['mcp-session-id'])
    } else if (!sessions.has(request.headers['mcp-session-id'])) return response.writeHead(404).end()
  }
  if (message.id === undefined) return response.writeHead(202, headers).end()
  const text = await answer(message, world)
  if (flags.sse) {
    response.writeHead(200, { ...headers, 'content-type': 'text/event-stream' })
    return response.end(`event: message\ndata: ${text}\n\n`)
  }
  return response
    .writeHead(200, { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text)
}

/** Just enough for somebody to sign in. */
function signIn(request, response) {
  const origin = `http://${request.headers.host}`
  const url = new URL(request.url, origin)
  const json = (value) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  switch (url.pathname) {
    case '/.well-known/oauth-authorization-server':
      return json({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
      })
    case '/.well-known/oauth-protected-resource/mcp':
      return json({ resource: `${origin}/mcp`, authorization_servers: [origin] })
    case '/authorize': {
      const to = new URL(url.searchParams.get('redirect_uri'))
      to.searchParams.set('code', 'code')
      to.searchParams.set('state', url.searchParams.get('state'))
      return response.writeHead(302, { location: to.href }).end()
    }
    case '/register': {
      const parts = []
      request.on('data', (part) => parts.push(part))
      return request.on('end', () => {
        const asked = JSON.parse(Buffer.concat(parts).toString())
        response.writeHead(201, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ ...asked, client_id: 'bench' }))
      })
    }
    case '/token':
      request.resume()
      return json({ access_token: randomUUID(), refresh_token: randomUUID(), token_type: 'Bearer', expires_in: 86_400 })
    default:
      return response.writeHead(404).end()
  }
}

const server = createServer((request, response) => {
  if (flags['sign-in'] && request.url !== '/mcp') return signIn(request, response)
  if (flags['sign-in'] && request.headers.authorization === undefined)
    return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
  if (request.method === 'DELETE') sessions.delete(request.headers['mcp-session-id'])
  if (request.method !== 'POST') return response.writeHead(request.method === 'DELETE' ? 200 : 405).end()
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () =>
    post(request, response, parts.length === 1 ? parts[0].toString() : Buffer.concat(parts).toString()),
  )
})
server.keepAliveTimeout = 60_000
server.listen(flags.port, '127.0.0.1', () => process.stdout.write(`READY ${server.address().port}\n`))
process.on('SIGTERM', () => process.exit(0))
