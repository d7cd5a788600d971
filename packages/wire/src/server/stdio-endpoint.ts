// An MCP endpoint over a pipe: one client, both eras, one message a line. Nothing but messages is ever written.
import type { Readable, Writable } from 'node:stream'
import { recoverId } from '../envelope.ts'
import { LineReader } from '../line-reader.ts'
import { nodePlatform, type TimerHandle } from '../platform.ts'
import type { Application } from './application.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Exchange, Outlet } from './exchange.ts'
import { rpcErrorOf } from './failures.ts'
import { initializeResult, readInitialize } from './handshake.ts'
import type { EndpointCounts, EndpointPlatform } from './http-endpoint.ts'
import { LegacyClient } from './legacy-session.ts'
import { type EndpointLimits, limitsFrom } from './limits.ts'
import { type ClientMessage, isRequestId, type RequestId, readBody } from './message.ts'
import { ModernClient } from './modern-client.ts'
import { eraOf, readEnvelope } from './modern-rules.ts'
import { ParkedCalls } from './parked-calls.ts'
import { errorText, type FramedReply, frame, oneLine } from './reply.ts'
import { BUSY, INVALID_REQUEST, VERSION_KEY } from './rules.ts'
import { StateSealer } from './state-sealer.ts'

export interface StdioEndpointOptions {
  readonly application: Application
  readonly input: Readable
  readonly output: Writable
  readonly limits?: Partial<EndpointLimits>
  readonly platform?: EndpointPlatform
}

/** A running endpoint. */
export interface StdioEndpoint extends AsyncDisposable {
  /** Resolves when the client has closed its side, or the endpoint was closed. Never rejects. */
  readonly closed: Promise<void>
  readonly counts: EndpointCounts
  /** Lets open requests finish for `drainMs` (default 10,000), then ends everything. The streams stay open. Idempotent. */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

type Request = ClientMessage & { kind: 'request' }

const DRAIN_MS = 10_000
const SWEEP_MS = 1_000
const PRINCIPAL = 'local'
/** Above this the input is not read until the output has been. */
const OUTPUT_HIGH_BYTES = 1024 * 1024

/**
 * Serves the client at the other end of the two streams.
 * @throws {EndpointError} `invalid-options`
 */
export function serveStdio(options: StdioEndpointOptions): StdioEndpoint {
  return new RunningPipe(options, limitsFrom(options.limits))
}

class RunningPipe implements StdioEndpoint {
  readonly closed: Promise<void>
  readonly #options: StdioEndpointOptions
  readonly #limits: EndpointLimits
  readonly #platform: EndpointPlatform
  readonly #parked: ParkedCalls
  readonly #dispatcher: Dispatcher
  /** Open requests of both eras, by the client's id. */
  readonly #inFlight = new Map<RequestId, Exchange>()
  readonly #onData: (chunk: Buffer) => void
  readonly #onEnd: () => void
  readonly #onDrain: () => void
  readonly #onOutputLost: () => void
  #client: LegacyClient | undefined
  #sweeping: TimerHandle | undefined
  #isOver = false
  #closing: Promise<void> | undefined
  #resolveClosed: () => void = () => {}
  #onIdle: (() => void) | undefined

