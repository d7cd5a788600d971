export type { Account, AccountChange, AccountSource } from './account.ts'
export { AccountAuth, type AuthScopeKey } from './account-auth.ts'
export type { RenewalStep } from './grant-holder.ts'
export {
  type MemoryAuthorization,
  type MemoryAuthorizationOptions,
  memoryAuthorization,
} from './memory-authorization.ts'
export { usesStoredSignIn, type Variables } from './own-authorization.ts'
export type { SignInStatus } from './sign-in-status.ts'
export { SignInStores, type StoreMode } from './sign-in-stores.ts'
export {
  type EnterpriseSignIn,
  type SignedIn,
  type SignedOut,
  type SignInChange,
  type SignInOptions,
  SignIns,
} from './sign-ins.ts'
