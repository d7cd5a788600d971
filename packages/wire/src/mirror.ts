// Modern HTTP repeats parts of the body in headers (SEP-2243): what is repeated, how values are written, which tools declare it wrongly.
import type { Call, JsonObject } from './peer.ts'
import type { Tool } from './validate.ts'

export interface HeaderParameter {
  header: string
  path: string[]
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const MIRRORED_TYPES = new Set(['string', 'integer', 'boolean'])
const NAMED_BY: Record<string, string> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }

/** The `x-mcp-header` parameters of a tool, or why the tool must be dropped. Only properties reachable through `properties` may carry one. */
export function headerParameters(tool: Tool): HeaderParameter[] | { invalid: string } {
  if (!mentions(tool.inputSchema, 0)) return []
  const found: HeaderParameter[] = []
  const invalid =
    collect(tool.inputSchema, [], found) ??
    duplicate(found) ??
    (countMentions(tool.inputSchema) > found.length ? 'x-mcp-header outside of plain properties' : undefined)
  return invalid === undefined ? found : { invalid }
}

function collect(schema: JsonObject, path: string[], found: HeaderParameter[]): string | undefined {
  const { properties } = schema
  if (!isObject(properties)) return undefined
  for (const [name, property] of Object.entries(properties)) {
    if (!isObject(property)) continue
    const header = property['x-mcp-header']
    if (header !== undefined) {
      if (typeof header !== 'string' || !TOKEN.test(header)) return `"${name}": x-mcp-header is no header name`
      if (!MIRRORED_TYPES.has(String(property['type'])))
        return `"${name}": x-mcp-header on a value that is not a string, integer or boolean`
      found.push({ header: `mcp-param-${header}`, path: [...path, name] })
    }
    const invalid = collect(property, [...path, name], found)
    if (invalid !== undefined) return invalid
  }
  return undefined
}

function duplicate(found: HeaderParameter[]): string | undefined {
  return new Set(found.map(({ header }) => header.toLowerCase())).size < found.length
    ? 'two properties share one x-mcp-header'
    : undefined
}

function mentions(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null || depth > 32) return false
  if (Object.hasOwn(value, 'x-mcp-header')) return true
  for (const key in value) if (mentions((value as JsonObject)[key], depth + 1)) return true
  return false
}

function countMentions(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce(
    (count: number, inner) => count + countMentions(inner),
    Object.hasOwn(value, 'x-mcp-header') ? 1 : 0,
  )
}

/** The flat header list for one message. */
export function mirrorHeaders(
  version: string,
  call: Call | undefined,
  text: string,
  parametersOf: (tool: string) => HeaderParameter[],
): string[] {
  const method = call?.method ?? /"method":"([^"]+)"/.exec(text)?.[1] ?? ''
  const headers = ['mcp-protocol-version', version, 'mcp-method', method]
  const named = NAMED_BY[method]
  const name = named === undefined ? undefined : call?.params[named]
  if (typeof name !== 'string') return headers
  headers.push('mcp-name', headerValue(name))
  if (method !== 'tools/call') return headers
  for (const { header, path } of parametersOf(name)) {
    const value = path.reduce<unknown>(
      (inner, key) => (isObject(inner) ? inner[key] : undefined),
      call?.params['arguments'],
    )
    if (value !== undefined && value !== null) headers.push(header, headerValue(String(value)))
  }
  return headers
}

/** Plain when it is visible ASCII without outer spaces, else Base64. A plain value that looks encoded is encoded, too. */
export function headerValue(value: string): string {
  const plain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value)
  return plain || value === '' ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
