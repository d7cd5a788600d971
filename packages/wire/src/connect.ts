// From a target to a connection that has shaken hands, within one budget, leaving nothing running when it fails.
import type { Channel, ChannelContext } from './channel.ts'
import { methodNotFound, WireError } from './errors.ts'
import {
  assumeLegacy,
  assumeModern,
  type Handshake,
  type Hello,
  type Introduction,
  initialize,
  isClosed,
  modernMeta,
  negotiateHttp,
  negotiateStdio,
} from './handshake.ts'
import { Peer } from './peer.ts'
import { nodePlatform, type Platform } from './platform.ts'
import type { Era, JsonObject } from './protocol.ts'
import { answerServer } from './rounds.ts'
import type { SessionOptions } from './session-options.ts'

/** A connection whose handshake is done. */
export interface Connection extends Opened {
  hello: Hello
  launches: number
}
interface Opened {
  peer: Peer
  channel: Channel
  /** Filled by the session, for what depends on it. */
  owner: { era?: () => Era; listeners?: ReadonlySet<NotificationListener> }
}

/** Hears every notification of a session. */
export type NotificationListener = (method: string, params: JsonObject) => void

const MESSAGE_BYTES_MAX = 64 * 1024 * 1024
const STARTUP_TIMEOUT_MS = 30_000

/** What an attempt may use up. The time that credentials take does not count. */
interface Budget {
  totalMs: number
  /** On the clock of the peer. */
  endsAtMs: number
}

/** @throws {WireError} when nothing is left running. */
export async function connectTo(options: SessionOptions): Promise<Connection> {
  const platform = options.platform ?? nodePlatform
  const totalMs = options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS
  const budget = { totalMs, endsAtMs: platform.now() + totalMs }
  const first = await attempt(options, platform, budget)
  if (first.kind === 'connected') return first.connection
  // A legacy stdio server may die of a question that it does not know: it is started once more, and not asked.
  if (first.kind === 'failed' || isAborted(options.signal)) throw first.error
  const second = await attempt({ ...options, era: 'legacy' }, platform, budget)
  if (second.kind === 'connected') return { ...second.connection, launches: 2 }
  throw second.error
}

type Attempt = { kind: 'connected'; connection: Connection } | { kind: 'failed' | 'died-of-the-question'; error: Error }

async function attempt(options: SessionOptions, platform: Platform, budget: Budget): Promise<Attempt> {
  if (isAborted(options.signal))
    return { kind: 'failed', error: new WireError('cancelled', 'The start was cancelled', { sent: false }) }
  const opened = await open(options, platform)
  const shake = handshakeOver(opened, options, budget)
  try {
    const hello = await shakeHands(shake, options, opened.channel)
    shake.setEra(hello.era)
    opened.channel.speak?.(hello.era, hello.version)
    if (hello.era === 'legacy') greet(opened.peer, opened.channel, hello)
    return { kind: 'connected', connection: { ...opened, hello, launches: opened.channel.pid === undefined ? 0 : 1 } }
  } catch (cause) {
    const error = startFailure(cause as Error, opened.channel, budget)
    const died = isClosed(error) && shake.probe === 'open' && !isAborted(options.signal)
    quote(error, opened.channel)
    if (!died) tell(() => options.onFailing?.(error))
    await opened.channel.close()
    quote(error, opened.channel)
    return { kind: died ? 'died-of-the-question' : 'failed', error }
  }
}

async function open(options: SessionOptions, platform: Platform): Promise<Opened> {
  const owner: Opened['owner'] = {}
  let peer: Peer | undefined
  const context: ChannelContext = {
    platform,
    messageBytesMax: options.messageBytesMax ?? MESSAGE_BYTES_MAX,
    receiver: () => peer as Peer,
    onFirstOutput: options.onFirstOutput,
    onCredentials: (phase) => tell(() => options.onCredentials?.(phase)),
  }
  // Only what is used is loaded: a host of stdio servers never reads the HTTP code, and the other way round.
  const { target } = options
  const channel: Channel =
    target.kind === 'stdio'
      ? await (await import('./stdio.ts')).StdioChannel.open(target, context, options.writeBurst ?? 'tick')
      : await (await import('./http.ts')).HttpChannel.open(target, context)
  peer = new Peer(
    channel,
    {
      onRequest: (method, params, { signal, call }) =>
        owner.era?.() === 'modern'
          ? Promise.reject(methodNotFound(method)) // there a server asks in its answers
          : answerServer(options, method, params, { signal, call }),
      onNotification: (method, params, call) => {
        for (const listener of owner.listeners ?? []) listener(method, params)
        options.onNotification?.(method, params, call)
      },
      onNoise: (text) => options.onNoise?.(text),
    },
    platform,
  )
  return { peer, channel, owner }
}

