#!/usr/bin/env node
// A streamable HTTP server that behaves as its script says, in this process (`startScriptedHttp`) or as one of its own: the script is then the JSON in the
// last argument, and `READY PORT` is printed. See ../src/script.ts.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createBrain } from './script.mjs'

const REQUESTS_KEPT_MAX = 10_000
const BODY_BYTES_MAX = 64 * 1024 * 1024

/** Starts on a free port of the loopback interface. */
export async function startScriptedHttp(script, { onExit } = {}) {
  const host = new ScriptedHttp(script, onExit)
  await host.listen()
  return host
}

class ScriptedHttp {
  constructor(script, onExit) {
    this.script = script
    this.brain = createBrain(script)
    /** Every request that came: `{method, path, headers, rpc, status}`. */
    this.requests = []
    this.sessions = new Map()
    this.failed = new Map()
    this.stored = new Map()
    this.forgotten = 0
    this.eventId = 0
    this.scope = 0
    this.onExit = onExit ?? (() => void this.close())
    this.server = createServer((request, response) => void this.handle(request, response))
    this.server.keepAliveTimeout = 60_000
  }

  async listen() {
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${this.server.address().port}/mcp`
  }

  /** Forgets every session, as a server does that was restarted behind its address. */
  forgetSessions() {
    for (const session of this.sessions.values()) for (const stream of session.streams) stream.end()
    this.sessions.clear()
  }

  async close() {
    this.brain.close()
    if (!this.server.listening) return
    const closed = new Promise((resolve) => this.server.close(resolve))
    this.server.closeAllConnections()
    await closed
  }

  async [Symbol.asyncDispose]() {
    await this.close()
  }

  async handle(request, response) {
    const entry = {
      method: request.method,
      path: request.url,
      headers: request.headers,
      rpc: undefined,
      status: undefined,
    }
    if (this.requests.length < REQUESTS_KEPT_MAX) this.requests.push(entry)
    response.once('close', () => {
      entry.status = response.statusCode
    })
    const { token } = this.script
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      return void response.writeHead(401, { 'www-authenticate': 'Bearer realm="scripted", scope="tools"' }).end()
    }
    if (request.method === 'GET') return this.get(request, response)
    if (request.method === 'DELETE')
      return void response.writeHead(this.sessions.delete(request.headers['mcp-session-id']) ? 200 : 404).end()
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const body = await read(request)
    if (body === undefined) return void response.writeHead(413).end()
    const message = JSON.parse(body)
    entry.rpc = message.method ?? 'response'
    this.post(message, request, response)
  }

  get(request, response) {
    const { getStream = 'serve' } = this.script
    if (getStream !== 'serve') return void response.writeHead(Number(getStream)).end()
    const resumed = this.stored.get(request.headers['last-event-id'])
    const session = this.sessions.get(request.headers['mcp-session-id'])
    if (session === undefined && resumed === undefined) return this.refuse(undefined, response)
    openStream(response)
    if (resumed !== undefined)
      return void resumed.then((message) => response.end(`data: ${JSON.stringify(message)}\n\n`))
    session.streams.add(response)
    response.once('close', () => session.streams.delete(response))
  }

  post(message, request, response) {
    if (this.failsAsAsked(message, response)) return
    const isModern = message.params?._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined
    const session = isModern ? undefined : this.sessionFor(message, request)
    if (session === undefined && !isModern && (this.script.sessions ?? 'required') === 'required') {
      return this.refuse(message, response)
    }
    if (session !== undefined && message.method === 'initialize') response.setHeader('mcp-session-id', session.id)
    const line = this.lineFor({ message, response, session, isModern })
    if (message.id !== undefined && message.method !== undefined)
      return this.serve(message, line, { response, session, isModern })
    void this.brain.receive(message, line)
    response.writeHead(202).end()
  }

  serve(message, line, { response, session, isModern }) {
    if (session !== undefined && message.method === 'tools/call') this.countCall(session)
    if (isModern) response.once('close', () => this.brain.forget(line, message.id))
    if (this.script.answers === 'sse-resume' && message.method !== 'initialize')
      return this.answerLater(message, line, response)
    if (this.script.answers === 'sse') openStream(response)
    void this.brain.receive(message, line)
  }

  /** The stream ends after its first event id; the answer waits for the client to come back for it. */
  answerLater(message, line, response) {
    const id = String(++this.eventId)
    const answer = new Promise(
      (resolve) => void this.brain.receive(message, { ...line, send: (out) => out.id === message.id && resolve(out) }),
    )
    this.stored.set(id, answer)
    openStream(response)
    response.end(`id: ${id}\nretry: 10\ndata: \n\n`)
  }

  failsAsAsked(message, response) {
    const failure = (this.script.failures ?? []).find(({ method }) => method === message.method)
    if (failure === undefined) return false
    const count = (this.failed.get(failure) ?? 0) + 1
    this.failed.set(failure, count)
    if (count > (failure.times ?? Number.POSITIVE_INFINITY)) return false
    response.writeHead(failure.status, failure.headers).end()
    return true
  }

  sessionFor(message, request) {
    if ((this.script.sessions ?? 'required') === 'none') return undefined
    if (message.method !== 'initialize') return this.sessions.get(request.headers['mcp-session-id'])
    const session = { id: randomUUID(), streams: new Set(), calls: 0 }
    this.sessions.set(session.id, session)
    return session
  }

  countCall(session) {
    session.calls++
    if (session.calls === this.script.forgetAfterCalls) this.sessions.delete(session.id)
  }

  /** Answers somebody whose session is not known, in one of the ways that are met. */
  refuse(message, response) {
    const answers = this.script.forgottenAnswers ?? ['404-json']
    const answer = answers[this.forgotten++ % answers.length]
    const error = (code, text) =>
      JSON.stringify({ jsonrpc: '2.0', id: message?.id ?? null, error: { code, message: text } })
    const json = { 'content-type': 'application/json' }
    if (answer === '404-html')
      return void response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not Found</h1>')
    if (answer === '404-empty') return void response.writeHead(404).end()
    if (answer === '400-no-session')
      return void response.writeHead(400, json).end(error(-32000, 'Bad Request: No valid session ID provided'))
    if (answer === '200-not-initialized')
      return void response.writeHead(200, json).end(error(-32600, 'Server not initialized'))
    response.writeHead(404, json).end(error(-32001, 'Session not found'))
  }

  lineFor({ message, response, session, isModern }) {
    return {
      scope: session?.id ?? `exchange-${++this.scope}`,
      send: (out) => sendOn(response, out, { isFinal: out.id === message.id && out.method === undefined, isModern }),
      aside: (out) => {
        for (const stream of session?.streams ?? []) stream.write(`event: message\ndata: ${JSON.stringify(out)}\n\n`)
      },
      noise: (lines) => {
        openStream(response)
        for (const line of lines) response.write(`: ${line}\n\n`)
      },
      drop: () => void response.socket?.destroy(), // no answer follows
      exit: (code) => this.onExit(code),
    }
  }
}

/** One JSON body where nothing else has to travel, an event stream otherwise. */
function sendOn(response, message, { isFinal, isModern }) {
  if (response.writableEnded || response.destroyed) return
  const text = JSON.stringify(message)
  if (isFinal && !response.headersSent) {
    response
      .writeHead(isModern ? statusOf(message) : 200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      })
      .end(text)
    return
  }
  openStream(response)
  response.write(`event: message\ndata: ${text}\n\n`)
  if (isFinal) response.end()
}

function openStream(response) {
  if (!response.headersSent)
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }).flushHeaders()
}

function statusOf({ error }) {
  if (error?.code === -32601) return 404
  return error?.code === -32022 || error?.code === -32020 ? 400 : 200
}

/** The body, or nothing when it is too large. */
async function read(request) {
  const parts = []
  let bytes = 0
  for await (const part of request) {
    bytes += part.length
    if (bytes > BODY_BYTES_MAX) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

if (import.meta.main) {
  const host = await startScriptedHttp(JSON.parse(process.argv.at(-1)), { onExit: (code) => process.exit(code) })
  process.once('SIGTERM', () => void host.close().then(() => process.exit(0)))
  process.stdout.write(`READY ${new URL(host.url).port}\n`)
}
