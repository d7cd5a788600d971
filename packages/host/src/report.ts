// The JSON shapes of status and events, for pages and programs that only read. Types only.
export type { HostEvent, ServerState, ServerStatus } from './events/index.ts'
