export { EventBus } from './bus.ts'
export type { CatalogNote, HostEvent, HostEventListener } from './events.ts'
export { PublicationGate } from './gate.ts'
export type { ServerState, ServerStatus } from './status.ts'
