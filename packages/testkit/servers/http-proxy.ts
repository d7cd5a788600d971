// A real forward proxy: tunnels by CONNECT, and requests that name a whole URL. It resolves names itself, from a table, as a proxy in an office does.
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export interface ProxyOptions {
  /** Demanded as Basic authorization: `user:password`. */
  readonly credentials?: string
  /** Speaks TLS itself. PEM. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Where the names lead, as ports of this machine. */
  readonly hosts?: Readonly<Record<string, number>>
  /** What every CONNECT is answered with instead of a tunnel. */
  readonly refuseTunnels?: number
}

export interface ProxyRequest {
  readonly method: string
  readonly target: string
  readonly headers: IncomingHttpHeaders
}

export interface TestProxy extends AsyncDisposable {
  /** With the credentials, if any. */
  readonly url: string
  readonly port: number
  readonly requests: readonly ProxyRequest[]
}

/** Starts on a free port of the loopback interface. */
export async function startProxy(options: ProxyOptions = {}): Promise<TestProxy> {
  const { credentials, tls, hosts = {}, refuseTunnels } = options
  const requests: ProxyRequest[] = []
  const sockets = new Set<Duplex>()
  const expected = credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`
  const isAllowed = ({ headers }: IncomingMessage): boolean =>
    expected === undefined || headers['proxy-authorization'] === expected
  const note = ({ method = '', url = '', headers }: IncomingMessage): void =>
    void requests.push({ method, target: url, headers })
  const portOf = (host: string, port: string): number => hosts[host] ?? Number(port || 80)

  function forward(request: IncomingMessage, response: ServerResponse): void {
    note(request)
    if (!isAllowed(request)) return void response.writeHead(407, { 'proxy-authenticate': 'Basic realm="proxy"' }).end()
    if (!URL.canParse(request.url ?? '')) return void response.writeHead(400).end()
    const url = new URL(request.url ?? '')
    const { 'proxy-authorization': _, ...headers } = request.headers
    const onward = sendRequest(
      {
        host: '127.0.0.1',
        port: portOf(url.hostname, url.port),
        path: url.pathname + url.search,
        ...(request.method && { method: request.method }),
        headers,
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  }

  function tunnel(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    note(request)
    if (!isAllowed(request))
      return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n')
    if (refuseTunnels !== undefined)
      return void socket.end(`HTTP/1.1 ${refuseTunnels} No\r\ncontent-length: 2\r\n\r\nno`)
    const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(request.url ?? '') ?? []
    const onward = connect(portOf(host, port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      onward.write(head)
      onward.pipe(socket).pipe(onward)
    })
    sockets.add(onward)
    for (const [one, other] of [
      [onward, socket],
      [socket, onward],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  }

  const server: Server = tls === undefined ? createServer(forward) : createTlsServer(tls, forward)
  server.on('connect', tunnel)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${credentials === undefined ? '' : `${credentials}@`}127.0.0.1:${port}`,
    port,
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
