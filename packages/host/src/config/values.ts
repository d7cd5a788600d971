// Reads one field of an entry as its specification says. Pure apart from collecting problems.

import type { Node } from 'jsonc-parser'
import { elementsOf, kindOf, propertiesOf } from './document.ts'
import type { ReportField } from './entry-fields.ts'
import {
  EXPANDED_CHARS_MAX,
  type ExpansionFacts,
  type ExpansionOutcome,
  expandHome,
  expandVariables,
  holdsVariable,
} from './expand.ts'
import type {
  Expansion,
  FieldSpec,
  IntegerSpec,
  ObjectMapSpec,
  ObjectSpec,
  TextListSpec,
  TextMapSpec,
  TextSpec,
} from './fields.ts'
import { headerNameFault, headerValueFault } from './headers.ts'
import { didYouMean } from './near-names.ts'
import { expandUrl, urlFault } from './url.ts'

/** Longest list or map of one field, in items. */
export const ITEMS_MAX = 1024

/** The value of a field, or undefined when it had to be reported. */
export type FieldValue =
  | string
  | number
  | boolean
  | readonly string[]
  | Readonly<Record<string, string>>
  | FieldValues
  | ReadonlyMap<string, FieldValues>
/** The values of an object with known fields, by name. */
export type FieldValues = ReadonlyMap<string, FieldValue>

/** What reading needs besides the field. */
export interface ReadContext {
  readonly report: ReportField
  readonly facts: ExpansionFacts
  /** Characters that expansion may still produce in this file. */
  readonly budget: { charsLeft: number }
}

/** Reads `node` as `spec` says; `path` is the field's dotted name for messages. */
export function readValue(spec: FieldSpec, node: Node, path: string, context: ReadContext): FieldValue | undefined {
  switch (spec.kind) {
    case 'text':
      return readText(spec, node, path, context)
    case 'flag':
      return node.type === 'boolean' ? node.value === true : wrongType('true or false', node, path, context)
    case 'integer':
      return readInteger(spec, node, path, context)
    case 'choice':
      return readChoice(spec.values, node, path, context)
    case 'text-list':
      return readTextList(spec, node, path, context)
    case 'variable-list':
      return readVariableList(node, path, context)
    case 'text-map':
      return readTextMap(spec, node, path, context)
    case 'object':
      return readObject(spec, node, path, context)
    case 'object-map':
      return readObjectMap(spec, node, path, context)
  }
}

function readText(
  spec: Pick<TextSpec, 'expands' | 'blank'>,
  node: Node,
  path: string,
  context: ReadContext,
): string | undefined {
  if (node.type !== 'string') return wrongType('a text', node, path, context)
  const text = expand(String(node.value), spec.expands, node, { path, context })
  if (text === undefined) return undefined
  if (text.includes('\0')) return wrongValue('holds a NUL character.', node, path, context)
  if (spec.blank !== 'allowed' && text.trim() === '') return wrongValue('must not be empty.', node, path, context)
  const fault = spec.expands === 'url' ? urlFault(text) : undefined
  return fault === undefined ? text : wrongValue(fault, node, path, context)
}

function readInteger(spec: IntegerSpec, node: Node, path: string, context: ReadContext): number | undefined {
  if (node.type !== 'number') return wrongType('a whole number', node, path, context)
  const value = Number(node.value)
  if (Number.isSafeInteger(value) && value >= spec.min && value <= spec.max) return value
  return wrongValue(`must be a whole number from ${spec.min} to ${spec.max}.`, node, path, context)
}

function readChoice(values: readonly string[], node: Node, path: string, context: ReadContext): string | undefined {
  if (node.type !== 'string') return wrongType(`one of ${values.join(', ')}`, node, path, context)
  const value = String(node.value)
  if (values.includes(value)) return value
  return wrongValue(`must be one of ${values.join(', ')}.${didYouMean(value, values, 1)}`, node, path, context)
}

function readTextList(
  spec: TextListSpec,
  node: Node,
  path: string,
  context: ReadContext,
): readonly string[] | undefined {
  if (node.type !== 'array') return wrongType('a list of texts', node, path, context)
  return readAll(elementsOf(node), node, { path, context }, (element, index) => {
    const at = `${path}.${index}`
    return spec.values === undefined
      ? readText(spec, element, at, context)
      : readChoice(spec.values, element, at, context)
  })
}

