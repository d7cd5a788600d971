export type { QuestionAnswer } from './answer.ts'
export {
  Elicitation,
  type ElicitationAuthority,
  type ElicitationInit,
  type ElicitationLimits,
  type RequestHandlers,
  type Reviewer,
} from './elicitation.ts'
export type { AskCallback, AskContext, HostHandlers } from './handlers.ts'
export {
  DEFAULT_TRUST,
  type DecisionReason,
  decideElicitation,
  type ElicitationDecision,
  type PolicyFacts,
  type QuestionFacts,
  type TrustPolicy,
} from './policy.ts'
