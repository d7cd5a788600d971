// The words after a tool's name as its arguments, typed by the tool's schema. Pure.

import { closestNames, type JsonObject } from '@convoke/host'
import { usageError } from './command-error.ts'
import { isRecord, signatureOf } from './signature.ts'

/**
 * Reads `key=value` and `key:=JSON` words. A value is read as the schema's type for that key: numbers, booleans, null, and JSON for
 * objects and lists; a list may also be given by repeating its key. Without a type it stays a text.
 *
 * @throws {CommandError} when a word has no `=`, a value does not fit its type, a key is unknown to a closed schema or repeated, or a
 * required key is missing.
 */
export function readArguments(words: readonly string[], inputSchema: JsonObject): JsonObject {
  const given = new Map<string, { text: string; isJson: boolean }[]>()
  for (const word of words) {
    const { key, text, isJson } = splitWord(word)
    given.set(key, [...(given.get(key) ?? []), { text, isJson }])
  }
  const properties = isRecord(inputSchema['properties']) ? inputSchema['properties'] : {}
  const isClosed = inputSchema['additionalProperties'] === false
  const values = [...given].map(([key, list]): [string, unknown] => {
    const schema = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (schema === undefined && isClosed) throw unknownKey(key, Object.keys(properties))
    return [key, argumentValue(key, list, schema)]
  })
  const missing = requiredOf(inputSchema).filter((key) => !given.has(key))
  if (missing.length > 0) {
    const names = missing.map((key) => JSON.stringify(key)).join(', ')
    throw usageError(`The tool needs ${names}. Its parameters: ${signatureOf(inputSchema)}`)
  }
  return Object.fromEntries(values)
}

/** A notice for each argument that the tool does not declare, where it does not say that it takes others. They are sent all the same. */
export function unknownArguments(args: JsonObject, inputSchema: JsonObject): readonly string[] {
  const { properties, additionalProperties = false, patternProperties } = inputSchema
  if (!isRecord(properties) || additionalProperties !== false || patternProperties !== undefined) return []
  const known = Object.keys(properties)
  if (known.length === 0) return []
  return Object.keys(args)
    .filter((key) => !Object.hasOwn(properties, key))
    .slice(0, NOTICES_MAX)
    .map((key) => {
      const [near] = closestNames(key, known, 1)
      const hint = near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`
      return `the tool does not declare ${JSON.stringify(key.slice(0, KEY_CHARS_MAX))}; it is sent all the same.${hint}`
    })
}

/** Most undeclared arguments that are told of, and the most characters of one. */
const NOTICES_MAX = 10
const KEY_CHARS_MAX = 128

/**
 * Reads a JSON object from text.
 * @throws {CommandError} when the text is not one; `source` says where it came from.
 */
export function readJsonObject(text: string, source: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw usageError(`${source} is not JSON: ${error instanceof SyntaxError ? error.message : 'unreadable'}`)
  }
  if (!isRecord(value)) throw usageError(`${source} must be a JSON object, such as {"city": "Berlin"}.`)
  return value
}

function splitWord(word: string): { key: string; text: string; isJson: boolean } {
  const at = word.indexOf('=')
  if (at <= 0) {
    throw usageError(
      `${JSON.stringify(word)} is not an argument. Write key=value, key:=JSON, --args JSON, or - to read JSON from stdin.`,
    )
  }
  const isJson = word[at - 1] === ':' && at > 1
  return { key: word.slice(0, isJson ? at - 1 : at), text: word.slice(at + 1), isJson }
}

function argumentValue(key: string, list: readonly { text: string; isJson: boolean }[], schema: unknown): unknown {
  const [first] = list
  if (first === undefined) return undefined
  if (list.length === 1) {
    if (first.isJson) return parsed(key, first.text)
    const types = typesOf(schema)
    if (types.has('array') && !types.has('string') && !first.text.trimStart().startsWith('[')) {
      return [typed(key, first.text, itemsOf(schema))]
    }
    return typed(key, first.text, schema)
  }
  if (!typesOf(schema).has('array'))
    throw usageError(`${JSON.stringify(key)} is given ${list.length} times and is not a list.`)
  return list.map(({ text, isJson }) => (isJson ? parsed(key, text) : typed(key, text, itemsOf(schema))))
}

/** A text as the first of the schema's types that it fits; a text if that is allowed or nothing is known. */
function typed(key: string, text: string, schema: unknown): unknown {
  const types = typesOf(schema)
  if (types.size === 0) return text
  if (types.has('null') && text === 'null') return null
  if (types.has('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  if (isNumberFor(types, text)) return Number(text)
  if (
    (types.has('object') && text.trimStart().startsWith('{')) ||
    (types.has('array') && text.trimStart().startsWith('['))
  ) {
    if (!types.has('string')) return parsed(key, text)
    return jsonOr(text)
  }
  if (types.has('string')) return text
  throw usageError(`${JSON.stringify(key)} must be ${[...types].join(' or ')}.`)
}

/** A number that would be written back differently is a text where texts are allowed: `007`, long digits of an account. */
function isNumberFor(types: ReadonlySet<string>, text: string): boolean {
  if (!types.has('number') && !types.has('integer')) return false
  if (!/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return false
  const value = Number(text)
  if (!Number.isFinite(value)) return false
  if (types.has('string') && String(value) !== text) return false
  return types.has('number') || Number.isInteger(value)
}

function parsed(key: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw usageError(`The value of ${JSON.stringify(key)} is not JSON.`)
  }
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Every type that a value may have, over `type`, `enum`, `const`, `anyOf` and `oneOf`; empty when the schema does not say. */
function typesOf(schema: unknown, depth = 0): ReadonlySet<string> {
  if (!isRecord(schema) || depth > ALTERNATIVES_DEPTH_MAX) return new Set()
  const stated = [schema['type']].flat().filter((type): type is string => typeof type === 'string')
  const fixed = [listAt(schema, 'enum'), 'const' in schema ? [schema['const']] : []].flat()
  const alternatives = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => listAt(schema, key).slice(0, ALTERNATIVES_MAX))
  return new Set([
    ...stated,
    ...(stated.length === 0 ? fixed.map(jsonType) : []),
    ...alternatives.flatMap((option) => [...typesOf(option, depth + 1)]),
  ])
}

/** Alternatives inside alternatives that are looked at, and how many of each. */
const ALTERNATIVES_DEPTH_MAX = 4
const ALTERNATIVES_MAX = 50

function listAt(schema: JsonObject, key: string): readonly unknown[] {
  const value = schema[key]
  return Array.isArray(value) ? value : []
}

function jsonType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}

function itemsOf(schema: unknown): unknown {
  return isRecord(schema) ? schema['items'] : undefined
}

function requiredOf(schema: JsonObject): string[] {
  const { required } = schema
  return Array.isArray(required) ? required.filter((key): key is string => typeof key === 'string') : []
}

function unknownKey(key: string, known: readonly string[]): Error {
  const [near] = closestNames(key, known, 1)
  const hint = near === undefined ? ` It has ${known.join(', ') || 'none'}.` : ` Did you mean ${JSON.stringify(near)}?`
  return usageError(`The tool has no parameter ${JSON.stringify(key)}.${hint}`)
}