function readVariableList(node: Node, path: string, context: ReadContext): readonly string[] | undefined {
  if (node.type !== 'array') return wrongType('a list of variable names', node, path, context)
  return readAll(elementsOf(node), node, { path, context }, (element, index) => {
    const at = `${path}.${index}`
    if (element.type !== 'object') return readVariableName(element, at, context)
    const members = new Map(propertiesOf(element).map((property) => [property.key, property.value]))
    const [name, source] = [members.get('name'), members.get('source')]
    const stranger = [...members.keys()].find((key) => key !== 'name' && key !== 'source')
    if (name === undefined) return wrongValue('needs "name".', element, at, context)
    if (stranger !== undefined) return wrongValue('may only hold "name" and "source".', element, at, context)
    if (source !== undefined && source.value !== 'local') {
      return wrongValue('must be "local", the only source so far.', source, `${at}.source`, context)
    }
    return readVariableName(name, `${at}.name`, context)
  })
}

function readVariableName(node: Node, path: string, context: ReadContext): string | undefined {
  const name = readText({ expands: 'none' }, node, path, context)
  if (name === undefined || !/[=\s]/.test(name)) return name
  return wrongValue('is not the name of a variable.', node, path, context)
}

function readTextMap(
  spec: TextMapSpec,
  node: Node,
  path: string,
  context: ReadContext,
): Readonly<Record<string, string>> | undefined {
  if (node.type !== 'object') return wrongType('an object of texts', node, path, context)
  const members = membersOf(node, path, context, spec.keys)
  if (members === undefined) return undefined
  const entries: [string, string][] = []
  let { isWhole } = members
  for (const { key, keyOffset, value, at } of members.list) {
    const read =
      spec.values === 'variable'
        ? readVariableName(value, at, context)
        : readText({ expands: spec.expands, blank: 'allowed' }, value, at, context)
    if (read === undefined) isWhole = false
    else if (keyIsUsable(spec, { key, keyOffset, at, value: read }, context)) entries.push([key, read])
  }
  return isWhole ? recordOf(entries) : undefined
}

interface Member {
  readonly key: string
  readonly keyOffset: number
  readonly value: Node
  /** Dotted path for messages. */
  readonly at: string
}

/** The members of an object, each once; a repeated one makes the object unusable and is reported. */
function membersOf(
  node: Node,
  path: string,
  context: ReadContext,
  keys?: 'variable' | 'header',
): { readonly list: readonly Member[]; readonly isWhole: boolean } | undefined {
  const properties = propertiesOf(node)
  if (properties.length > ITEMS_MAX) return tooMany(node, path, context)
  const list: Member[] = []
  const seen = new Set<string>()
  let isWhole = true
  for (const { key, keyOffset, value } of properties) {
    const at = `${path}.${key}`
    const identity = keys === 'header' ? key.toLowerCase() : key
    if (seen.has(identity)) {
      isWhole = false
      const text = 'stands twice. Keep one of them.'
      context.report({ severity: 'error', code: 'CONFIG_KEY_DUPLICATE', text, offset: keyOffset, field: at })
    } else if (value !== undefined) list.push({ key, keyOffset, value, at })
    seen.add(identity)
  }
  return { list, isWhole }
}

/** An unusable variable or header is left out with a warning; the server works without it. */
function keyIsUsable(
  spec: TextMapSpec,
  entry: { key: string; keyOffset: number; at: string; value: string },
  context: ReadContext,
): boolean {
  const fault =
    spec.keys === 'variable'
      ? variableNameFault(entry.key)
      : (headerNameFault(entry.key) ?? (spec.values === 'text' ? headerValueFault(entry.value) : undefined))
  if (fault === undefined) return true
  const text = `is left out: ${fault}.`
  context.report({ severity: 'warning', code: 'CONFIG_FIELD_VALUE', text, offset: entry.keyOffset, field: entry.at })
  return false
}

function variableNameFault(name: string): string | undefined {
  return name === '' || /[=\0]/.test(name) ? 'it is not the name of a variable' : undefined
}

