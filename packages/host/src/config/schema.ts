// The published JSON Schema of convoke.json, made from the one definition of the fields. Pure.

import type { JsonObject } from '../base/index.ts'
import { ALIASES, type FieldSpec, SERVER_FIELDS } from './fields.ts'
import { SERVER_NAME_CHARS_MAX } from './server-names.ts'
import { ITEMS_MAX } from './values.ts'

/** The JSON Schema (2020-12) of a configuration file, for editors. Convoke itself is more tolerant: it warns of unknown keys. */
export function configSchema(): JsonObject {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'convoke.json',
    description: 'The MCP servers that Convoke connects to. Comments and trailing commas are allowed.',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { type: 'string', description: 'Where this schema is, for editors.' },
      mcpServers: {
        type: 'object',
        description: 'The servers by name. A name is any printable text.',
        propertyNames: { minLength: 1, maxLength: SERVER_NAME_CHARS_MAX },
        additionalProperties: { $ref: '#/$defs/server' },
      },
    },
    $defs: {
      server: {
        type: 'object',
        description: 'One server: a program to start ("command") or an address ("url").',
        additionalProperties: false,
        properties: { ...propertiesOf(SERVER_FIELDS), ...aliasProperties() },
      },
    },
  }
}

function propertiesOf(fields: Readonly<Record<string, FieldSpec>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([name, spec]) => [name, schemaOf(spec)]))
}

function aliasProperties(): JsonObject {
  return Object.fromEntries(
    Object.entries(ALIASES).map(([name, alias]) => [
      name,
      { ...alias.schema, description: alias.about, deprecated: true },
    ]),
  )
}

function schemaOf(spec: FieldSpec): JsonObject {
  return {
    ...shapeOf(spec),
    description: spec.about,
    ...(spec.default === undefined ? {} : { default: spec.default }),
  }
}

function shapeOf(spec: FieldSpec): JsonObject {
  switch (spec.kind) {
    case 'text':
      return spec.blank === 'allowed' ? { type: 'string' } : { type: 'string', minLength: 1 }
    case 'flag':
      return { type: 'boolean' }
    case 'integer':
      return { type: 'integer', minimum: spec.min, maximum: spec.max }
    case 'choice':
      return { enum: [...spec.values] }
    case 'text-list': {
      const items = spec.values === undefined ? { type: 'string' } : { enum: [...spec.values] }
      return { type: 'array', maxItems: ITEMS_MAX, items }
    }
    case 'variable-list':
      return { type: 'array', maxItems: ITEMS_MAX, items: { anyOf: [{ type: 'string' }, VARIABLE_ITEM] } }
    case 'text-map':
      return { type: 'object', maxProperties: ITEMS_MAX, additionalProperties: { type: 'string' } }
    case 'object':
      return {
        type: 'object',
        additionalProperties: false,
        properties: propertiesOf(spec.fields),
        ...(spec.required === undefined ? {} : { required: [...spec.required] }),
      }
    case 'object-map':
      return {
        type: 'object',
        maxProperties: ITEMS_MAX,
        additionalProperties: { type: 'object', additionalProperties: false, properties: propertiesOf(spec.fields) },
      }
  }
}

const VARIABLE_ITEM: JsonObject = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { name: { type: 'string', minLength: 1 }, source: { enum: ['local'] } },
}
