// An HTTP server in a few lines, for what no ordinary server says: answers are given by method, as they go over the wire.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'

/** One message as it came in. */
export interface RawMessage {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly _meta?: { readonly progressToken?: unknown } }
}

/** What to answer: a result, an error, or a result after messages on the same stream. */
export type RawReply =
  | { readonly result: object; readonly headers?: Record<string, string> }
  /** The connection ends without an answer. */
  | { readonly drop: true }
  | { readonly error: { readonly code: number; readonly message: string } }
  | { readonly status: number; readonly headers?: Record<string, string> }
  | { readonly before: readonly object[]; readonly result: object }

/** A running raw server. */
export interface RawHttp extends AsyncDisposable {
  readonly url: string
  /** The headers of every request with a body, in order. */
  readonly headers: readonly IncomingHttpHeaders[]
}

type Replies = Record<string, (message: RawMessage, headers: IncomingHttpHeaders) => RawReply | Promise<RawReply>>

const UNKNOWN: RawReply = { error: { code: -32601, message: 'Method not found' } }

function answer(response: ServerResponse, { id }: RawMessage, reply: RawReply): void {
  if ('drop' in reply) {
    response.socket?.destroy()
    return
  }
  if ('status' in reply) {
    response.writeHead(reply.status, reply.headers).end()
    return
  }
  const { before, headers, ...body } = { before: undefined, headers: {}, ...reply }
  const text = JSON.stringify({ jsonrpc: '2.0', id, ...body })
  const contentType = before === undefined ? 'application/json' : 'text/event-stream'
  response.writeHead(200, { 'content-type': contentType, ...headers })
  for (const one of before ?? []) response.write(`data: ${JSON.stringify(one)}\n\n`)
  response.end(before === undefined ? text : `data: ${text}\n\n`)
}

/** Starts it. Methods without an answer are not found; a handshake of the session era is always given. */
export async function startRawHttp(replies: Replies, capabilities: object = { tools: {} }): Promise<RawHttp> {
  const seen: IncomingHttpHeaders[] = []
  const initialize = (): RawReply => ({
    result: { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'raw', version: '1' } },
  })
  const web = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.method !== 'POST') return response.writeHead(405).end()
      seen.push(request.headers)
      const message = JSON.parse(Buffer.concat(chunks).toString()) as RawMessage
      if (message.id === undefined) return response.writeHead(202).end()
      const known: Replies = { initialize, ...replies }
      const reply = known[message.method ?? '']?.(message, request.headers) ?? UNKNOWN
      if (!(reply instanceof Promise)) return answer(response, message, reply)
      return void reply.then((late) => answer(response, message, late))
    })
  })
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  const { port } = web.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    headers: seen,
    async [Symbol.asyncDispose]() {
      web.closeAllConnections()
      await new Promise((resolve) => web.close(resolve))
    },
  }
}