function readObject(spec: ObjectSpec, node: Node, path: string, context: ReadContext): FieldValues | undefined {
  if (node.type !== 'object') return wrongType('an object', node, path, context)
  const members = membersOf(node, path, context)
  if (members === undefined) return undefined
  const values = new Map<string, FieldValue>()
  let { isWhole } = members
  for (const member of members.list) {
    const field = Object.hasOwn(spec.fields, member.key) ? spec.fields[member.key] : undefined
    if (field === undefined) {
      isWhole = reportStranger(spec, member, context) && isWhole
      continue
    }
    const read = readValue(field, member.value, member.at, context)
    if (read === undefined) isWhole = false
    else values.set(member.key, read)
  }
  const missing = (spec.required ?? []).find((key) => !values.has(key))
  if (missing !== undefined && isWhole) return wrongValue(`needs "${missing}".`, node, path, context)
  return isWhole ? values : undefined
}

/** Gives back whether the object can still be used. */
function reportStranger(
  spec: ObjectSpec | ObjectMapSpec,
  entry: { key: string; keyOffset: number; at: string },
  context: ReadContext,
): boolean {
  if (entry.key === 'clientSecret') {
    const text = 'is refused: put the secret in an environment variable and name it in "clientSecretEnvVar".'
    context.report({ severity: 'error', code: 'CONFIG_FIELD_REFUSED', text, offset: entry.keyOffset, field: entry.at })
    return false
  }
  const text = `is not a known key and is ignored.${didYouMean(entry.key, Object.keys(spec.fields), 1)}`
  context.report({ severity: 'warning', code: 'CONFIG_KEY_UNKNOWN', text, offset: entry.keyOffset, field: entry.at })
  return true
}

function readObjectMap(
  spec: ObjectMapSpec,
  node: Node,
  path: string,
  context: ReadContext,
): ReadonlyMap<string, FieldValues> | undefined {
  if (node.type !== 'object') return wrongType('an object', node, path, context)
  const members = membersOf(node, path, context)
  if (members === undefined) return undefined
  const values = new Map<string, FieldValues>()
  let { isWhole } = members
  for (const { key, value, at } of members.list) {
    const read = readObject({ kind: 'object', about: spec.about, fields: spec.fields }, value, at, context)
    if (read === undefined) isWhole = false
    else values.set(key, read)
  }
  return isWhole ? values : undefined
}

interface FieldPlace {
  readonly path: string
  readonly context: ReadContext
}

/** Reads every element, also after a bad one, so that all of them are reported. */
function readAll(
  elements: readonly Node[],
  node: Node,
  { path, context }: FieldPlace,
  read: (element: Node, index: number) => string | undefined,
): readonly string[] | undefined {
  if (elements.length > ITEMS_MAX) return tooMany(node, path, context)
  const values = elements.map(read)
  return values.every((value) => value !== undefined) ? values : undefined
}

function expand(text: string, expansion: Expansion, node: Node, { path, context }: FieldPlace): string | undefined {
  if (expansion === 'none' || expansion === 'home') {
    if (holdsVariable(text)) {
      const reason = `holds a \${…}, which is not expanded here and not sent as it stands. Write the value.`
      context.report({
        severity: 'error',
        code: 'CONFIG_EXPANSION_MISPLACED',
        text: reason,
        offset: node.offset,
        field: path,
      })
      return undefined
    }
    return expansion === 'home' ? expandHome(text, context.facts) : text
  }
  warnForeignSyntax(text, node, path, context)
  const withHome = expansion === 'variables-and-home' ? homeOutcome(text, context) : undefined
  const outcome =
    withHome ?? (expansion === 'url' ? expandUrl(text, context.facts) : expandVariables(text, context.facts))
  if (outcome.kind !== 'text') return reportExpansion(outcome, node, path, context)
  context.budget.charsLeft -= outcome.text.length
  if (context.budget.charsLeft >= 0) return outcome.text
  return reportExpansion({ kind: 'too-long' }, node, path, context)
}

