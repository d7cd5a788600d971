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
  decideElicitation,
  type TrustPolicy,
} from './policy.ts'
