// Shallow, tolerant checks of results. They look only at what the host relies on, keep everything by reference, and drop single bad items.
import { WireError } from './errors.ts'
import type { JsonObject, ListKind, ToolResult } from './protocol.ts'

/** What a server said about itself; whatever was missing or of the wrong shape is empty. */
export interface ServerHello {
  version: string
  capabilities: JsonObject
  serverInfo: JsonObject
  instructions: string | undefined
}

/** An object, and no list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @throws {WireError} `malformed` without a version; everything else may be missing. */
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

/** Why this item of a listing cannot be used; undefined = it can. */
export function itemFault(kind: ListKind, item: unknown): string | undefined {
  if (!isObject(item)) return 'not an object'
  const fault = textFault(item)
  if (fault !== undefined) return fault
  switch (kind) {
    case 'tools':
      return item['name'] === '' ? 'no name' : toolFault(item)
    case 'resources':
      return isText(item['uri']) ? undefined : 'no uri'
    case 'resourceTemplates':
      return isText(item['uriTemplate']) ? undefined : 'no uriTemplate'
    case 'prompts':
      if (item['name'] === '') return 'no name'
      return item['arguments'] === undefined || Array.isArray(item['arguments'])
        ? undefined
        : 'arguments are not a list'
  }
}

function textFault({ name, title, description }: JsonObject): string | undefined {
  if (typeof name !== 'string') return 'no name'
  if (title !== undefined && typeof title !== 'string') return 'title is not text'
  return description === undefined || typeof description === 'string' ? undefined : 'description is not text'
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function toolFault(tool: JsonObject): string | undefined {
  const schema = tool['inputSchema']
  if (!isObject(schema)) return 'no inputSchema'
  return schema['type'] === undefined || schema['type'] === 'object' ? undefined : 'inputSchema is not an object schema'
}

/** A result without content gets an empty list. @throws {WireError} `malformed` for content that is no list of typed blocks. */
export function checkToolResult(result: JsonObject): ToolResult {
  const { content } = result
  if (content === undefined) return { ...result, content: [] } // structured only, or from a lax server
  if (!Array.isArray(content)) throw new WireError('malformed', 'The tool result has no content list')
  for (const block of content)
    if (!isObject(block) || typeof block['type'] !== 'string')
      throw new WireError('malformed', 'The tool result has a content block without a type')
  return result as ToolResult
}
