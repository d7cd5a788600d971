// The public API of @convoke/host. Explicit named exports only.

export {
  type MemoryAuthorization,
  type MemoryAuthorizationOptions,
  memoryAuthorization,
} from './auth/index.ts'
export {
  cleanLine,
  cleanText,
  closestNames,
  HostError,
  type HostErrorCode,
  type HostErrorDetails,
  type JsonObject,
  namesSecret,
  secretsInArguments,
  secretsInUrl,
} from './base/index.ts'
export type {
  Aggregate,
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  NamespacedName,
} from './catalog/index.ts'
export {
  type AddServerOptions,
  type ApprovalMode,
  addServer,
  CONFIG_PROBLEM_CODES,
  type ConfigEntry,
  type ConfigFile,
  type ConfigLayer,
  type ConfigProblem,
  type ConfigProblemCode,
  checkServer,
  configSchema,
  type DefinitionSource,
  defineServer,
  didYouMean,
  type HttpTransport,
  type LoadConfigOptions,
  type LoadedConfig,
  loadConfig,
  type OauthSettings,
  type PathFacts,
  removeServer,
  SERVER_DEFAULTS,
  type ServerDefinition,
  type ServerDefinitionInput,
  type ServerLimits,
  type StandardPaths,
  type StdioTransport,
  standardPaths,
  type ToolOverride,
  type ToolPolicy,
  type ToolSurface,
} from './config/index.ts'
export type { ServerPort } from './connection/index.ts'
export type { HostHandlers } from './elicitation/index.ts'
export type { CatalogNote, HostEvent, HostEventListener, ServerState, ServerStatus } from './events/index.ts'
export { createHost, type Host, type HostOptions } from './host.ts'
export type {
  Authorization,
  CallContext,
  ContentBlock,
  EraVerdict,
  Platform,
  RawAnswer,
  RequestOptions,
  ServerRequestContext,
  ServerRequestHandler,
  Subscription,
  SubscriptionFilter,
  SubscriptionOptions,
  ToolResult,
} from './protocol/index.ts'
export { nodePlatform, requestRefusal } from './protocol/index.ts'
export type {
  Binding,
  CallOptions,
  CallOutcome,
  DedicatedOptions,
  ListingOptions,
  ToolResolution,
} from './set/index.ts'
