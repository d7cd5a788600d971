// What an answer of the token endpoint means to somebody who waits for a person to enter a code (RFC 8628, 3.5). Pure.
import { placeOf } from './endpoints.ts'
import { readDocument } from './metadata.ts'
import { SignInError, type SignInErrorKind } from './sign-in-error.ts'
import { readRefusal, refusalError } from './token-answer.ts'

/** What came back. */
export type PollReply =
  | { readonly kind: 'answered'; readonly status: number; readonly body: Buffer }
  | { readonly kind: 'failed'; readonly error: SignInError }

/** What to do next. */
export type PollStep =
  /** Ask again after so many milliseconds. */
  | { readonly kind: 'wait'; readonly intervalMs: number }
  | { readonly kind: 'refused'; readonly error: SignInError }
  /** To be read as the answer of any token request. */
  | { readonly kind: 'tokens'; readonly status: number; readonly body: Buffer }

/** What was asked. */
export interface PollQuestion {
  /** The pause before this question, in milliseconds. */
  readonly intervalMs: number
  readonly endpoint: string
  /** Nothing of these may be shown. */
  readonly secrets: readonly string[]
}

const SLOW_DOWN_MS = 5_000
/** After failures pauses double up to here; a longer one that was asked for stays. */
const BACKOFF_MS_MAX = 60_000
/** Statuses that say: not now. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429])
const LATER_ERRORS: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error'])
const PASSING: ReadonlySet<SignInErrorKind> = new Set(['unreachable', 'timed-out'])

/** Pauses never become shorter. */
export function decidePoll(reply: PollReply, { intervalMs, endpoint, secrets }: PollQuestion): PollStep {
  const later: PollStep = {
    kind: 'wait',
    intervalMs: Math.max(intervalMs, Math.min(intervalMs * 2, BACKOFF_MS_MAX)),
  }
  if (reply.kind === 'failed') return PASSING.has(reply.error.kind) ? later : { kind: 'refused', error: reply.error }
  const { status, body } = reply
  const document = readDocument(body)
  if (status >= 200 && status <= 299 && document?.['error'] === undefined) return { kind: 'tokens', status, body }
  const refusal = readRefusal(status, document, secrets)
  const { error } = refusal
  switch (error) {
    case 'authorization_pending':
      return { kind: 'wait', intervalMs }
    case 'slow_down':
      return { kind: 'wait', intervalMs: intervalMs + SLOW_DOWN_MS }
    case 'expired_token': {
      const url = placeOf(endpoint)
      return {
        kind: 'refused',
        error: new SignInError('timed-out', `Nobody entered the code in time: ${url} does not take it any more`, {
          url,
          error,
          status,
        }),
      }
    }
    default:
      if (error === undefined ? status >= 500 || LATER.has(status) : LATER_ERRORS.has(error)) return later
      return { kind: 'refused', error: refusalError(refusal, endpoint, status) }
  }
}
