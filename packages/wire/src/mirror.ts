// Modern HTTP repeats parts of the body in headers: what is repeated, how values are written, which tools declare it wrongly.
import type { Call } from './call.ts'
import { isReserved } from './outbound-rules.ts'
import { type JsonObject, MODERN_VERSION, type Tool } from './protocol.ts'

/** An argument of a tool that is repeated in a header. */
export interface HeaderParameter {
  readonly header: string
  /** Names of properties, from the arguments down. */
  readonly path: readonly string[]
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const MIRRORED_TYPES = new Set<unknown>(['string', 'integer', 'boolean'])
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
}
/** Tools whose parameters are remembered. */
const TOOLS_MAX = 20_000
/** Of one schema. A larger one is not searched, so its tool is rejected. */
const SCHEMA_NODES_MAX = 50_000
/** Annotated properties of one tool, and how deep they may lie. */
const PARAMETERS_MAX = 128
const PATH_NAMES_MAX = 64
const ANNOTATION = 'x-mcp-header'
/** Where a schema holds further schemas that do not always apply to a value of fixed place. `map`: under names of its own. */
const CONDITIONAL: Readonly<Record<string, 'one' | 'list' | 'map'>> = {
  $defs: 'map',
  additionalProperties: 'one',
  allOf: 'list',
  anyOf: 'list',
  contains: 'one',
  definitions: 'map',
  dependentSchemas: 'map',
  else: 'one',
  if: 'one',
  items: 'list',
  not: 'one',
  oneOf: 'list',
  patternProperties: 'map',
  prefixItems: 'list',
  propertyNames: 'one',
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  then: 'one',
  unevaluatedItems: 'one',
  unevaluatedProperties: 'one',
}

/** The headers that repeat the body of one server's requests. */
export class Mirror {
  readonly #parameters = new Map<string, readonly HeaderParameter[]>()

  /** A tool has been listed. Why it must be dropped, or undefined. */
  accept(tool: Tool): string | undefined {
    const parameters = headerParameters(tool)
    this.#parameters.delete(tool.name)
    if ('invalid' in parameters) return parameters.invalid
    if (parameters.length > 0 && this.#parameters.size < TOOLS_MAX) this.#parameters.set(tool.name, parameters)
    return undefined
  }

  /** Appends to a flat list. A header that the caller brings takes the place of ours. */
  write(headers: string[], call: Call | undefined, text: string): void {
    const method = call?.method ?? methodIn(text)
    headers.push('mcp-protocol-version', MODERN_VERSION, 'mcp-method', headerValue(method))
    const named = NAMED_BY[method]
    const name = named === undefined ? undefined : call?.params[named]
    if (typeof name === 'string') {
      headers.push('mcp-name', headerValue(name))
      if (method === 'tools/call') this.#writeParameters(headers, name, call?.params['arguments'])
    }
    if (call?.options.headers !== undefined) writeOwn(headers, call.options.headers)
  }

  #writeParameters(headers: string[], tool: string, args: unknown): void {
    for (const { header, path } of this.#parameters.get(tool) ?? []) {
      const value = textOf(path.reduce<unknown>((inner, key) => (isObject(inner) ? own(inner, key) : undefined), args))
      if (value !== undefined) headers.push(header, headerValue(value))
    }
  }
}

/** Headers of one call. Names that this package writes itself are left out. */
export function writeOwn(headers: string[], given: Readonly<Record<string, string>>): void {
  for (const written in given) {
    const name = written.toLowerCase()
    const value = given[written]
    if (value === undefined || isReserved(name) || name === 'authorization' || name === 'dpop') continue
    let at = 0
    while (at < headers.length && headers[at] !== name) at += 2
    headers[at] = name
    headers[at + 1] = value
  }
}

