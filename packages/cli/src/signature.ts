// A tool's input schema as people write it: `get_weather(city: string, days?: integer)`. Pure; schemas are server text.

import type { JsonObject } from '@convoke/host'

/** Longest signature, in characters. */
const SIGNATURE_CHARS_MAX = 600
/** Objects inside objects are written out to this depth. */
const DEPTH_MAX = 2
/** Parameters, or members of one object, that are written out. */
const MEMBERS_MAX = 40
/** Words of an enumeration that are written out. */
const CHOICES_MAX = 12

/** The parameter list of a tool, in parentheses. Never throws, whatever the schema is. */
export function signatureOf(inputSchema: JsonObject): string {
  const text = `(${members(inputSchema, 0).join(', ')})`
  return text.length <= SIGNATURE_CHARS_MAX ? text : `${text.slice(0, SIGNATURE_CHARS_MAX - 2)}…)`
}

/** The type of one schema. */
export function typeText(schema: unknown, depth = 0): string {
  if (!isRecord(schema)) return 'any'
  if (Array.isArray(schema['enum'])) return choices(schema['enum'])
  if ('const' in schema) return JSON.stringify(schema['const']) ?? 'any'
  for (const key of ['anyOf', 'oneOf']) {
    const options = schema[key]
    if (Array.isArray(options) && options.length > 0) {
      const texts = [...new Set(options.slice(0, CHOICES_MAX).map((option) => typeText(option, depth + 1)))]
      return texts.join(' | ')
    }
  }
  const { type } = schema
  if (Array.isArray(type)) {
    return [...new Set(type.slice(0, CHOICES_MAX).map((one) => plainType(String(one), schema, depth)))].join(' | ')
  }
  return typeof type === 'string' ? plainType(type, schema, depth) : inferred(schema, depth)
}

function plainType(type: string, schema: JsonObject, depth: number): string {
  if (type === 'object') return objectText(schema, depth)
  if (type !== 'array') return type
  const item = typeText(schema['items'], depth + 1)
  return /^[\w{]/.test(item) && !item.includes(' | ') ? `${item}[]` : `(${item})[]`
}

function inferred(schema: JsonObject, depth: number): string {
  if ('properties' in schema) return objectText(schema, depth)
  return 'items' in schema ? plainType('array', schema, depth) : 'any'
}

function objectText(schema: JsonObject, depth: number): string {
  if (depth >= DEPTH_MAX) return 'object'
  const list = members(schema, depth + 1)
  return list.length === 0 ? 'object' : `{ ${list.join(', ')} }`
}

function members(schema: JsonObject, depth: number): string[] {
  const properties = isRecord(schema['properties']) ? Object.entries(schema['properties']) : []
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
  const texts = properties
    .slice(0, MEMBERS_MAX)
    .map(([name, value]) => `${nameText(name)}${required.has(name) ? '' : '?'}: ${typeText(value, depth)}`)
  return properties.length > MEMBERS_MAX ? [...texts, `… ${properties.length - MEMBERS_MAX} more`] : texts
}

const nameText = (name: string): string => (/^[\w$.-]{1,64}$/.test(name) ? name : JSON.stringify(name.slice(0, 64)))

function choices(values: readonly unknown[]): string {
  const texts = values.slice(0, CHOICES_MAX).map((value) => JSON.stringify(value) ?? 'any')
  return [...texts, ...(values.length > CHOICES_MAX ? [`… ${values.length - CHOICES_MAX} more`] : [])].join(' | ')
}

/** Is the value a JSON object? */
export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
