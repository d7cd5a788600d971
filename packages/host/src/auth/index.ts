export type { Account, AccountChange, AccountSource } from './account.ts'
export { AccountAuth, type AuthScopeKey } from './account-auth.ts'
export {
  type MemoryAuthorization,
  type MemoryAuthorizationOptions,
  memoryAuthorization,
} from './memory-authorization.ts'
export { usesStoredSignIn, type Variables } from './own-authorization.ts'
