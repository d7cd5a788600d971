// One question to somebody: time limit, abort, and the failures of the way there as a SignInError.
import { cleanLine } from '../../base/index.ts'
import { placeOf } from './endpoints.ts'
import type { Asking } from './flow.ts'
import type { OAuthAnswer, OAuthPort, OAuthRequest } from './port.ts'
import { SignInError } from './sign-in-error.ts'

/** Bytes of one answer. */
export const ANSWER_BYTES_MAX: number = 1024 * 1024
/** For one request, in milliseconds. */
export const REQUEST_TIMEOUT_MS = 30_000
const MESSAGE_CHARS_MAX = 300

/**
 * Runs `task` with a signal that aborts with the caller's and when the time is over; settles then, whatever the task does.
 * @param what Begins the message: `<what> took longer than … ms`.
 * @throws {SignInError} `timed-out`, `cancelled`
 */
export async function withDeadline<Value>(
  { port, signal, timeoutMs }: Asking & { readonly timeoutMs: number },
  what: string,
  task: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController()
  let stop: (error: SignInError) => void = () => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = (error) => {
      reject(error)
      controller.abort(error)
    }
  })
  const onAbort = (): void => stop(new SignInError('cancelled', `${what} was cancelled`, { cause: signal?.reason }))
  if (signal?.aborted === true) throw new SignInError('cancelled', `${what} was cancelled`, { cause: signal.reason })
  signal?.addEventListener('abort', onAbort, { once: true })
  const timer = port.setTimer(
    () => stop(new SignInError('timed-out', `${what} took longer than ${timeoutMs} ms`)),
    timeoutMs,
  )
  try {
    return await Promise.race([task(controller.signal), stopped])
  } finally {
    port.clearTimer(timer)
    signal?.removeEventListener('abort', onAbort)
    // Whatever the task still waits for has nobody to wait for it any more.
    controller.abort()
  }
}

/** A request whose failures are named. */
export interface Question extends Omit<OAuthRequest, 'answerBytesMax' | 'timeoutMs'> {
  /** The field of a document, or the setting, that the URL came from. */
  readonly field?: string
  /** Default 30,000. */
  readonly timeoutMs?: number
}

/** @throws {SignInError} `endpoint-refused`, `unreachable`, `answer-invalid`, `timed-out`, `cancelled` */
export async function ask(port: OAuthPort, url: string, { field, ...request }: Question): Promise<OAuthAnswer> {
  try {
    return await port.fetch(url, {
      timeoutMs: REQUEST_TIMEOUT_MS,
      ...request,
      answerBytesMax: ANSWER_BYTES_MAX,
    })
  } catch (error) {
    throw askingError(error, url, field)
  }
}

/** What a failure of the port means to a person. */
function askingError(error: unknown, url: string, field: string | undefined): SignInError {
  const { code, message } = readError(error)
  const from = field === undefined ? placeOf(url) : `${placeOf(url)} ("${field}")`
  const details = { url: placeOf(url), cause: error, ...(field === undefined ? {} : { field }) }
  switch (code) {
    case 'refused':
      return new SignInError('endpoint-refused', `${from} may not be used: ${message}`, details)
    case 'too-large':
      return new SignInError('answer-invalid', `${from} answered with more than ${ANSWER_BYTES_MAX} bytes`, details)
    case 'timed-out':
      return new SignInError('timed-out', `${from} did not answer in time`, details)
    case 'cancelled':
      return new SignInError('cancelled', 'The sign-in was cancelled', details)
    default:
      return new SignInError('unreachable', `${from} cannot be reached: ${message}`, details)
  }
}

function readError(error: unknown): { readonly code: string; readonly message: string } {
  if (!(error instanceof Error)) return { code: '', message: 'unknown reason' }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return { code, message: cleanLine(error.message, MESSAGE_CHARS_MAX) }
}

/** May the other side have seen a request that failed? The port says so; what it does not say counts as yes. */
export function wasSent(error: unknown): boolean {
  const cause = error instanceof SignInError ? error.details.cause : error
  if (!(cause instanceof Error) || !('details' in cause)) return true
  const { details } = cause
  return !(typeof details === 'object' && details !== null && 'sent' in details && details.sent === false)
}
