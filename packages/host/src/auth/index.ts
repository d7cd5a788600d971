export type { Account, AccountChange, AccountSource } from './account.ts'
export { AccountAuth, type AccountAuthorization, type AuthScopeKey } from './account-auth.ts'
export {
  type MemoryAuthorization,
  type MemoryAuthorizationOptions,
  memoryAuthorization,
} from './memory-authorization.ts'
export { type AccountFacts, type AuthSelection, selectAuth } from './select.ts'
