export { type ClientSide, clientSide, type HostHandlers } from './router.ts'
