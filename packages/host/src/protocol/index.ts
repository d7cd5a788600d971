// The only room of the host that knows the wire package.
export type {
  Authorization,
  CallContext,
  ContentBlock,
  EraVerdict,
  Listing,
  ListKind,
  Platform,
  Prompt,
  RawAnswer,
  RequestOptions,
  Resource,
  ResourceTemplate,
  ServerRequestContext,
  ServerRequestHandler,
  Subscription,
  SubscriptionFilter,
  SubscriptionOptions,
  TimerHandle,
  Tool,
  ToolResult,
  WriteBurst,
} from '@convoke/wire'
export { nodePlatform, reapLeftovers } from '@convoke/wire'
export { StartupBudget } from './budget.ts'
export { hostErrorOf } from './faults.ts'
export { LaunchMemory } from './launch-memory.ts'
export { CATALOG_LIMITS, type ListRequest, listAll } from './listing.ts'
export { type OpenOptions, openServer, startFailure } from './open.ts'
export { packageRunnerOf } from './package-runner.ts'
export { ServerSession } from './server-session.ts'
export { isRequestRefusal, type ProtocolSettings, requestRefusal } from './settings.ts'
