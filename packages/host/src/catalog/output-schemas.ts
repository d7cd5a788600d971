// Does structured content keep the promise of its output schema? Looked at lazily, one tool at a time, inside a budget: the schema and the
// value both come from the server.

import type { Schema, SchemaDraft, Validator } from '@cfworker/json-schema'
import { BoundedMap, cleanLine, digestHex, isObject, type JsonObject } from '../base/index.ts'

/** What a look at structured content says. */
export type OutputCheck =
  | { readonly kind: 'valid' }
  /** Where, as a JSON pointer, and which keyword was broken; never the value. */
  | { readonly kind: 'invalid'; readonly at: string; readonly keyword: string }
  /** The schema cannot be used within the budget; the value passes. */
  | { readonly kind: 'unchecked'; readonly reason: string }

/** Schemas kept ready. */
const SCHEMAS_MAX = 256
/** Text of a schema, in characters. */
const SCHEMA_CHARS_MAX = 256 * 1024
const SCHEMA_DEPTH_MAX = 60
/** Schema applications in one check; some 2 us each. */
const STEPS_MAX = 20_000

/**
 * Never evaluated: a hostile regular expression or a large list that must be unique costs seconds, and `format` is an annotation.
 * `$recursiveAnchor` makes room for the step counter.
 */
const SKIPPED: ReadonlySet<string> = new Set([
  'pattern',
  'patternProperties',
  'uniqueItems',
  'format',
  '$recursiveAnchor',
])
/** Their members are values or names, not schemas. */
const DATA: ReadonlySet<string> = new Set([
  'const',
  'enum',
  'default',
  'examples',
  'required',
  'type',
  'dependentRequired',
])
/** Their members are schemas under names. */
const NAMED: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])

type Prepared = (value: unknown) => OutputCheck

/** Checks structured content; keeps what it has prepared, by content of the schema. */
export class OutputSchemas {
  readonly #byObject = new WeakMap<JsonObject, Promise<Prepared>>()
  readonly #byDigest = new BoundedMap<string, Promise<Prepared>>(SCHEMAS_MAX)

  /** Never rejects. */
  async check(schema: JsonObject, value: unknown): Promise<OutputCheck> {
    let prepared = this.#byObject.get(schema)
    if (prepared === undefined) {
      prepared = this.#prepare(schema)
      this.#byObject.set(schema, prepared)
    }
    return (await prepared)(value)
  }

  #prepare(schema: JsonObject): Promise<Prepared> {
    const text = JSON.stringify(schema)
    if (text.length > SCHEMA_CHARS_MAX)
      return Promise.resolve(unchecked(`it has more than ${SCHEMA_CHARS_MAX} characters`))
    const key = digestHex(text, 40)
    let prepared = this.#byDigest.get(key)
    if (prepared === undefined) {
      prepared = prepare(schema)
      this.#byDigest.set(key, prepared)
    }
    return prepared
  }
}

function unchecked(reason: string): Prepared {
  return () => ({ kind: 'unchecked', reason })
}

class BudgetExceeded extends Error {}

async function prepare(schema: JsonObject): Promise<Prepared> {
  const { Validator } = await import('@cfworker/json-schema')
  const steps = { left: 0 }
  let validator: Validator
  try {
    validator = new Validator(copySchema(schema, steps, 0) as Schema, draftOf(schema), true)
  } catch (error) {
    return unchecked(`it cannot be used: ${cleanLine(String((error as Error).message), 200)}`)
  }
  return (value) => {
    steps.left = STEPS_MAX
    try {
      return outcome(validator.validate(value))
    } catch (error) {
      if (error instanceof BudgetExceeded)
        return { kind: 'unchecked', reason: `checking takes more than ${STEPS_MAX} steps` }
      return { kind: 'unchecked', reason: `it cannot be used: ${cleanLine(String((error as Error).message), 200)}` }
    }
  }
}

function outcome({ valid, errors }: ReturnType<Validator['validate']>): OutputCheck {
  if (valid) return { kind: 'valid' }
  const deepest = errors.at(-1)
  return {
    kind: 'invalid',
    at: cleanLine(deepest?.instanceLocation ?? '#', 200),
    keyword: cleanLine(deepest?.keyword ?? 'schema', 60),
  }
}

function draftOf({ $schema }: JsonObject): SchemaDraft {
  if (typeof $schema !== 'string') return '2020-12'
  if ($schema.includes('draft-04')) return '4'
  if ($schema.includes('draft-07') || $schema.includes('draft-06')) return '7'
  return $schema.includes('2019-09') ? '2019-09' : '2020-12'
}

/** A copy without the keywords that are skipped, in which every application of a schema counts as a step. */
function copySchema(schema: unknown, steps: { left: number }, depth: number): unknown {
  if (depth > SCHEMA_DEPTH_MAX) throw new RangeError(`nested deeper than ${SCHEMA_DEPTH_MAX} levels`)
  if (Array.isArray(schema)) return schema.map((item) => copySchema(item, steps, depth + 1))
  if (!isObject(schema)) return schema
  const copy: JsonObject = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (SKIPPED.has(keyword)) continue
    if (DATA.has(keyword)) copy[keyword] = value
    else if (NAMED.has(keyword) && isObject(value))
      copy[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, member]) => [name, copySchema(member, steps, depth + 1)]),
      )
    else copy[keyword] = copySchema(value, steps, depth + 1)
  }
  // The validator reads this keyword once for every application of the schema, and nobody else sees it.
  Object.defineProperty(copy, '$recursiveAnchor', {
    enumerable: false,
    get() {
      steps.left -= 1
      if (steps.left < 0) throw new BudgetExceeded()
      return undefined
    },
  })
  return copy
}