/** The home directory goes in front of the expanded rest, so that neither is looked at twice. */
function homeOutcome(text: string, context: ReadContext): ExpansionOutcome | undefined {
  const home = expandHome('~', context.facts)
  if (text === '~') return { kind: 'text', text: home }
  if (!/^~[/\\]/.test(text)) return undefined
  const rest = expandVariables(text.slice(1), context.facts)
  return rest.kind === 'text' ? { kind: 'text', text: home + rest.text } : shiftedBy(rest, 1)
}

function shiftedBy(outcome: ExpansionOutcome, by: number): ExpansionOutcome {
  return 'offset' in outcome ? { ...outcome, offset: outcome.offset + by } : outcome
}

function reportExpansion(
  outcome: Exclude<ExpansionOutcome, { kind: 'text' }>,
  node: Node,
  path: string,
  context: ReadContext,
): undefined {
  // The text's opening quote is one character; escapes before the place only make it point a little early.
  const offset = 'offset' in outcome ? node.offset + 1 + outcome.offset : node.offset
  const report = (code: Parameters<ReportField>[0]['code'], text: string): undefined => {
    context.report({ severity: 'error', code, text, offset, field: path })
    return undefined
  }
  switch (outcome.kind) {
    case 'missing': {
      const hint = outcome.hint === '' ? `set it, or write \${NAME:-default}` : outcome.hint
      return report('CONFIG_VARIABLE_MISSING', `needs the variable ${outcome.variable}, which is not set (${hint}).`)
    }
    case 'input':
      return report(
        'CONFIG_INPUT_NEEDED',
        `asks for an input (${JSON.stringify(outcome.input.slice(0, 80))}) that only an editor can ask for. Put the value in a variable and write \${NAME}.`,
      )
    case 'malformed':
      return report(
        'CONFIG_EXPANSION_SYNTAX',
        `cannot be expanded: ${outcome.reason}. A literal "\${" is written "$\${".`,
      )
    case 'misplaced':
      return report(
        'CONFIG_EXPANSION_MISPLACED',
        `holds a \${…} in its scheme or host, where variables are not expanded. Write the address.`,
      )
    case 'too-long':
      return report('CONFIG_FIELD_VALUE', `is too long after expansion (more than ${EXPANDED_CHARS_MAX} characters).`)
  }
}

const PATH_IN_VARIABLE = /^\$[A-Za-z_][A-Za-z0-9_]*(?:$|[/\\])\S*$/
const VARIABLE_OF_SHELL = /(?:^|\s)\$[A-Za-z_][A-Za-z0-9_]*(?:$|[/\\])/

function warnForeignSyntax(text: string, node: Node, path: string, context: ReadContext): void {
  const percent = path === 'url' ? null : /%[A-Za-z_][A-Za-z0-9_]{2,}%/.exec(text)
  // An argument may be a line for a shell, which expands by itself; one that begins with a variable is meant to be a path.
  const pattern = path.startsWith('args') ? PATH_IN_VARIABLE : VARIABLE_OF_SHELL
  const dollar = pattern.exec(text)
  if (percent === null && dollar === null) return
  context.report({
    severity: 'warning',
    code: 'CONFIG_EXPANSION_SYNTAX',
    text: `holds ${percent === null ? 'a $NAME' : 'a %NAME%'}, which is passed on as it stands. Variables are written \${NAME}.`,
    offset: node.offset,
    field: path,
  })
}

function wrongType(wanted: string, node: Node, path: string, context: ReadContext): undefined {
  const text = `must be ${wanted}, not ${kindOf(node)}.`
  context.report({ severity: 'error', code: 'CONFIG_FIELD_TYPE', text, offset: node.offset, field: path })
}

function wrongValue(text: string, node: Node, path: string, context: ReadContext): undefined {
  context.report({ severity: 'error', code: 'CONFIG_FIELD_VALUE', text, offset: node.offset, field: path })
}

function tooMany(node: Node, path: string, context: ReadContext): undefined {
  return wrongValue(`has more than ${ITEMS_MAX} items.`, node, path, context)
}

/** An ordinary object in which `__proto__` is a key like any other. */
export function recordOf<Value>(entries: Iterable<readonly [string, Value]>): Record<string, Value> {
  return Object.fromEntries(entries)
}
