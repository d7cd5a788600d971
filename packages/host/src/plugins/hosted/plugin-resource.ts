// A plugin as an apps server lists it among its resources: the keys of both families, in one table. Nobody else reads these keys. Pure.
import { isObject, type JsonObject } from '../../base/index.ts'
import type { PluginEntry } from '../catalog/catalog.ts'
import { isBundleUri, pluginIdOf } from '../catalog/plugin-uri.ts'
import { readEntry } from '../catalog/read-entry.ts'

/** What tells the description of a plugin from other resources. */
export const PLUGIN_MIME_TYPE = 'application/vnd.convoke.plugin+json'
/** Our own key of a resource's `_meta`; the other family writes its keys into `_meta` itself. */
const OWN_KEY = 'convoke/plugin'

/** What we call it, and what the other family does. */
const KEYS = {
  id: 'plugin_id',
  displayName: 'display_name',
  version: 'version',
  enabled: 'enabled',
  connectorIds: 'connector_ids',
  mcpServers: 'mcp_servers',
  bundleUri: 'bundle_uri',
} as const

type Told = Readonly<Record<keyof typeof KEYS, unknown>>

/** One resource, read as a plugin. */
export type PluginResource =
  | { readonly kind: 'other' }
  | { readonly kind: 'malformed' }
  | {
      readonly kind: 'plugin'
      readonly entry: PluginEntry
      /** The address of its bundle was none, and is left out. */
      readonly hasBadBundle: boolean
    }

/** The id of a plugin has to be the one in its address. */
export function readPluginResource(resource: JsonObject): PluginResource {
  if (resource['mimeType'] !== PLUGIN_MIME_TYPE) return { kind: 'other' }
  const { uri } = resource
  const told = toldBy(resource['_meta'])
  if (typeof uri !== 'string' || told === undefined || pluginIdOf(uri) !== told.id) return { kind: 'malformed' }
  const { bundleUri } = told
  const bundle = typeof bundleUri === 'string' && isBundleUri(bundleUri, uri) ? { bundleUri } : {}
  const entry = readEntry({
    id: { kind: 'remote', remotePluginId: told.id },
    enabled: told.enabled,
    displayName: told.displayName,
    version: told.version,
    mcpServers: declarations(told.mcpServers ?? {}),
    connectorIds: told.connectorIds ?? [],
    locations: [{ kind: 'hosted', resourceUri: uri, ...bundle }],
  })
  if (entry === undefined) return { kind: 'malformed' }
  const isThere = bundleUri !== undefined && bundleUri !== null
  return { kind: 'plugin', entry, hasBadBundle: isThere && !('bundleUri' in bundle) }
}

function toldBy(meta: unknown): Told | undefined {
  if (!isObject(meta)) return undefined
  const own = meta[OWN_KEY]
  const keys = Object.keys(KEYS) as (keyof typeof KEYS)[]
  return Object.fromEntries(keys.map((key) => [key, isObject(own) ? own[key] : meta[KEYS[key]]])) as Told
}

/** As text, however they are written. */
function declarations(servers: unknown): unknown {
  if (!isObject(servers)) return servers
  return Object.fromEntries(
    Object.entries(servers).map(([name, declared]) => [name, isObject(declared) ? JSON.stringify(declared) : declared]),
  )
}
