// Was the caller told the truth about the end of a call? Pure: the outcome on one side, the server's own record on the other.
import type { CallOutcome } from '@convoke/host'
import type { HeldCall } from './held.ts'
import type { CallRecord } from './ledger.ts'

/** Nothing was sent when a call ends with one of these. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'SERVER_NOT_READY',
  'SERVER_DISABLED',
  'SERVER_UNKNOWN',
  'TOOL_DISABLED',
  'TOOL_UNKNOWN',
  'ARGUMENTS_INVALID',
  'CATALOG_CHANGED',
  'TOOL_CHANGED',
  'ENVIRONMENT_MISMATCH',
  'HOST_CLOSED',
  'CONNECTION_LOST',
])

/** What an outcome claims. */
export function claimOf(outcome: CallOutcome): HeldCall['told'] {
  switch (outcome.kind) {
    case 'ok':
    case 'tool-error':
      return 'answered'
    case 'failed':
      return NEVER_SENT.has(outcome.error.code) || outcome.error.details['sent'] === false ? 'did not run' : 'not known'
    default:
      return 'not known'
  }
}

/** What is wrong with an outcome; undefined: nothing that can be known. */
export function untruthIn(outcome: CallOutcome, call: HeldCall, record: CallRecord): string | undefined {
  const what = `${call.server}/${call.tool} #${call.token}`
  switch (claimOf(outcome)) {
    case 'did not run':
      return record.ran === 0 ? undefined : `${what} is said not to have run (${codeOf(outcome)}), and it ran`
    case 'answered':
      return answerFault(outcome, call, record, what)
    default:
      return undefined
  }
}

function answerFault(
  outcome: CallOutcome,
  call: HeldCall,
  { answered, arrivals }: CallRecord,
  what: string,
): string | undefined {
  if (answered === 0) return `${what} is said to be answered, and no server answered it`
  const text = 'result' in outcome ? String(outcome.result.content[0]?.['text']) : ''
  const known = arrivals.some(({ instance }) => text === `${instance} ${call.token}`)
  return known || text.startsWith('xxx') ? undefined : `${what} got the answer of another call: ${text.slice(0, 80)}`
}

function codeOf(outcome: CallOutcome): string {
  return 'error' in outcome ? outcome.error.code : outcome.kind
}
