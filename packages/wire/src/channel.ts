// The seam between the JSON-RPC half and a transport.
import type { Call } from './call.ts'
import type { CloseOutcome, WireError } from './errors.ts'
import type { Platform } from './platform.ts'
import type { Era, JsonObject, Tool } from './protocol.ts'

/** Carries text to the server and hands what comes back to a `Receiver`. */
export interface Channel {
  /**
   * True: all calls share one pipe, so what the server asks or says without naming a call belongs to the call in flight, if there is exactly one.
   * False: the transport says on which call's stream a message came.
   */
  readonly multiplexed: boolean
  /** The server's process, where there is one. */
  readonly pid?: number | undefined
  /** The end of what its process wrote to stderr. */
  readonly stderrTail?: string
  readonly lastStderrLine?: string | undefined
  /** `call` is undefined for notifications and for answers to the server's own requests. */
  send(text: string, call: Call | undefined): void
  /** The caller is gone: tell the server, in the way of this transport and era. */
  cancel(call: Call, reason: string): void
  /** The bytes of this call have left: the server may have seen them. */
  hasSent(call: Call): boolean
  /** Ends the connection. Idempotent, never rejects. */
  close(): Promise<void>
  /** How long somebody has waited for credentials so far, in ms, the present waiting included: no limit runs meanwhile. */
  readonly waitedMs?: number
  /** The era (and, once known, the version) of what is sent from now on. */
  speak?(era: Era, version: string | undefined): void
  /** The legacy handshake is over: open the stream for what no call asks for, if the server may use it. */
  listen?(capabilities: JsonObject): void
  /** A tool has been listed. The reason to reject it in this transport and era, or undefined. */
  acceptTool?(tool: Tool): string | undefined
  /** Set by the session: makes a new legacy session after the server has forgotten the old one. */
  onSessionLost?: () => Promise<void>
}

/** What a channel may do with the calls in flight. */
export interface Receiver {
  /** One message as bytes [start, end). `via`: the call on whose own stream it came. */
  receive(bytes: Buffer, start: number, end: number, via?: Call): void
  /** A message over the cap was dropped; its first and last bytes may tell whose it was. */
  receiveOversized(head: Buffer, tail: Buffer, length: number, via?: Call): void
  fail(call: Call, error: WireError): void
  isPending(call: Call): boolean
  /** Stops the clocks of a call, for instance while its user signs in. Each pause needs its resume. */
  pause(call: Call): void
  resume(call: Call): void
  /** The connection is gone: every call fails with `error`, and later ones do at once. */
  end(error: WireError, outcome?: CloseOutcome): void
}

/** What a channel is given. */
export interface ChannelContext {
  platform: Platform
  /** Bytes of one message; a longer one fails its call and nothing else. */
  messageBytesMax: number
  /** Called once, with the first byte that comes from the server's process. */
  onFirstOutput?: (() => void) | undefined
  /** Told when credentials begin to be waited for, and when nobody waits for them any more. */
  onCredentials?: ((phase: 'waiting' | 'over') => void) | undefined
  /** The receiver is made after its channel: call this when something comes, not earlier. */
  receiver: () => Receiver
}
