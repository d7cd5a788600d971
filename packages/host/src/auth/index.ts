export type { Account, AccountChange, AccountSource } from './account.ts'
export { AccountAuth, type AuthScopeKey } from './account-auth.ts'
export {
  accountInVariable,
  type CallbackAccount,
  type CallbackAccountOptions,
  callbackAccount,
  type EnvironmentAccount,
  SignInAccount,
  type TokenAccount,
  type TokenAccountOptions,
  tokenAccount,
} from './accounts/index.ts'
export type { SignInOptions } from './authorization-servers.ts'
export type { RenewalStep } from './grant-holder.ts'
export type { EnterpriseSignIn } from './machine-sign-in.ts'
export type { DeviceCode } from './oauth/device.ts'
export type { OAuthPort } from './oauth/port.ts'
export { usesStoredSignIn, type Variables } from './own-authorization.ts'
export type { SignInStatus } from './sign-in-status.ts'
export { SignInStores, type StoreMode } from './sign-in-stores.ts'
export type { SignInChange } from './sign-in-tools.ts'
export { type SignedIn, type SignedOut, SignIns } from './sign-ins.ts'
