// The client half: one MCP server as a `Session`, whatever its transport and era.
export type { AddressRule } from './address.ts'
export type { CallContext, RawAnswer, RequestOptions, ServerRequestContext, ServerRequestHandler } from './call.ts'
export { type CloseOutcome, WireError, type WireErrorCode, type WireErrorDetails, type WireLimit } from './errors.ts'
export type { FetchedAnswer, FetchOptions } from './fetch-answer.ts'
export { fetchAnswer } from './fetching.ts'
export type { Exchange, ExchangeRequest, ExchangeSink, FailureFacts, HttpClient } from './http-port.ts'
export type { Listing, ListOptions, Rejected } from './listing.ts'
export { type ChildProcessPort, nodePlatform, type Platform, type SpawnSpec, type TimerHandle } from './platform.ts'
export type { FileFacts, FilesPort } from './platform-files.ts'
export type { ProcessFacts, ProcessTable } from './process-table.ts'
export { reapLeftovers, runCommand, spawnProcess } from './processes.ts'
export {
  type ContentBlock,
  type Era,
  type EraVerdict,
  type JsonObject,
  LEGACY_VERSIONS,
  type ListItems,
  type ListKind,
  MODERN_VERSION,
  type Prompt,
  type PromptArgument,
  type Resource,
  type ResourceTemplate,
  type RpcError,
  type Tool,
  type ToolResult,
} from './protocol.ts'
export { type Reach, reachOf } from './reach.ts'
export type { Reaped } from './reap.ts'
export { HEADER_MISMATCH } from './rpc-error.ts'
export type { RunOptions, RunResult } from './run-command.ts'
export { Session } from './session.ts'
export type { SessionOptions, SessionRenewal } from './session-options.ts'
export type { ProcessEnd, ProcessSpec, SpawnedProcess } from './spawner.ts'
export type { WriteBurst } from './stdio.ts'
export type { Subscription, SubscriptionFilter, SubscriptionOptions } from './subscriptions.ts'
export type {
  Authorization,
  CredentialsRefusal,
  HeadersProvider,
  HttpTarget,
  ProofRequest,
  StdioTarget,
} from './target.ts'
