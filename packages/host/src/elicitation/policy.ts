// What happens to a question of a server before anybody sees it. Pure.

/** What a host, a thread or a server is trusted with. */
export interface TrustPolicy {
  /**
   * `ask`: a person is asked; `never`: nobody is; an object: a person is asked, but for what servers ask only if `mcpElicitations` says so.
   */
  readonly approvals: 'ask' | 'never' | { readonly mcpElicitations: boolean }
  /** Nothing is closed to the agent. Together with `approvals: 'never'` an empty form is accepted without asking. */
  readonly fullAccess: boolean
}

/** Ask, and nothing by itself. */
export const DEFAULT_TRUST: TrustPolicy = { approvals: 'ask', fullAccess: false }

/** What the policy looks at in a question. */
export interface QuestionFacts {
  readonly mode: 'form' | 'url'
  /** Fields that the form names or requires. */
  readonly fieldCount: number
  /** The question carries an approval marker. */
  readonly asksForApproval: boolean
}

/** What the policy knows besides the question; read as one value. */
export interface PolicyFacts {
  readonly declinesAll: boolean
  /** Undefined: the server was disabled or removed, whatever connection of it is still there. */
  readonly trust: TrustPolicy | undefined
  /** Forms with fields are shown to a person although nobody is asked for approvals. */
  readonly surfaceForms: boolean
  readonly hasReviewer: boolean
}

/** Why a question was decided so; stable words. */
export type DecisionReason =
  | 'everything-is-declined'
  | 'server-not-in-use'
  | 'approval-under-full-access'
  | 'empty-form-under-full-access'
  | 'form-shown-under-full-access'
  | 'approvals-never'
  | 'approvals-without-servers'
  | 'reviewer-first'
  | 'person-decides'

/** What happens to a question, and why. */
export interface ElicitationDecision {
  readonly kind: 'decline' | 'accept-empty' | 'review' | 'ask'
  readonly reason: DecisionReason
}

/** Decides in the order of the rules: the first that fits counts. An address is never accepted here. */
export function decideElicitation(question: QuestionFacts, policy: PolicyFacts): ElicitationDecision {
  const { trust } = policy
  if (policy.declinesAll) return { kind: 'decline', reason: 'everything-is-declined' }
  if (trust === undefined) return { kind: 'decline', reason: 'server-not-in-use' }
  if (trust.fullAccess && trust.approvals === 'never' && question.mode === 'form') {
    if (question.asksForApproval) return { kind: 'decline', reason: 'approval-under-full-access' }
    if (question.fieldCount === 0) return { kind: 'accept-empty', reason: 'empty-form-under-full-access' }
    if (policy.surfaceForms) return { kind: 'ask', reason: 'form-shown-under-full-access' }
  }
  if (trust.approvals === 'never') return { kind: 'decline', reason: 'approvals-never' }
  if (trust.approvals !== 'ask' && !trust.approvals.mcpElicitations)
    return { kind: 'decline', reason: 'approvals-without-servers' }
  return policy.hasReviewer ? { kind: 'review', reason: 'reviewer-first' } : { kind: 'ask', reason: 'person-decides' }
}
