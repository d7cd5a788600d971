import { isObject, type JsonObject } from './json.ts'

/** `_meta` keys with this prefix are set by this host alone: never by a server, never by a caller. */
const PREFIX = 'convoke/'

/** `meta` without the keys that only this host may set; the same object when there are none. */
export function withoutReservedKeys(meta: JsonObject): JsonObject {
  if (!Object.keys(meta).some(isReserved)) return meta
  return Object.fromEntries(Object.entries(meta).filter(([key]) => !isReserved(key)))
}

/** `owner` with the reserved keys of its `_meta` removed; the same object when there are none. */
export function withoutReservedMeta<Owner extends JsonObject>(owner: Owner): Owner {
  const meta = owner['_meta']
  if (!isObject(meta)) return owner
  const clean = withoutReservedKeys(meta)
  return clean === meta ? owner : { ...owner, _meta: clean }
}

const isReserved = (key: string): boolean => key.startsWith(PREFIX)