  constructor(options: StdioEndpointOptions, limits: EndpointLimits) {
    const { application, input, output, platform = nodePlatform } = options
    this.#options = options
    this.#limits = limits
    this.#platform = platform
    this.#parked = new ParkedCalls(
      new StateSealer(
        (count) => platform.randomBytes(count),
        () => platform.dateMs(),
      ),
      limits,
      platform,
    )
    this.#dispatcher = new Dispatcher(application, this.#parked, limits)
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve
    })
    const reader = new LineReader(
      {
        line: (bytes, start, end) => this.#line(bytes.subarray(start, end)),
        oversized: (head, tail) => this.#oversized(head, tail),
      },
      limits.bodyBytesMax,
    )
    this.#onData = (chunk) => reader.push(chunk)
    this.#onEnd = () => {
      reader.flush()
      void this.close({ drainMs: 1 })
    }
    this.#onDrain = () => void input.resume()
    this.#onOutputLost = () => void this.close({ drainMs: 1 })
    input.on('data', this.#onData).once('end', this.#onEnd).once('close', this.#onEnd)
    output.on('drain', this.#onDrain).on('error', this.#onOutputLost)
    this.#sweepLater()
  }

  get counts(): EndpointCounts {
    return {
      sessions: this.#client === undefined ? 0 : 1,
      calls: this.#inFlight.size,
      parkedCalls: this.#parked.size,
      listeners: this.#dispatcher.listenerCount,
    }
  }

  #line(bytes: Buffer): void {
    if (this.#isOver || isBlank(bytes)) return
    const body = readBody(bytes, this.#limits)
    if (body.kind === 'batch') return this.#write(errorText(INVALID_REQUEST, 'Batches are not served over a pipe'))
    const { message } = body
    switch (message.kind) {
      case 'request':
        return this.#request(message)
      case 'notification':
        return this.#notification(message)
      case 'response':
        return void this.#client?.questions.answer(message)
      case 'invalid':
        return this.#write(errorText(message.code, message.reason, message.id))
    }
  }

  #oversized(head: Buffer, tail: Buffer): void {
    const text = recoverId(head, tail)
    const id: unknown = text === undefined ? undefined : JSON.parse(text)
    this.#write(
      errorText(
        INVALID_REQUEST,
        `The message has more than ${this.#limits.bodyBytesMax} bytes`,
        isRequestId(id, this.#limits.idCharsMax) ? id : undefined,
      ),
    )
  }

  #request(message: Request): void {
    const { id, method, params } = message
    if (this.#inFlight.has(id))
      return this.#write(errorText(INVALID_REQUEST, 'A request with this id is still open', id))
    if (this.#inFlight.size >= this.#limits.callsPerSessionMax)
      return this.#write(errorText(BUSY, `More than ${this.#limits.callsPerSessionMax} requests at once`, id))
    if (this.#closing !== undefined) return this.#write(errorText(BUSY, 'The endpoint is closing', id))
    if (eraOf(method, params, undefined) === 'modern') return this.#modern(message)
    if (method === 'initialize') return void this.#initialize(message)
    if (this.#client !== undefined) return this.#begin(message, { client: this.#client, legacy: this.#client })
    if (method === 'ping') return this.#write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{}}`)
    this.#write(
      errorText(
        INVALID_REQUEST,
        `Begin with "initialize", or state the protocol version in _meta["${VERSION_KEY}"]`,
        id,
      ),
    )
  }

  #modern(message: Request): void {
    const envelope = readEnvelope(message.params)
    if ('error' in envelope)
      return this.#write(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: envelope.error }))
    this.#begin(message, { client: new ModernClient(envelope, PRINCIPAL) })
  }

  #begin({ id, method, params }: Request, who: { client: LegacyClient | ModernClient; legacy?: LegacyClient }): void {
    const outlet: Outlet = {
      send: (text) => this.#send(text),
      answer: (framed) => this.#answer(id, framed),
      abandon: () => this.#settled(id),
    }
    const exchange = this.#dispatcher.begin({ ...who, id, method, params, outlet })
    if (!exchange.isOver && exchange.id === id) this.#inFlight.set(id, exchange)
  }

  /** Never rejects. */
  async #initialize({ id, params }: Request): Promise<void> {
    if (this.#client !== undefined) return this.#write(errorText(INVALID_REQUEST, 'The session has begun already', id))
    const client = new LegacyClient(
      { ...readInitialize(params), principal: PRINCIPAL, now: () => this.#platform.now(), limits: this.#limits },
      (text) => this.#send(text),
    )
    this.#client = client
    const context = { era: 'legacy', cacheable: false } as const
    try {
      const result = await initializeResult(this.#options.application, client)
      this.#write(oneLine(frame(id, { kind: 'result', result }, context)))
    } catch (error) {
      this.#write(oneLine(frame(id, { kind: 'error', error: rpcErrorOf(error) }, context)))
      if (this.#client === client) this.#client = undefined
      this.#closeClient(client, 'The handshake failed')
    }
  }

  #notification({ method, params }: ClientMessage & { kind: 'notification' }): void {
    if (method === 'notifications/cancelled') {
      const exchange = this.#inFlight.get(params['requestId'] as RequestId)
      exchange?.cancel(typeof params['reason'] === 'string' ? params['reason'] : 'The client cancelled the request')
    } else if (this.#client !== undefined) this.#options.application.notification?.(this.#client, method, params)
  }

  #answer(id: RequestId, framed: FramedReply): void {
    this.#settled(id)
    this.#write(oneLine(framed))
  }

  #settled(id: RequestId): void {
    this.#inFlight.delete(id)
    if (this.#inFlight.size === 0) this.#onIdle?.()
  }

  /** A message that may be left out when nobody reads. */
  #send(text: string): boolean {
    if (this.#isOver || this.#options.output.writableLength > OUTPUT_HIGH_BYTES) return false
    this.#write(text)
    return true
  }

  #write(text: string): void {
    const { input, output } = this.#options
    if (this.#isOver || output.destroyed) return
    output.write(`${text}\n`)
    if (output.writableLength > this.#limits.outputBytesTotalMax) void this.close({ drainMs: 1 })
    else if (output.writableLength > OUTPUT_HIGH_BYTES) input.pause()
  }

  #sweepLater(): void {
    this.#sweeping = this.#platform.setTimer(
      () => {
        const nowMs = this.#platform.now()
        this.#parked.sweep(nowMs)
        this.#client?.questions.sweep(nowMs)
        this.#sweepLater()
      },
      SWEEP_MS,
      'background',
    )
  }

  close({ drainMs = DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<void> {
    return (this.#closing ??= this.#close(drainMs))
  }

  async #close(drainMs: number): Promise<void> {
    const { input, output } = this.#options
    this.#dispatcher.endListeners()
    await this.#drained(drainMs)
    this.#isOver = true
    this.#platform.clearTimer(this.#sweeping)
    this.#parked.close('The endpoint is closing')
    for (const exchange of [...this.#inFlight.values()]) exchange.cancel('The endpoint is closing')
    const client = this.#client
    this.#client = undefined
    if (client !== undefined) this.#closeClient(client, 'The endpoint is closing')
    input.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onEnd).pause()
    output.off('drain', this.#onDrain)
    this.#resolveClosed()
  }

  async #drained(drainMs: number): Promise<void> {
    if (this.#inFlight.size === 0) return
    let timer: TimerHandle | undefined
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
      timer = this.#platform.setTimer(resolve, drainMs)
    })
    this.#platform.clearTimer(timer)
  }

  #closeClient(client: LegacyClient, reason: string): void {
    client.close(reason)
    this.#options.application.clientClosed?.(client)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte !== 32 && byte !== 13 && byte !== 9) return false
  return true
}