/** Notifications are rare; answers have no method. */
function methodIn(text: string): string {
  const { method } = JSON.parse(text) as { method?: unknown }
  return typeof method === 'string' ? method : ''
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isSafeInteger(value))) return String(value)
  // The server compares with the body; a fraction where an integer belongs is for it to refuse.
  return typeof value === 'number' && Number.isFinite(value) && !Number.isInteger(value) ? String(value) : undefined
}

/** Plain when it is visible ASCII without outer spaces, else Base64. So is what looks encoded, and what is empty, since proxies drop empty headers. */
export function headerValue(value: string): string {
  const plain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value)
  if (plain && !(value.startsWith('=?base64?') && value.endsWith('?='))) return value
  return `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`
}

/** The way from the schema's root, as a list from its end: a hostile schema is deep. */
interface Step {
  readonly name: string
  readonly up: Step | undefined
}

interface Place {
  readonly schema: unknown
  readonly at: Step | undefined
  /** Reached through `properties` alone. */
  readonly plain: boolean
}

/** The annotated parameters of a tool, or why the tool must be dropped. */
export function headerParameters(tool: Tool): readonly HeaderParameter[] | { invalid: string } {
  const found: HeaderParameter[] = []
  const taken = new Set<string>()
  const open: Place[] = [{ schema: tool.inputSchema, at: undefined, plain: true }]
  for (let seen = 0; ; seen++) {
    const place = open.pop()
    if (place === undefined) return found
    if (seen >= SCHEMA_NODES_MAX) return { invalid: `inputSchema has more than ${SCHEMA_NODES_MAX} parts` }
    const { schema } = place
    if (!isObject(schema)) continue
    if (Object.hasOwn(schema, ANNOTATION)) {
      const parameter = parameterAt(place, schema, taken)
      if ('invalid' in parameter) return parameter
      found.push(parameter)
    }
    descend(place, schema, open)
  }
}

function pathTo(end: Step | undefined): string[] | undefined {
  const names: string[] = []
  for (let step = end; step !== undefined; step = step.up) if (names.push(step.name) > PATH_NAMES_MAX) return undefined
  return names.reverse()
}

function parameterAt(
  { at, plain }: Place,
  schema: JsonObject,
  taken: Set<string>,
): HeaderParameter | { invalid: string } {
  const { [ANNOTATION]: name, type } = schema
  const path = pathTo(at)
  if (path === undefined) return { invalid: `${ANNOTATION} deeper than ${PATH_NAMES_MAX} names` }
  const where = path.length === 0 ? 'inputSchema' : `"${path.join('.').slice(0, 200)}"`
  if (!plain || path.length === 0) return { invalid: `${where}: ${ANNOTATION} outside of plain properties` }
  if (typeof name !== 'string' || !TOKEN.test(name)) return { invalid: `${where}: ${ANNOTATION} is no header name` }
  if (!MIRRORED_TYPES.has(type))
    return { invalid: `${where}: ${ANNOTATION} on a value that is not a string, integer or boolean` }
  const header = name.toLowerCase()
  if (taken.has(header)) return { invalid: `${where}: another property has the same ${ANNOTATION}` }
  if (taken.size >= PARAMETERS_MAX) return { invalid: `more than ${PARAMETERS_MAX} properties with ${ANNOTATION}` }
  taken.add(header)
  return { header: `mcp-param-${header}`, path }
}

function descend({ at, plain }: Place, schema: JsonObject, open: Place[]): void {
  const { properties } = schema
  if (isObject(properties))
    for (const name in properties) open.push({ schema: properties[name], at: { name, up: at }, plain })
  for (const keyword in CONDITIONAL) {
    const inner = schema[keyword]
    if (typeof inner !== 'object' || inner === null) continue
    const below = { name: `<${keyword}>`, up: at }
    // Of a list or a map every member is a schema; `items` was a list once.
    const all = Array.isArray(inner) || CONDITIONAL[keyword] === 'map' ? Object.values(inner) : [inner]
    for (const one of all) open.push({ schema: one, at: below, plain: false })
  }
}

function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
