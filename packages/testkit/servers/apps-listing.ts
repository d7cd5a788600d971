// What the apps server lists of an account, in the shapes of both families.
import type { Resource, Tool } from '@modelcontextprotocol/server'
import type { AppsPlugin, AppsTool } from '../src/apps-server.ts'

const PLUGIN_MIME_TYPE = 'application/vnd.convoke.plugin+json'

/** The raw name of a tool. */
export const rawName = ({ connector, action, name = `${connector}_${action}` }: AppsTool): string => name

/** As `tools/list` shows it. */
export function listedTool(tool: AppsTool): Tool {
  const { connector, action, annotations = { readOnlyHint: true } } = tool
  const { description = `Run ${action} in ${connector}.` } = tool
  return {
    name: rawName(tool),
    description,
    annotations,
    inputSchema: { type: 'object', properties: {}, additionalProperties: true },
    _meta: { ...metaOf(tool), ...tool.meta },
  }
}

function metaOf(tool: AppsTool): Record<string, unknown> {
  const { connector: id, connectorName: name = id, connectorDescription: description, family = 'codex' } = tool
  const resourceUri = `connector://${id}/tools/${rawName(tool)}`
  if (family === 'convoke')
    return { 'convoke/connector': { id, name, description }, 'convoke/app': { resourceUri, linkId: `link-${id}` } }
  return {
    connector_id: id,
    connector_name: name,
    ...(description === undefined ? {} : { connector_description: description }),
    _codex_apps: { resource_uri: resourceUri, contains_mcp_source: true, connector_id: id },
  }
}

/** As `resources/list` shows it. */
export function listedPlugin(plugin: AppsPlugin): Resource {
  const { id, displayName, version = '1.0.0', enabled = true, connectorIds = [], mcpServers = {} } = plugin
  const { bundleUri, family = 'convoke', resource = {} } = plugin
  const own = { id, displayName, version, enabled, connectorIds, mcpServers, bundleUri }
  const other = {
    plugin_id: id,
    display_name: displayName,
    version,
    enabled,
    connector_ids: connectorIds,
    mcp_servers: mcpServers,
    bundle_uri: bundleUri,
  }
  return {
    uri: `plugin://${id}`,
    name: displayName,
    mimeType: PLUGIN_MIME_TYPE,
    _meta: family === 'convoke' ? { 'convoke/plugin': own } : other,
    ...resource,
  }
}

/** The vendor's object of a request, and the address in it. */
export function echoOf(meta: Readonly<Record<string, unknown>>): { meta: unknown; resourceUri: unknown } {
  const found = meta['convoke/app'] ?? meta['_codex_apps'] ?? null
  const { resourceUri, resource_uri: other } = (found ?? {}) as Record<string, unknown>
  return { meta: found, resourceUri: resourceUri ?? other ?? null }
}
