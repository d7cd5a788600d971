// Shallow, tolerant checks of results. They look only at what the host relies on, keep everything by reference, and drop single bad items.
import { WireError } from './errors.ts'
import type { JsonObject } from './peer.ts'

export interface Tool extends JsonObject {
  name: string
  inputSchema: JsonObject
}
export interface Rejected {
  name: string
  reason: string
}
export interface ToolResult extends JsonObject {
  content: JsonObject[]
  structuredContent?: unknown
  isError?: boolean
}
export interface ServerHello {
  version: string
  capabilities: JsonObject
  serverInfo: JsonObject
  instructions: string | undefined
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function checkHello(result: JsonObject, version: unknown): ServerHello {
  if (typeof version !== 'string') throw new WireError('malformed', 'The server named no protocol version')
  const { capabilities, serverInfo, instructions } = result
  return {
    version,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: isObject(serverInfo) ? serverInfo : {},
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}

/** Why this item cannot be used as a tool; undefined = it can. */
export function toolFault(tool: unknown): string | undefined {
  if (!isObject(tool)) return 'not an object'
  if (typeof tool['name'] !== 'string' || tool['name'] === '') return 'no name'
  const schema = tool['inputSchema']
  if (!isObject(schema)) return 'no inputSchema'
  return schema['type'] === undefined || schema['type'] === 'object' ? undefined : 'inputSchema is not an object schema'
}

export function checkToolResult(result: JsonObject): ToolResult {
  const { content } = result
  if (content === undefined) return { ...result, content: [] } // structured only, or from a lax server
  if (!Array.isArray(content)) throw new WireError('malformed', 'The tool result has no content list')
  for (const block of content)
    if (!isObject(block) || typeof block['type'] !== 'string')
      throw new WireError('malformed', 'The tool result has a content block without a type')
  return result as ToolResult
}
