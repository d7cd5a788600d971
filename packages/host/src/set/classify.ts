// How a failed call ended. Pure.
import { HostError } from '../base/index.ts'
import type { CallOutcome } from './call-outcome.ts'

/** What is known of the call. */
export interface CallFacts {
  /** `SERVER/TOOL`. */
  readonly what: string
  readonly idleTimeoutMs: number
  readonly totalTimeoutMs: number
}

type Unfinished = Extract<CallOutcome, { readonly error: HostError }>

/** The outcome behind an error of a call. Nobody is told that a tool did not run when it may have. */
export function classifyCall(error: HostError, { what, idleTimeoutMs, totalTimeoutMs }: CallFacts): Unfinished {
  const again = (code: HostError['code'], message: string): HostError =>
    new HostError(code, message, { details: error.details, cause: error })
  switch (error.code) {
    case 'CANCELLED':
      return { kind: 'cancelled', error: again('CANCELLED', `The call of ${what} was cancelled`) }
    case 'CONNECTION_LOST':
      return error.details['sent'] === true
        ? {
            kind: 'unknown',
            error: again(
              'OUTCOME_UNKNOWN',
              `The connection was lost while ${what} was running; whether it ran to its end is not known`,
            ),
          }
        : { kind: 'failed', error: again('CONNECTION_LOST', `${error.message}. The call of ${what} was not sent`) }
    case 'CALL_TIMEOUT':
      return {
        kind: 'failed',
        error: again(
          'CALL_TIMEOUT',
          `${what} neither answered nor reported progress for ${idleTimeoutMs} ms (toolTimeoutMs) and was cancelled`,
        ),
      }
    case 'CALL_TOTAL_TIMEOUT':
      if (error.details['sent'] === false) return { kind: 'failed', error } // it says itself what was waited for
      return {
        kind: 'failed',
        error: again(
          'CALL_TOTAL_TIMEOUT',
          `${what} did not end within ${totalTimeoutMs} ms in all (toolTotalTimeoutMs) and was cancelled`,
        ),
      }
    default:
      return { kind: 'failed', error }
  }
}
