export type { Account, AccountChange, AccountSource } from './account.ts'
export {
  type MemoryAuthorization,
  type MemoryAuthorizationOptions,
  memoryAuthorization,
} from './memory-authorization.ts'
