// What a failure means for the server's state, and how to say it. Pure.
import type { HostError, HostErrorCode } from '../base/index.ts'
import { cleanLine, redact } from '../base/index.ts'
import type { Failure, FailureKind } from './state.ts'

/** What is known of the server when it failed. */
export interface FailureFacts {
  readonly server: string
  readonly transport: 'stdio' | 'http'
  /** The program that was started, or the origin that was asked. */
  readonly target: string
  /** Whose credentials went along. */
  readonly credentials: 'none' | 'configured' | 'sign-in'
  /** What the server wrote to stderr last; may be empty. */
  readonly stderrTail: string
  /** Values that must not be in the message. */
  readonly secrets: readonly string[]
}

/** The state that a failure leads to, and its reason. */
export interface Classified {
  readonly as: FailureKind
  readonly reason: Failure
}

const STDERR_LINE_CHARS_MAX = 300

/** Names the failure behind an error of a start, or of a ready connection that is gone. */
export function classifyFailure(error: HostError, facts: FailureFacts): Classified {
  const as = KINDS[error.code] ?? 'failed'
  const code = codeOf(error, facts)
  const words = [what(error, code, facts), evidence(error, facts), wayOut(error, facts)]
  return { as, reason: { code, message: redact(words.filter((part) => part !== '').join(''), facts.secrets) } }
}

const KINDS: Partial<Record<HostErrorCode, FailureKind>> = {
  AUTH_REQUIRED: 'needs-auth',
  AUTH_FAILED: 'needs-auth',
  VARIABLE_MISSING: 'needs-input',
}

/** A process that ended is told apart from a connection that broke, a sign-in that did not help from one that is missing. */
function codeOf({ code, details }: HostError, { credentials }: FailureFacts): HostErrorCode {
  if (code === 'AUTH_REQUIRED') return credentials === 'sign-in' ? 'AUTH_FAILED' : code
  const hasEnded = details['exitCode'] !== undefined || details['signal'] !== undefined
  return code === 'CONNECTION_LOST' && hasEnded ? 'SERVER_EXITED' : code
}

function what({ message, details }: HostError, code: HostErrorCode, { server }: FailureFacts): string {
  if (code !== 'SERVER_EXITED') return message
  const { exitCode, signal } = details
  return `Server "${server}" ended ${signal === undefined ? `with code ${exitCode}` : `by ${signal}`}`
}

/** The last line of stderr says more than any code of ours; frames of a stack trace and the version below it say nothing. */
function evidence({ code }: HostError, { stderrTail }: FailureFacts): string {
  if (code === 'COMMAND_NOT_FOUND' || code === 'VARIABLE_MISSING') return ''
  const lines = stderrTail
    .split('\n')
    .filter((line) => !/^\s+at |^Node\.js v\d/.test(line))
    .map((line) => cleanLine(line, STDERR_LINE_CHARS_MAX))
    .filter((line) => line !== '')
  const last = lines.at(-1)
  return last === undefined ? '' : ` (last stderr line: ${last})`
}

function wayOut({ code }: HostError, { server, target, credentials, transport }: FailureFacts): string {
  switch (code) {
    case 'AUTH_REQUIRED':
      if (credentials === 'sign-in') return '. The sign-in did not succeed, or does not cover this server'
      return credentials === 'configured'
        ? '. The configured credentials were not accepted'
        : `. Run: convoke login ${/^[\w.@:/-]+$/.test(server) ? server : JSON.stringify(server)}`
    case 'COMMAND_NOT_FOUND':
      return `. Is "${target}" installed and on the PATH?`
    case 'SERVER_UNREACHABLE':
      return `. Is ${target} running, and is the URL right?`
    case 'STARTUP_TIMEOUT':
      return transport === 'stdio' ? '. A longer startupTimeoutMs gives it more time' : ''
    default:
      return ''
  }
}
