// Does the content of an answer fit the form that was asked for? Pure; the schema is the server's, so nothing of it is run: no patterns, no references.
import { isObject, type JsonObject } from '../base/index.ts'

/** What is wrong, naming the field and never its value; undefined when it fits. */
export function formFault(schema: JsonObject, content: JsonObject): string | undefined {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  for (const name of required)
    if (typeof name === 'string' && !Object.hasOwn(content, name))
      return `the field ${JSON.stringify(name)} is required`
  for (const [name, value] of Object.entries(content)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!isObject(field)) return `the form has no field ${JSON.stringify(name)}`
    const fault = valueFault(field, value)
    if (fault !== undefined) return `the field ${JSON.stringify(name)} ${fault}`
  }
  return undefined
}

function valueFault(field: JsonObject, value: unknown): string | undefined {
  const choices = choicesOf(field)
  if (choices !== undefined && !choices.includes(value)) return 'is not one of its choices'
  switch (field['type']) {
    case 'string':
      return typeof value === 'string' ? textFault(field, value) : 'is a text'
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? rangeFault(field, value) : 'is a number'
    case 'integer':
      return Number.isInteger(value) ? rangeFault(field, value as number) : 'is a whole number'
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'is true or false'
    case 'array':
      return Array.isArray(value) ? listFault(field, value) : 'is a list'
    default:
      return undefined // a kind of field that is not known here is the server's to check
  }
}

/** The values that a field allows: an `enum`, or titled choices. */
function choicesOf(field: JsonObject): readonly unknown[] | undefined {
  if (Array.isArray(field['enum'])) return field['enum']
  const titled = field['oneOf'] ?? field['anyOf']
  if (!Array.isArray(titled) || !titled.every((one) => isObject(one) && 'const' in one)) return undefined
  return titled.map((one: JsonObject) => one['const'])
}

function textFault({ minLength, maxLength }: JsonObject, text: string): string | undefined {
  const chars = [...text].length
  if (typeof minLength === 'number' && chars < minLength) return `has at least ${minLength} characters`
  if (typeof maxLength === 'number' && chars > maxLength) return `has at most ${maxLength} characters`
  return undefined
}

function rangeFault({ minimum, maximum }: JsonObject, value: number): string | undefined {
  if (typeof minimum === 'number' && value < minimum) return `is at least ${minimum}`
  if (typeof maximum === 'number' && value > maximum) return `is at most ${maximum}`
  return undefined
}

function listFault({ minItems, maxItems, items }: JsonObject, list: readonly unknown[]): string | undefined {
  if (typeof minItems === 'number' && list.length < minItems) return `has at least ${minItems} members`
  if (typeof maxItems === 'number' && list.length > maxItems) return `has at most ${maxItems} members`
  if (!isObject(items)) return undefined
  for (const member of list) {
    const fault = valueFault(items, member)
    if (fault !== undefined) return `has a member that ${fault}`
  }
  return undefined
}
