// The protocol of sign-ins: everything that an OAuth client needs, over one port. What is kept, and when something is asked, is decided elsewhere.
export { type Challenge, parseChallenge } from './challenge.ts'
export { type DeviceCode, type DeviceSignInOptions, signInWithCode } from './device.ts'
export { type DiscoverOptions, discover, probe } from './discovery.ts'
export { type Dpop, type DpopKey, openDpop, type ProvenRequest } from './dpop.ts'
export type {
  Discovery,
  GrantInUse,
  ProbeOutcome,
  RefreshOutcome,
  RevokeOutcome,
  SignInOptions,
  SignInPage,
  SignInServer,
} from './flow.ts'
export { type MachineCredentials, type MachineGrantOptions, machineGrant } from './machine-grants.ts'
export type { OAuthAnswer, OAuthPort, OAuthRequest } from './port.ts'
export { normalizeScopes } from './scopes.ts'
export { signIn } from './sign-in.ts'
export { SignInError, type SignInErrorDetails, type SignInErrorKind } from './sign-in-error.ts'
export { type RefreshRequest, refreshTokens, revokeTokens } from './tokens.ts'
