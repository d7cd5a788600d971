export type { HostEvent, HostEventListener } from './events.ts'
export type { ServerState, ServerStatus } from './status.ts'
