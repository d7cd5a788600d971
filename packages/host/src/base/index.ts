export { BoundedList, BoundedMap, cutText } from './bounded.ts'
export { canonicalJson, sameJson } from './canonical-json.ts'
export { cleanJson } from './clean-json.ts'
export { cleanLine, cleanText } from './clean-text.ts'
export { closestNames } from './closest-names.ts'
export { digestHex } from './digest.ts'
export { HostError, type HostErrorCode, type HostErrorDetails } from './errors.ts'
export { fingerprint } from './fingerprint.ts'
export { isObject, type JsonObject } from './json.ts'
export { Lane, untilAborted } from './lane.ts'
export { Listeners } from './listeners.ts'
export {
  namesSecret,
  redact,
  redactJson,
  secretsInArguments,
  secretsInHeader,
  secretsInUrl,
} from './redact.ts'
export {
  ENTITLEMENTS_KEY,
  outgoingMeta,
  REQUESTED_ENTITLEMENTS_KEY,
  withoutReservedKeys,
  withoutReservedMeta,
} from './reserved-keys.ts'
export { Scope } from './scope.ts'
export { type Lease, Shared } from './shared.ts'
export { unreachable } from './unreachable.ts'
export { VERSION } from './version.ts'
