export {
  type MemoryAuthorization,
  type MemoryAuthorizationOptions,
  memoryAuthorization,
} from './memory-authorization.ts'