function handshakeOver({ peer, channel }: Opened, options: SessionOptions, budget: Budget): Handshake {
  const introduction = introductionOf(options)
  const own = modernMeta(introduction)
  return {
    peer,
    introduction,
    probe: 'none',
    setEra(era) {
      peer.requestMeta =
        era === 'modern'
          ? (capabilities) => (capabilities === undefined ? own : modernMeta({ ...introduction, capabilities }))
          : undefined
      channel.speak?.(era, undefined)
    },
    options: () => ({
      // Asked again after each pause: then the clock goes on where it stood.
      get idleTimeoutMs() {
        return Math.max(1, budget.endsAtMs - peer.nowMs)
      },
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    }),
  }
}

function shakeHands(shake: Handshake, { era = 'auto', remembered }: SessionOptions, channel: Channel): Promise<Hello> {
  if (era === 'modern') return assumeModern(shake)
  if (era === 'legacy') {
    shake.setEra('legacy')
    return initialize(shake, remembered?.version)
  }
  if (remembered?.era === 'legacy') return assumeLegacy(shake, remembered)
  // What was modern the last time is asked as if it were unknown: that costs nothing more.
  return channel.multiplexed ? negotiateStdio(shake, remembered) : negotiateHttp(shake)
}

/** Says what the limit was a limit of, and quotes the process. */
function startFailure(cause: Error, channel: Channel, { totalMs }: Budget): Error {
  if (!(cause instanceof WireError) || cause.code === 'cancelled' || cause.code === 'closed') return cause
  const isLate = cause.code === 'timed-out' && cause.details.limit === 'idle'
  const line = channel.lastStderrLine
  const message = isLate ? `The server did not start within ${totalMs} ms` : cause.message
  return new WireError(cause.code, line === undefined ? message : `${message} (last stderr line: ${line})`, {
    ...cause.details,
    ...(isLate ? { limit: 'startup' } : {}),
    cause,
  })
}

/** The last words of a process may come while it is being ended. */
function quote(error: Error, { stderrTail }: Channel): void {
  if (error instanceof WireError && stderrTail !== undefined) error.details.stderrTail = stderrTail
}

/** A throwing listener must not keep a process from being ended, or a call from going on. */
function tell(listener: () => void): void {
  try {
    listener()
  } catch {
    /* its own business */
  }
}

/** The last word of the legacy handshake. */
export function greet(peer: Peer, channel: Channel, hello: Hello): void {
  peer.notify('notifications/initialized')
  channel.listen?.(hello.capabilities)
}

/** A new legacy handshake on the same channel, after the server has forgotten the session. */
export async function recover({ peer, channel }: Opened, options: SessionOptions, version: string): Promise<Hello> {
  const totalMs = options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS
  const { signal: _, ...rest } = options // it could only abort the start
  const budget = { totalMs, endsAtMs: peer.nowMs + totalMs }
  const shake = handshakeOver({ peer, channel, owner: {} }, rest, budget)
  shake.setEra('legacy')
  const hello = await initialize(shake, version).catch((error: unknown) =>
    Promise.reject(recoveryFailure(error, budget)),
  )
  channel.speak?.(hello.era, hello.version)
  greet(peer, channel, hello)
  return hello
}

/** What was left of the budget at the end says nothing to anybody. */
function recoveryFailure(error: unknown, { totalMs }: Budget): unknown {
  if (!(error instanceof WireError) || error.code !== 'timed-out') return error
  return new WireError(error.code, `"initialize" got no answer within ${totalMs} ms`, error.details)
}

function introductionOf({
  clientInfo = { name: 'convoke', version: '0.0.0' },
  capabilities = {},
}: SessionOptions): Introduction {
  return { clientInfo, capabilities }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}
