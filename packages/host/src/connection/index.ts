export { classifyFailure } from './classify.ts'
export { ServerConnection } from './connection.ts'
export {
  type ConnectionIdentity,
  connectionIdentity,
  matchIdentity,
} from './identity.ts'
export type { ServerPort } from './port.ts'
export { sessionPort } from './session-port.ts'
export type { ConnectionState } from './state.ts'
