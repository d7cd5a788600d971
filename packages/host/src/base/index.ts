export { HOST_ERROR_CODES, HostError, type HostErrorCode, type HostErrorDetails } from './errors.ts'
export { isObject, type JsonObject } from './json.ts'
export { unreachable } from './unreachable.ts'
