// Whether a call needs a person's consent. Pure.
import type { ApprovalMode } from '../config/index.ts'
import type { TrustPolicy } from '../elicitation/index.ts'

/** What is known of the call. */
export interface ConsentFacts {
  readonly mode: ApprovalMode
  /** What the server says of its tool; undefined where nobody believes it. */
  readonly hints:
    | { readonly readOnly?: boolean; readonly destructive?: boolean; readonly openWorld?: boolean }
    | undefined
  readonly trust: TrustPolicy
  /** This tool was approved for the rest of the thread. */
  readonly isRemembered: boolean
}

/** What happens to the call. */
export type Consent =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'ask' }
  | { readonly kind: 'denied'; readonly because: string }

const ALLOWED: Consent = { kind: 'allowed' }

/** Decides it; the first rule that fits counts. */
export function decideConsent({ mode, hints, trust, isRemembered }: ConsentFacts): Consent {
  if (!isWanted(mode, hints)) return ALLOWED
  if (trust.approvals === 'never')
    return trust.fullAccess
      ? ALLOWED
      : { kind: 'denied', because: 'it needs a consent, and this host is told to ask nobody' }
  // Who is to be asked every time is not remembered.
  return isRemembered && mode !== 'prompt' ? ALLOWED : { kind: 'ask' }
}

function isWanted(mode: ApprovalMode, hints: ConsentFacts['hints']): boolean {
  switch (mode) {
    case 'approve':
      return false
    case 'prompt':
      return true
    case 'writes':
      return hints?.readOnly !== true
    case 'auto':
      if (hints === undefined || hints.destructive === true) return true
      if (hints.readOnly === true) return false
      // What a hint does not say is the worse of the two (specification, tool annotations).
      return hints.destructive !== false || hints.openWorld !== false
  }
}
