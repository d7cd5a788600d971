// How to reach one server, and what its session may do.
import type { CallContext, ServerRequestHandler } from './call.ts'
import type { Platform } from './platform.ts'
import type { Era, EraVerdict, JsonObject } from './protocol.ts'
import type { WriteBurst } from './stdio.ts'
import type { HttpTarget, StdioTarget } from './target.ts'

/** What happens around a session that takes the place of a forgotten one: one renewal for all calls that found out. */
export interface SessionRenewal {
  /** The old session is known to be gone. */
  onLost?(): void
  /** The new handshake is over; calls wait until this resolves. Listings go through. Rejecting fails the renewal, and with it the calls. */
  onOpened?(): Promise<void>
  /** No new session could be made; the next call tries again. */
  onFailed?(error: Error): void
}

/** All that `Session.connect` needs; only `target` is required. */
export interface SessionOptions {
  target: StdioTarget | HttpTarget
  /** Default: the real one. */
  platform?: Platform
  clientInfo?: { name: string; version: string; title?: string }
  /** What the server may ask of this client. */
  capabilities?: JsonObject
  /** Default `auto`: ask the server, unless `remembered` knows. */
  era?: Era | 'auto'
  remembered?: EraVerdict
  /** For `elicitation/create`, `sampling/createMessage`, `roots/list`: pushed by legacy servers, embedded in results by modern ones. */
  handlers?: Readonly<Record<string, ServerRequestHandler>>
  /** Every notification of the server, progress apart. `call`: the one on whose stream it came, or the only one in flight. */
  onNotification?: (method: string, params: JsonObject, call?: CallContext) => void
  /** Called once, with the first thing on stdout that is no message. */
  onNoise?: (text: string) => void
  /** Called once, when the first byte comes on stdout (stdio): whatever installs the server has done so by then. */
  onFirstOutput?: () => void
  /**
   * Told when credentials begin to be waited for on behalf of a request, and when nobody waits for them any more. No limit of this session runs in between;
   * whoever has a clock of their own stops it.
   */
  onCredentials?: (phase: 'waiting' | 'over') => void
  /** Called at once when the start has failed; `connect` rejects with the same error as soon as nothing is left running. */
  onFailing?: (error: Error) => void
  /** Hears when a legacy server has forgotten its session, and may do what has to be done in the new one before any call goes on. */
  renewal?: SessionRenewal
  /** Bytes of one message. Default 64 MiB. A longer one fails its call only. */
  messageBytesMax?: number
  /** One budget for the whole start: process, probe and handshake, without what credentials take. Default 30,000. */
  startupTimeoutMs?: number
  /** Default `tick`; a gateway sets `turn`. */
  writeBurst?: WriteBurst
  /** Aborts the start. Afterwards it has no effect. */
  signal?: AbortSignal
}
