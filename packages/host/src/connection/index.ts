export type { CatalogSink } from './catalog-sink.ts'
export { classifyFailure } from './classify.ts'
export { ServerConnection } from './connection.ts'
export {
  type ConnectionIdentity,
  type CredentialKey,
  connectionIdentity,
  type IdentityMatch,
  matchIdentity,
} from './identity.ts'
export type { ServerPort } from './port.ts'
export { sessionPort } from './session-port.ts'
export { type ConnectionState, type Failure, transition } from './state.ts'
