// Where the account of a host may come from.
export {
  type CallbackAccount,
  type CallbackAccountOptions,
  callbackAccount,
} from './callback-account.ts'
export { accountInVariable, type EnvironmentAccount } from './environment-account.ts'
export { SignInAccount } from './sign-in-account.ts'
export { type TokenAccount, type TokenAccountOptions, tokenAccount } from './token-account.ts'
