// What a failure means for the server's state, and how to say it. Pure.
import { cleanLine, type HostError, type HostErrorCode, redact } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import { saysAuthRequired } from '../protocol/index.ts'
import { nextStep } from './next-step.ts'
import type { Failure, FailureKind } from './state.ts'

/** What is known of the server when it failed. */
export interface FailureFacts {
  readonly server: string
  readonly transport: 'stdio' | 'http'
  /** The program that was started, or the origin that was asked. */
  readonly target: string
  /** Whose credentials went along. */
  readonly credentials: 'none' | 'configured' | 'sign-in'
  /** Is a sign-in stored for it? */
  readonly signIn: 'none' | 'stored'
  /** Where it runs. */
  readonly environment: string
  /** It would see the account of the host. */
  readonly seesAccount?: boolean | undefined
  /** The whole address of an HTTP server that brings neither a bearer variable nor headers. */
  readonly bareUrl?: string | undefined
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
  const code = codeOf(error, facts)
  const words = [what(error, code, facts), evidence(error, facts), nextStep(code, facts)]
  return {
    as: KINDS[code] ?? 'failed',
    reason: { code, message: redact(words.filter((part) => part !== '').join(''), facts.secrets) },
  }
}

const KINDS: Partial<Record<HostErrorCode, FailureKind>> = {
  AUTH_REQUIRED: 'needs-auth',
  AUTH_FAILED: 'needs-auth',
  VARIABLE_MISSING: 'needs-input',
}

/** Layers of causes that are looked through. */
const CAUSES_MAX = 16

/** Was an authorization refused, at any depth of the causes, or in the words of a server that passes requests on? */
function isAuthRefused(error: HostError): boolean {
  let cause: unknown = error
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    const { code } = cause as { readonly code?: unknown }
    if (code === 'AUTH_REQUIRED' || code === 'AUTH_FAILED' || code === 'unauthorized') return true
    cause = cause.cause
  }
  return error.code === 'SERVER_ERROR' && saysAuthRequired(error.message)
}

/** A process that ended is told apart from a connection that broke, a sign-in that has lapsed from one that is missing. */
function codeOf(error: HostError, { signIn }: FailureFacts): HostErrorCode {
  if (isAuthRefused(error)) return signIn === 'stored' ? 'AUTH_FAILED' : 'AUTH_REQUIRED'
  const { code, details } = error
  const hasEnded = details['exitCode'] !== undefined || details['signal'] !== undefined
  return code === 'CONNECTION_LOST' && hasEnded ? 'SERVER_EXITED' : code
}

function what({ message, details }: HostError, code: HostErrorCode, { server }: FailureFacts): string {
  if (code !== 'SERVER_EXITED') return message
  const { exitCode, signal } = details
  if (exitCode === undefined && signal === undefined) return message
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

type Credentials = FailureFacts['credentials']

/**
 * What a definition says for the message of a failure.
 * @param signIn Is a sign-in stored? Default: there is one if it was used. What is stored says nothing where the entry brings credentials of its own.
 */
export function failureFacts(
  { name, transport, environment, auth }: ServerDefinition,
  credentials: Credentials,
  signIn?: () => FailureFacts['signIn'],
): Omit<FailureFacts, 'stderrTail' | 'secrets'> {
  const used = credentials === 'sign-in' ? 'stored' : 'none'
  return {
    server: name,
    transport: transport.kind,
    target: transport.kind === 'stdio' ? transport.command : (URL.parse(transport.url)?.origin ?? 'the URL'),
    credentials,
    signIn: credentials === 'configured' ? 'none' : (signIn?.() ?? used),
    environment,
    seesAccount: auth === 'account',
    bareUrl: bareUrlOf(transport),
  }
}

function bareUrlOf(transport: ServerDefinition['transport']): string | undefined {
  if (transport.kind === 'stdio' || transport.bearerTokenEnvVar !== undefined) return undefined
  const { url, headers, envHeaders } = transport
  return Object.keys(headers).length === 0 && Object.keys(envHeaders).length === 0 ? url : undefined
}
