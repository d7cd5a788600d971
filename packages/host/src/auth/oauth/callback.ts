// Waits on this machine for the browser to come back. It answers one path of one address, and takes nothing but the answer that is waited for.
import type * as Http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { OauthSettings } from '../../config/index.ts'
import { type CallbackAnswer, type CallbackReading, readCallback } from './callback-answer.ts'
import { callbackId } from './callback-id.ts'
import { isLoopbackHost, placeOf } from './endpoints.ts'
import { SignInError } from './sign-in-error.ts'

/** Where the browser is to come back to, and where we wait for it. Pure facts. */
export interface CallbackPlan {
  /** `undefined`: nobody can wait there; what the browser ends at has to be pasted. */
  readonly bind: { readonly address: '127.0.0.1' | '::1'; readonly port: number } | undefined
  /** The port of a loopback URL without one is filled in. */
  readonly url: string
}

/** Somebody who waits for the browser. Close it when the sign-in has ended, however it did. */
export interface Callback extends AsyncDisposable {
  readonly redirectUrl: string
  /** The answer that carries `state`. Waits on when others come by; never rejects but by {@link HITS_MAX}. */
  receive(state: string): Promise<CallbackAnswer>
  /** Idempotent. */
  close(): Promise<void>
}

/** Requests that a sign-in looks at; after that somebody is playing. */
export const HITS_MAX = 100_000
const CONNECTIONS_MAX = 64
const HEADER_BYTES_MAX = 16 * 1024
const HEADERS_TIMEOUT_MS = 10_000

/**
 * Decides it. Without settings: a free port of 127.0.0.1 with a path for this server alone. A configured URL is used as it is, because it is registered so.
 * @throws {SignInError} `settings-invalid`
 */
export function planCallback(serverUrl: string, { callbackUrl, callbackPort = 0 }: OauthSettings): CallbackPlan {
  if (callbackUrl === undefined)
    return {
      bind: { address: '127.0.0.1', port: callbackPort },
      url: `http://127.0.0.1:${callbackPort}/callback/${callbackId(serverUrl)}`,
    }
  const url = URL.canParse(callbackUrl) ? new URL(callbackUrl) : undefined
  const isUsable = url !== undefined && url.username === '' && url.hash === '' && url.search === ''
  const isLocal = isUsable && url.protocol === 'http:' && isLoopbackHost(url.hostname)
  if (!isUsable || !(isLocal || url.protocol === 'https:'))
    throw new SignInError(
      'settings-invalid',
      'oauth.callbackUrl has to begin with https://, or with http:// and this machine, and has neither a query nor a fragment',
      { field: 'oauth.callbackUrl' },
    )
  const address = url.hostname === '[::1]' ? '::1' : '127.0.0.1'
  if (isLocal) {
    const port = url.port === '' ? callbackPort : Number(url.port)
    return { bind: { address, port }, url: callbackUrl }
  }
  // Something in front of us passes it on.
  return { bind: callbackPort === 0 ? undefined : { address, port: callbackPort }, url: callbackUrl }
}

/** @throws {SignInError} `callback-unavailable`: the port is taken or may not be used. */
export async function openCallback(
  plan: CallbackPlan & { bind: NonNullable<CallbackPlan['bind']> },
): Promise<Callback> {
  const http: typeof Http = process.getBuiltinModule('node:http')
  const server = http.createServer({
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: HEADERS_TIMEOUT_MS,
  })
  letTheNewestIn(server)
  await listen(server, plan.bind)
  return new Listening(server, plan)
}

/** Who connects and says nothing must not keep the browser out: the eldest makes room. */
function letTheNewestIn(server: Http.Server): void {
  const open = new Set<Socket>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    const [eldest] = open
    if (open.size > CONNECTIONS_MAX) eldest?.destroy()
  })
}

function listen(server: Http.Server, { address, port }: NonNullable<CallbackPlan['bind']>): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? 'is in use by another program'
          : `cannot be used (${error.code ?? 'unknown reason'})`
      reject(
        new SignInError(
          'callback-unavailable',
          `Port ${port} of ${address}, where the browser is to come back to, ${why}: free it, or set another oauth.callbackPort`,
          { field: 'oauth.callbackPort', cause: error },
        ),
      )
    })
    server.listen({ host: address, port, exclusive: true }, resolve)
  })
}

class Listening implements Callback {
  readonly redirectUrl: string
  readonly #server: Http.Server
  readonly #path: string
  readonly #hosts: readonly string[]
  #hits = 0
  #waiting: { readonly state: string; settle(answer: CallbackAnswer): void; fail(error: SignInError): void } | undefined
  #closing: Promise<void> | undefined

  constructor(server: Http.Server, { url, bind }: CallbackPlan & { bind: NonNullable<CallbackPlan['bind']> }) {
    this.#server = server
    const { port } = server.address() as AddressInfo
    const own = `${bind.address === '::1' ? '[::1]' : bind.address}:${port}`
    const redirect = new URL(url)
    if (redirect.protocol === 'http:') redirect.port = String(port)
    this.redirectUrl = redirect.protocol === 'http:' ? redirect.href : url
    this.#path = redirect.pathname
    // Port 80 is left out in a URL and in a Host header.
    this.#hosts = [redirect.host, own]
    server.on('request', (request: Http.IncomingMessage, response: Http.ServerResponse) =>
      this.#answer(request, response),
    )
    server.on('clientError', (_error: Error, socket: { destroy(): void }) => socket.destroy())
  }

  receive(state: string): Promise<CallbackAnswer> {
    return new Promise((settle, fail) => {
      this.#waiting = { state, settle, fail }
    })
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#waiting = undefined
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #answer(request: Http.IncomingMessage, response: Http.ServerResponse): void {
    this.#hits += 1
    const waiting = this.#waiting
    const reading = waiting === undefined ? undefined : this.#read(request, waiting.state)
    if (waiting === undefined || reading === undefined || reading.kind === 'stray') {
      respond(response, 400, STRAY)
      if (this.#hits >= HITS_MAX) this.#giveUp()
      return
    }
    // One answer, once.
    this.#waiting = undefined
    const isGood = reading.kind === 'code'
    respond(response, isGood ? 200 : 400, isGood ? RECEIVED : REFUSED, () => waiting.settle(reading))
  }

  #read(request: Http.IncomingMessage, state: string): CallbackReading | undefined {
    const { method, url = '', rawHeaders, headers } = request
    const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host')
    if (method !== 'GET' || hosts.length !== 1 || !this.#hosts.includes(headers.host ?? '')) return undefined
    const at = url.indexOf('?')
    return at < 0 || url.slice(0, at) !== this.#path ? undefined : readCallback(url.slice(at + 1), state)
  }

  #giveUp(): void {
    this.#waiting?.fail(
      new SignInError(
        'callback-unavailable',
        `${placeOf(this.redirectUrl)} was asked ${HITS_MAX} times by something else than the sign-in`,
      ),
    )
    this.#waiting = undefined
  }
}

const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
  connection: 'close',
}

function page(text: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign-in</title><p>${text}</p></html>\n`
}

const RECEIVED = page('You can close this window and go back to where you began.')
const REFUSED = page('The sign-in was refused. Where you began it says why; you can close this window.')
const STRAY = page('There is nothing here.')

/** The page is on its way before anything closes; a browser that has gone away is told nothing. */
function respond(response: Http.ServerResponse, status: number, body: string, then: () => void = () => {}): void {
  let isOver = false
  const end = (): void => {
    if (isOver) return
    isOver = true
    then()
  }
  response.once('finish', end)
  response.once('close', end)
  response.writeHead(status, HEADERS)
  response.end(body)
}
