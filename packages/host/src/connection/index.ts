export { classifyFailure, failureFacts } from './classify.ts'
export { type ReadyOutcome, ServerConnection } from './connection.ts'
export {
  type ConnectionIdentity,
  type CredentialKey,
  type CredentialSnapshot,
  connectionIdentity,
  type IdentityFacts,
  type IdentityMatch,
  matchIdentity,
} from './identity.ts'
export type { ServerPort } from './port.ts'
export { sessionPort } from './session-port.ts'
export type { ConnectionState } from './state.ts'
