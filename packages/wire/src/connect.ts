// From a target to a connection that has shaken hands, within one budget, leaving nothing running when it fails.
import type { RequestOptions } from './call.ts'
import type { Channel, ChannelContext } from './channel.ts'
import { WireError } from './errors.ts'
import {
  assumeModern,
  type Hello,
  type Introduction,
  initialize,
  modernMeta,
  negotiateHttp,
  negotiateStdio,
} from './handshake.ts'
import { methodNotFound, Peer } from './peer.ts'
import { nodePlatform, type Platform } from './platform.ts'
import type { Era } from './protocol.ts'
import { answerServer } from './rounds.ts'
import type { SessionOptions } from './session.ts'

export interface Connection extends Opened {
  hello: Hello
  launches: number
}
interface Opened {
  peer: Peer
  channel: Channel
  /** Filled by the session, for what depends on it. */
  owner: { era?: () => Era }
}

const MESSAGE_BYTES_MAX = 64 * 1024 * 1024
const STARTUP_TIMEOUT_MS = 30_000

export async function connectTo(options: SessionOptions): Promise<Connection> {
  const platform = options.platform ?? nodePlatform
  const startupTimeoutMs = options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS
  const budget = { totalMs: startupTimeoutMs, endsAtMs: platform.now() + startupTimeoutMs }
  const wanted = options.remembered?.era ?? options.era ?? 'auto'
  try {
    return await attempt(options, platform, wanted, budget)
  } catch (error) {
    // A legacy stdio server may die of a question it does not know: start it once more, and do not ask.
    const died = error instanceof WireError && error.code === 'closed'
    if (!died || wanted !== 'auto' || options.target.kind !== 'stdio' || options.signal?.aborted === true) throw error
    return { ...(await attempt(options, platform, 'legacy', budget)), launches: 2 }
  }
}

async function attempt(
  options: SessionOptions,
  platform: Platform,
  era: Era | 'auto',
  budget: { totalMs: number; endsAtMs: number },
): Promise<Connection> {
  const opened = await open(options, platform)
  try {
    const request: RequestOptions = {
      idleTimeoutMs: Math.max(1, budget.endsAtMs - platform.now()),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    }
    const hello = await shakeHands(options, opened, era, request)
    if (hello.era === 'legacy') greet(opened.peer, opened.channel, hello)
    return { ...opened, hello, launches: opened.channel.pid === undefined ? 0 : 1 }
  } catch (error) {
    options.onFailing?.(error as Error)
    await opened.channel.close()
    throw error
  }
}

async function open(options: SessionOptions, platform: Platform): Promise<Opened> {
  const owner: Opened['owner'] = {}
  let peer: Peer | undefined
  const context: ChannelContext = {
    platform,
    messageBytesMax: options.messageBytesMax ?? MESSAGE_BYTES_MAX,
    receiver: () => peer as Peer,
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
          ? Promise.reject(methodNotFound(method))
          : answerServer(options, method, params, { signal, call }),
      onNotification: (method, params, call) => options.onNotification?.(method, params, call),
      onNoise: (text) => options.onNoise?.(text),
    },
    platform,
  )
  return { peer, channel, owner }
}

async function shakeHands(
  options: SessionOptions,
  { peer, channel }: Opened,
  era: Era | 'auto',
  request: RequestOptions,
): Promise<Hello> {
  const introduction = introductionOf(options)
  const setEra = (one: Era): void => {
    const own = modernMeta(introduction)
    peer.requestMeta =
      one === 'modern'
        ? (capabilities) => (capabilities === undefined ? own : modernMeta({ ...introduction, capabilities }))
        : undefined
    channel.speak?.(one, undefined)
  }
  const negotiate = (): Promise<Hello> => {
    if (era === 'auto')
      return channel.multiplexed
        ? negotiateStdio(peer, introduction, setEra, request)
        : negotiateHttp(peer, introduction, setEra, request)
    setEra(era)
    return era === 'modern' ? assumeModern(peer, request) : initialize(peer, introduction, request)
  }
  const hello = await negotiate()
  channel.speak?.(hello.era, hello.version)
  return hello
}

/** The last word of the legacy handshake. */
export function greet(peer: Peer, channel: Channel, hello: Hello): void {
  peer.notify('notifications/initialized')
  channel.listen?.(hello.capabilities)
}

/** A new legacy handshake on the same channel. */
export function recover(peer: Peer, introduction: Introduction): Promise<Hello> {
  return initialize(peer, introduction, {})
}

export function introductionOf({
  clientInfo = { name: 'convoke', version: '0.0.0' },
  capabilities = {},
}: SessionOptions): Introduction {
  return { clientInfo, capabilities }
}
