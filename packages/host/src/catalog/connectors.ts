// How hosted servers say which connector a tool acts on: the keys of both families, in one table. Nobody else reads these keys. Pure.
import { cleanLine, cutText, isObject, type JsonObject } from '../base/index.ts'
import type { CatalogConnector } from './entries.ts'

const ID_CHARS_MAX = 256
const NAME_CHARS_MAX = 256
const DESCRIPTION_CHARS_MAX = 16_384

/** Our own keys of a tool's `_meta`, which only a hosted server may set. */
const OWN_KEYS = { connector: 'convoke/connector', app: 'convoke/app' } as const
/** The key of the other family under which a tool carries what its server wants back with a call. */
const FAMILY_APP = '_codex_apps'
/** The keys of the other family that describe a connector; in each list the first that is not blank counts. */
const FAMILY_KEYS = {
  id: ['connector_id'],
  name: ['connector_name', 'connector_display_name'],
  description: ['connector_description', 'connectorDescription'],
} as const

const UNTRUSTED_KEYS: ReadonlySet<string> = new Set(Object.values(FAMILY_KEYS).flat())
const HOSTED_KEYS: ReadonlySet<string> = new Set(Object.values(OWN_KEYS))

/** `meta` without what would make an ordinary server look like a connector; the same object when there is nothing of it. */
export function withoutConnectorKeys(meta: JsonObject): JsonObject {
  if (!Object.keys(meta).some((key) => UNTRUSTED_KEYS.has(key))) return meta
  return Object.fromEntries(Object.entries(meta).filter(([key]) => !UNTRUSTED_KEYS.has(key)))
}

/** Those of our own keys that a hosted server may set. */
export function hostedKeysOf(meta: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => HOSTED_KEYS.has(key)))
}

/** What a tool of a hosted server says about its connector; undefined when it names none. */
export function connectorOf(meta: unknown): CatalogConnector | undefined {
  if (!isObject(meta)) return undefined
  const own = meta[OWN_KEYS.connector]
  const told = isObject(own)
    ? { id: text(own['id']), name: text(own['name']), description: text(own['description']) }
    : {
        id: first(meta, FAMILY_KEYS.id),
        name: first(meta, FAMILY_KEYS.name),
        description: first(meta, FAMILY_KEYS.description),
      }
  if (told.id === undefined) return undefined
  return {
    id: cutText(told.id, ID_CHARS_MAX),
    ...(told.name === undefined ? {} : { name: cleanLine(told.name, NAME_CHARS_MAX) }),
    ...(told.description === undefined ? {} : { description: cutText(told.description, DESCRIPTION_CHARS_MAX) }),
  }
}

/** What goes back to a hosted server with a call of the tool: the object that the tool carries, under the key it stands. */
export function appMetaOf(meta: unknown): AppMeta | undefined {
  if (!isObject(meta)) return undefined
  for (const [key, callIdName] of APP_KEYS) {
    const value = meta[key]
    if (isObject(value)) return { key, value, callIdName }
  }
  return undefined
}

/** The vendor's own object of a hosted tool. */
export interface AppMeta {
  readonly key: string
  readonly value: JsonObject
  /** What the id of the call is named in it. */
  readonly callIdName: string
}

const APP_KEYS: readonly (readonly [key: string, callIdName: string])[] = [
  [OWN_KEYS.app, 'callId'],
  [FAMILY_APP, 'call_id'],
]

function first(meta: JsonObject, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const found = text(meta[key])
    if (found !== undefined) return found
  }
  return undefined
}

/** Trimmed; blank is absent. */
function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}
