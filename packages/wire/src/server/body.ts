// The body of one request, within a cap of its own and a cap for all bodies that are on their way.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Refusal } from './door.ts'
import { tooLarge } from './door.ts'

/** Bytes of bodies that are being received at present. */
export class BodyBudget {
  bytes = 0
  readonly bytesMax: number
  readonly bodyBytesMax: number

  constructor(limits: { readonly bodyBytesMax: number; readonly bodyBytesTotalMax: number }) {
    this.bodyBytesMax = limits.bodyBytesMax
    this.bytesMax = limits.bodyBytesTotalMax
  }
}

export interface BodySink {
  body(bytes: Buffer): void
  refused(refusal: Refusal): void
}

/** Bodies up to this size, as their length says, are not booked: all connections together hold little of them. */
const UNBOOKED_BYTES_MAX = 16 * 1024

/** Reads a body and tells the sink once: the whole body, or why it was refused. A client that goes away is not told of. */
export function receiveBody(request: IncomingMessage, budget: BodyBudget, sink: BodySink): void {
  const length = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY)
  if (length <= UNBOOKED_BYTES_MAX) receiveSmall(request, sink)
  else receiveBooked(request, budget, sink)
}

/** The length is what it says it is: Node ends the request there. */
function receiveSmall(request: IncomingMessage, sink: BodySink): void {
  let whole: Buffer | undefined
  request.on('data', (chunk: Buffer) => {
    whole = whole === undefined ? chunk : Buffer.concat([whole, chunk])
  })
  request.on('end', () => sink.body(whole ?? Buffer.alloc(0)))
}

function receiveBooked(request: IncomingMessage, budget: BodyBudget, sink: BodySink): void {
  let first: Buffer | undefined
  let more: Buffer[] | undefined
  let length = 0
  let done = false
  const release = (): void => {
    budget.bytes -= length
    length = 0
    done = true
  }
  request.on('data', (chunk: Buffer) => {
    if (done) return
    length += chunk.length
    budget.bytes += chunk.length
    if (length > budget.bodyBytesMax || budget.bytes > budget.bytesMax) {
      const refusal =
        length > budget.bodyBytesMax
          ? tooLarge(budget.bodyBytesMax)
          : { status: 503, message: 'Too many bodies at once' }
      release()
      first = more = undefined
      return sink.refused(refusal)
    }
    if (first === undefined) first = chunk
    else (more ??= [first]).push(chunk)
  })
  request.once('end', () => {
    if (done) return
    release()
    sink.body(more === undefined ? (first ?? Buffer.alloc(0)) : Buffer.concat(more))
  })
  request.once('close', () => {
    if (!done) release()
  })
}

const LINGER_BYTES_MAX = 8 * 1024 * 1024
const LINGER_MS = 1_000

/**
 * Refuses a request and closes its connection. A client that is still sending gets a moment to read the answer: closing at once would reset the
 * connection under it.
 */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  { status, message, headers = {} }: Refusal,
): void {
  const text = JSON.stringify({
    jsonrpc: '2.0',
    error: { code: status === 429 || status === 503 ? -32000 : -32600, message },
  })
  const sent = request.complete || !hasBody(request)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'x-content-type-options': 'nosniff',
    ...(sent ? {} : { connection: 'close' }),
    ...headers,
  })
  if (sent) return void response.end(request.method === 'HEAD' ? undefined : text)
  response.write(text)
  linger(request, () => response.end())
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function linger(request: IncomingMessage, done: () => void): void {
  let length = 0
  const timer = setTimeout(finish, LINGER_MS)
  function finish(): void {
    clearTimeout(timer)
    request.off('data', count)
    request.pause()
    done()
  }
  function count(chunk: Buffer): void {
    length += chunk.length
    if (length > LINGER_BYTES_MAX) finish()
  }
  request.on('data', count)
  request.once('end', finish)
  request.once('close', finish)
  request.resume()
}
