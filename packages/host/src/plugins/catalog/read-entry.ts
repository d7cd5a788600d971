// One plugin as a provider told of it, judged: what is kept is a copy that has only what we know. Pure.
import { cleanText, isObject } from '../../base/index.ts'
import type { PluginEntry, PluginIdentity, PluginLocation } from './catalog.ts'
import { isBundleUri, pluginIdOf } from './plugin-uri.ts'

const ID_CHARS_MAX = 256
const DISPLAY_NAME_CHARS_MAX = 1_024
const VERSION_CHARS_MAX = 128
const CONNECTORS_MAX = 1_024
const SERVERS_MAX = 64
const DECLARATION_CHARS_MAX = 16_384
const LOCATIONS_MAX = 8

/** @returns undefined for one that is malformed anywhere, or over a limit. */
export function readEntry(raw: unknown): PluginEntry | undefined {
  if (!isObject(raw)) return undefined
  const { enabled, displayName, version } = raw
  const id = readIdentity(raw['id'])
  const mcpServers = readServers(raw['mcpServers'])
  const connectorIds = readList(raw['connectorIds'], CONNECTORS_MAX, readConnectorId)
  const locations = readList(raw['locations'], LOCATIONS_MAX, readLocation)
  if (id === undefined || mcpServers === undefined || connectorIds === undefined || locations === undefined)
    return undefined
  if (typeof enabled !== 'boolean' || !isLabel(version, VERSION_CHARS_MAX) || !isText(displayName)) return undefined
  return { id, enabled, displayName, version, mcpServers, connectorIds, locations }
}

/** Two that are equal name the same plugin. */
export function identityKey(id: PluginIdentity): string {
  switch (id.kind) {
    case 'remote':
      return JSON.stringify([id.kind, id.remotePluginId])
    case 'selected-root':
      return JSON.stringify([id.kind, id.rootId])
    case 'installed':
      return JSON.stringify([id.kind, id.name, id.marketplace])
  }
}

function readIdentity(raw: unknown): PluginIdentity | undefined {
  if (!isObject(raw)) return undefined
  const { kind, remotePluginId, rootId, name, marketplace } = raw
  if (kind === 'remote') return isId(remotePluginId) ? { kind, remotePluginId } : undefined
  if (kind === 'selected-root') return isId(rootId) ? { kind, rootId } : undefined
  return kind === 'installed' && isId(name) && isId(marketplace) ? { kind, name, marketplace } : undefined
}

function readServers(raw: unknown): PluginEntry['mcpServers'] | undefined {
  if (!isObject(raw)) return undefined
  const servers = Object.entries(raw)
  if (servers.length > SERVERS_MAX) return undefined
  const read = servers.flatMap(([name, declaration]) =>
    isLabel(name, ID_CHARS_MAX) && typeof declaration === 'string' && declaration.length <= DECLARATION_CHARS_MAX
      ? [[name, declaration] as const]
      : [],
  )
  return read.length === servers.length ? Object.fromEntries(read) : undefined
}

/** Trimmed. A blank one stays blank, and is nobody's where it is looked at. */
function readConnectorId(raw: unknown): string | undefined {
  const id = typeof raw === 'string' ? raw.trim() : undefined
  return id === '' || isLabel(id, ID_CHARS_MAX) ? id : undefined
}

function readLocation(raw: unknown): PluginLocation | undefined {
  if (!isObject(raw) || raw['kind'] !== 'hosted') return undefined
  const { resourceUri, bundleUri } = raw
  if (typeof resourceUri !== 'string' || pluginIdOf(resourceUri) === undefined) return undefined
  if (bundleUri === undefined) return { kind: 'hosted', resourceUri }
  return typeof bundleUri === 'string' && isBundleUri(bundleUri, resourceUri)
    ? { kind: 'hosted', resourceUri, bundleUri }
    : undefined
}

function readList<Item>(raw: unknown, max: number, read: (item: unknown) => Item | undefined): Item[] | undefined {
  if (!Array.isArray(raw) || raw.length > max) return undefined
  const items: Item[] = []
  for (const one of raw) {
    const item = read(one)
    if (item === undefined) return undefined
    items.push(item)
  }
  return items
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= DISPLAY_NAME_CHARS_MAX && value.trim() !== ''
}

/** Without backticks: where a plugin has no other name, its id stands between two of them. */
function isId(value: unknown): value is string {
  return isLabel(value, ID_CHARS_MAX) && !/[\s`]/.test(value)
}

/** One line, not blank, and nothing in it that nobody can see. */
function isLabel(value: unknown, charsMax: number): value is string {
  return (
    typeof value === 'string' &&
    value.length <= charsMax &&
    value.trim() !== '' &&
    !/[\t\n]/.test(value) &&
    cleanText(value).text === value
  )
}
