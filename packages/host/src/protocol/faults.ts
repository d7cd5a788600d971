// One table from what can go wrong on the wire to the codes of this library. Everything above speaks only the latter.

import { type RpcError, WireError, type WireErrorCode, type WireErrorDetails } from '@convoke/wire'
import {
  cleanJson,
  cleanLine,
  cleanText,
  cutText,
  HostError,
  type HostErrorCode,
  type HostErrorDetails,
  redact,
  redactJson,
} from '../base/index.ts'

const CODES: Readonly<Record<WireErrorCode, HostErrorCode>> = {
  closed: 'CONNECTION_LOST',
  cancelled: 'CANCELLED',
  'timed-out': 'CALL_TIMEOUT',
  'too-large': 'MESSAGE_TOO_LARGE',
  malformed: 'PROTOCOL_ERROR',
  remote: 'SERVER_ERROR',
  http: 'HTTP_STATUS',
  unauthorized: 'AUTH_REQUIRED',
  'session-lost': 'CONNECTION_LOST',
  unreachable: 'SERVER_UNREACHABLE',
  refused: 'REQUEST_REFUSED',
  'spawn-failed': 'SPAWN_FAILED',
  'version-mismatch': 'VERSION_UNSUPPORTED',
  pagination: 'LISTING_FAILED',
  'too-many-rounds': 'INPUT_ROUNDS_EXCEEDED',
  'input-failed': 'INPUT_FAILED',
}

const TIMEOUTS: Readonly<Record<string, HostErrorCode>> = {
  total: 'CALL_TOTAL_TIMEOUT',
  startup: 'STARTUP_TIMEOUT',
  listing: 'LISTING_TIMEOUT',
}

/** Longest part of a server's own words in a message, in characters. */
const MESSAGE_CHARS_MAX = 500
const STDERR_CHARS_MAX = 4_000
const DATA_CHARS_MAX = 64 * 1024
const CAUSES_MAX = 5

/**
 * The error of this library behind whatever was thrown; its message names the server and holds none of the secrets. A `HostError` is
 * returned as it is.
 */
export function hostErrorOf(error: unknown, server: string, secrets: readonly string[] = []): HostError {
  if (error instanceof HostError) return error
  if (!(error instanceof WireError))
    return new HostError('INTERNAL', `Server "${server}": ${cleanLine(String(error), MESSAGE_CHARS_MAX)}`, {
      cause: error,
    })
  const own = error.code === 'unauthorized' ? ownErrorIn(error) : undefined
  if (own !== undefined) return own
  // Before it is cut, or half of a secret stays; and after it is cleaned, which may join the parts of one.
  const words = redact(cleanLine(redact(error.message, secrets), MESSAGE_CHARS_MAX), secrets)
  return new HostError(codeOf(error), `Server "${server}": ${words}`, {
    details: redactJson(detailsOf(error.details), secrets) as HostErrorDetails,
    cause: error,
  })
}

/** What made the credentials was ours (a headers helper), and has said already what went wrong. */
function ownErrorIn(error: WireError): HostError | undefined {
  let cause: unknown = error.cause
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof WireError; depth++) cause = cause.cause
  return HostError.is(cause) ? cause : undefined
}

function codeOf({ code, details }: WireError): HostErrorCode {
  if (code === 'timed-out') return TIMEOUTS[details.limit ?? ''] ?? 'CALL_TIMEOUT'
  if (code === 'spawn-failed' && isMissingFile(details.cause)) return 'COMMAND_NOT_FOUND'
  return CODES[code]
}

function isMissingFile(cause: unknown): boolean {
  return cause instanceof Error && (cause as NodeJS.ErrnoException).code === 'ENOENT'
}

/** What a program may see: nothing that could hold a header, and the server's words cleaned and cut. */
function detailsOf(details: WireErrorDetails): HostErrorDetails {
  const { rpc, status, challenge, stderrTail, sent, limit, exitCode, signal } = details
  return {
    ...(rpc === undefined ? {} : { rpc: shownRpc(rpc) }),
    ...(status === undefined ? {} : { status }),
    ...(challenge === undefined ? {} : { challenge: cleanLine(challenge, MESSAGE_CHARS_MAX) }),
    ...(stderrTail === undefined || stderrTail === ''
      ? {}
      : { stderrTail: cleanText(stderrTail.slice(-STDERR_CHARS_MAX)).text }),
    ...(sent === undefined ? {} : { sent }),
    ...(limit === undefined ? {} : { limit }),
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(signal === undefined ? {} : { signal }),
  }
}

/** Data that is too big or too deep to be shown is left out. */
function shownRpc({ code, message, data }: RpcError): RpcError {
  const shown = { code, message: cutText(cleanText(message).text, MESSAGE_CHARS_MAX) }
  if (data === undefined) return shown
  try {
    return { ...shown, data: cleanJson(data, { charsMax: DATA_CHARS_MAX }).value }
  } catch {
    return shown
  }
}
