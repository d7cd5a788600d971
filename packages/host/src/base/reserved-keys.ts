// Which keys of `_meta` belong to hosts: one table for our own family and the Codex one.
import { isObject, type JsonObject } from './json.ts'

/** `_meta` keys with this prefix are set by this host alone: never by a server, never by a caller. */
const PREFIX = 'convoke/'
/** Entitlements of a call, minted by the host. */
export const ENTITLEMENTS_KEY = 'convoke/entitlements'
/** Where a tool of the Codex family says which entitlements it wants. */
export const REQUESTED_ENTITLEMENTS_KEY = 'openai/requestedEntitlements'
/** Set by nobody but the host: also a server that gets everything else a caller says does not get these from a caller. */
const ENTITLEMENTS: ReadonlySet<string> = new Set([ENTITLEMENTS_KEY, 'openai/entitlementcontext'])
/** Keys that the protocol makes itself. */
const OWN_OF_PROTOCOL: ReadonlySet<string> = new Set(['progressToken'])

/** Beginnings of keys with which hosts talk to servers of their own family; in lower case. */
const FAMILY_PREFIXES: readonly string[] = [
  PREFIX,
  'x-convoke-',
  '_convoke_',
  'convoke_',
  'openai/',
  'x-openai-',
  '_openai_',
  'codex/',
  'x-codex-',
  '_codex_',
  'codex_',
]

/** What a host knows about its user and its work, in snake, camel or kebab case; here without separators and in lower case. */
const FAMILY_NAMES: ReadonlySet<string> = new Set([
  'accountemail',
  'compaction',
  'connectedaccountemail',
  'connectordescription',
  'connectordisplayname',
  'connectorid',
  'connectorname',
  'conversationid',
  'forkedfromthreadid',
  'forkparentthreadid',
  'forkthreadid',
  'installationid',
  'linkid',
  'linkname',
  'parentthreadid',
  'pluginid',
  'pluginname',
  'requestkind',
  'resourceuri',
  'sandbox',
  'sandboxstate',
  'sessionid',
  'subagentkind',
  'templateid',
  'templatename',
  'threadid',
  'threadsource',
  'turnid',
  'turnstartedat',
  'turnstartedatms',
  'turnstarttime',
  'windowid',
  'workspace',
  'workspaceid',
  'workspaces',
])

/** `meta` without the keys that only this host may set; the same object when there are none. */
export function withoutReservedKeys(meta: JsonObject): JsonObject {
  return without(meta, isReserved)
}

/** `owner` with the reserved keys of its `_meta` removed; the same object when there are none. */
export function withoutReservedMeta<Owner extends JsonObject>(owner: Owner): Owner {
  const meta = owner['_meta']
  if (!isObject(meta)) return owner
  const clean = withoutReservedKeys(meta)
  return clean === meta ? owner : { ...owner, _meta: clean }
}

/**
 * What of a caller's `_meta` goes out with a request; undefined when nothing does. Nobody's entitlements, progress token and keys of this host leave;
 * ids of threads, accounts and workspaces only to servers that are part of the family.
 */
export function outgoingMeta(
  meta: JsonObject | undefined,
  { passesMeta }: { readonly passesMeta: boolean },
): JsonObject | undefined {
  if (meta === undefined) return undefined
  const clean = without(meta, (key) => isNobodys(key) || (!passesMeta && isOfFamily(key)))
  return Object.keys(clean).length === 0 ? undefined : clean
}

function without(meta: JsonObject, isOut: (key: string) => boolean): JsonObject {
  if (!Object.keys(meta).some(isOut)) return meta
  return Object.fromEntries(Object.entries(meta).filter(([key]) => !isOut(key)))
}

const isReserved = (key: string): boolean => key.startsWith(PREFIX)

/** A caller may set these for no server at all. */
function isNobodys(key: string): boolean {
  const small = key.toLowerCase()
  return OWN_OF_PROTOCOL.has(key) || small.startsWith(PREFIX) || ENTITLEMENTS.has(small)
}

function isOfFamily(key: string): boolean {
  const small = key.toLowerCase()
  return FAMILY_PREFIXES.some((prefix) => small.startsWith(prefix)) || FAMILY_NAMES.has(small.replaceAll(/[_-]/g, ''))
}
