// Every limit of a served endpoint, with its unit, its default and what fails when it is passed.
import { EndpointError } from './endpoint-errors.ts'

/** Limits of one endpoint. All of them hold per process unless the name says otherwise. */
export interface EndpointLimits {
  /** Bytes of one request body or stdio line; a longer one fails alone (HTTP 413). Default 4 MiB. */
  readonly bodyBytesMax: number
  /** Bytes of all bodies that are being received at one moment; more answers 503. Default 64 MiB. */
  readonly bodyBytesTotalMax: number
  /** Nesting of a request; deeper is refused unparsed. Default 64. */
  readonly depthMax: number
  /** Members and items of a request in all; more is refused unparsed. Default 100,000. */
  readonly membersMax: number
  /** Messages of one batch (only 2025-03-26 has batches). Default 100. */
  readonly batchMessagesMax: number
  /** Characters of a request id or progress token. Default 256. */
  readonly idCharsMax: number
  /** Header lines of one request; more answers 431. Default 100. */
  readonly headerCountMax: number
  /** Bytes of all headers of one request; more answers 431. Default 16 KiB. */
  readonly headerBytesMax: number
  /** Time until the headers are in, in ms; later answers 408. Default 10,000. */
  readonly headersTimeoutMs: number
  /** Time until the body is in, in ms; later answers 408. Default 60,000. */
  readonly bodyTimeoutMs: number
  /** How long an idle connection is kept, in ms. Default 60,000. */
  readonly keepAliveTimeoutMs: number
  /** Connections; further ones are dropped when they are made. Default 4,096. */
  readonly connectionsMax: number
  /** Sessions of the legacy era; further ones answer 429, nobody is evicted. Default 10,000. */
  readonly sessionsMax: number
  /** Sessions from one address that is not loopback. Default 1,000. */
  readonly sessionsPerAddressMax: number
  /** A session without a request and without an open stream is closed after so long, in ms. Default 30 min. */
  readonly sessionIdleMs: number
  /** Requests of one session (or stdio pipe) that wait for their answer; more answer 429. Default 256. */
  readonly callsPerSessionMax: number
  /** Requests that wait for their answer in all; more answer 429. Default 4,096. */
  readonly callsMax: number
  /** Open event streams that no request waits for (GET streams and subscriptions); more answer 429, nobody is evicted. Default 2,048. */
  readonly streamsMax: number
  /** Bytes that wait to be written on one event stream; more closes the connection. Default 1 MiB. */
  readonly outputBytesMax: number
  /** Bytes of large answers that wait to be written in all; more turns an answer into an error. Default 512 MiB. */
  readonly outputBytesTotalMax: number
  /** A connection whose reader takes nothing for so long is closed, in ms. Default 30,000. */
  readonly outputStallMs: number
  /** Events kept per stream for a client that comes back with Last-Event-ID. Default 256. */
  readonly replayEventsMax: number
  /** Bytes of events kept per stream. Default 256 KiB. */
  readonly replayBytesMax: number
  /** Bytes of events kept in all. Default 64 MiB. */
  readonly replayBytesTotalMax: number
  /** How long a broken stream of the legacy era waits for its client, in ms; then its call is cancelled. Default 30,000. */
  readonly resumeWindowMs: number
  /** How long a client may think about a question (elicitation, sampling, roots), in ms. Default 10 min. */
  readonly askTimeoutMs: number
  /** Calls of the modern era that wait for the client's input. Default 1,024. */
  readonly parkedCallsMax: number
  /** How often one call may ask for input. Default 16. */
  readonly inputRoundsMax: number
  /** Bytes of a `requestState`. Default 64 KiB. */
  readonly requestStateBytesMax: number
  /** A request without an answer for so long gets an event stream with comments, if its client takes one, in ms. Default 15,000. */
  readonly keepAliveCommentMs: number
}

const KIB = 1024
const MIB = 1024 * KIB

/** The defaults of {@link EndpointLimits}. */
export const DEFAULT_LIMITS: EndpointLimits = {
  bodyBytesMax: 4 * MIB,
  bodyBytesTotalMax: 64 * MIB,
  depthMax: 64,
  membersMax: 100_000,
  batchMessagesMax: 100,
  idCharsMax: 256,
  headerCountMax: 100,
  headerBytesMax: 16 * KIB,
  headersTimeoutMs: 10_000,
  bodyTimeoutMs: 60_000,
  keepAliveTimeoutMs: 60_000,
  connectionsMax: 4_096,
  sessionsMax: 10_000,
  sessionsPerAddressMax: 1_000,
  sessionIdleMs: 30 * 60_000,
  callsPerSessionMax: 256,
  callsMax: 4_096,
  streamsMax: 2_048,
  outputBytesMax: MIB,
  outputBytesTotalMax: 512 * MIB,
  outputStallMs: 30_000,
  replayEventsMax: 256,
  replayBytesMax: 256 * KIB,
  replayBytesTotalMax: 64 * MIB,
  resumeWindowMs: 30_000,
  askTimeoutMs: 10 * 60_000,
  parkedCallsMax: 1_024,
  inputRoundsMax: 16,
  requestStateBytesMax: 64 * KIB,
  keepAliveCommentMs: 15_000,
}

/** A timer that is set for longer fires at once. */
const TIME_MS_MAX = 2 ** 31 - 1

/**
 * The defaults with some of them replaced.
 * @throws {EndpointError} `invalid-options` for a limit that is no positive whole number, or for a time of more than 24 days.
 */
export function limitsFrom(some: Partial<EndpointLimits> = {}): EndpointLimits {
  const limits = { ...DEFAULT_LIMITS, ...some }
  for (const [name, value] of Object.entries(limits)) checkLimit(name, value)
  return limits
}

/** @throws {EndpointError} `invalid-options` */
export function checkLimit(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value <= 0)
    throw new EndpointError('invalid-options', `"${name}" must be a positive whole number, not ${value}`)
  if (name.endsWith('Ms') && value > TIME_MS_MAX)
    throw new EndpointError('invalid-options', `"${name}" is at most ${TIME_MS_MAX} ms, not ${value}`)
}
