export type { ConnectionKey, ResourceClient, ResourcePage, ResourceRequestOptions } from './resource-client.ts'
