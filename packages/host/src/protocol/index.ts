// The only room of the host that knows the wire package.
export type { Authorization, RawAnswer, ToolResult } from '@convoke/wire'
export type {
  CallContext,
  RequestOptions,
  ServerRequestHandler,
  SubscriptionFilter,
  SubscriptionHandle,
} from './ports.ts'
