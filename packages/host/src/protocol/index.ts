// The only room of the host that knows the wire package.
export type {
  Authorization,
  CallContext,
  ContentBlock,
  CredentialsRefusal,
  EraVerdict,
  Listing,
  ListKind,
  Platform,
  ProofRequest,
  RawAnswer,
  RequestOptions,
  ServerRequestContext,
  ServerRequestHandler,
  Subscription,
  SubscriptionFilter,
  SubscriptionOptions,
  TimerHandle,
  ToolResult,
} from '@convoke/wire'
export { fetchAnswer, nodePlatform, reachOf, reapLeftovers } from '@convoke/wire'
export { StartupBudget } from './budget.ts'
export { type ClientOffers, clientCapabilities } from './client-capabilities.ts'
export { hostErrorOf } from './faults.ts'
export { LaunchMemory } from './launch-memory.ts'
export type { ListRequest } from './listing.ts'
export { type Introduction, openServer, startFailure } from './open.ts'
export { packageRunnerOf } from './package-runner.ts'
export { saysAuthRequired } from './sentences.ts'
export { ServerSession } from './server-session.ts'
export { isRequestRefusal, type ProtocolSettings, requestRefusal } from './settings.ts'
export { readCertificates } from './target.ts'
