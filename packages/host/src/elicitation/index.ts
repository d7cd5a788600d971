export { clientSide, type HostHandlers } from './router.ts'
