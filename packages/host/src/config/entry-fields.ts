// Which field each key of an entry means: our own names, the spellings of other clients, strangers, repeats. Pure.

import type { Node } from 'jsonc-parser'
import { elementsOf, kindOf, type Property, propertiesOf } from './document.ts'
import { ALIASES, REFUSED_KEYS, SECRET_KEYS, SERVER_FIELDS, TRANSPORT_WORDS } from './fields.ts'
import { didYouMean } from './near-names.ts'
import { type ProblemReport, shorten } from './problems.ts'

/** A field of an entry with the place it was written at. The value may be made from another client's spelling. */
export interface EntryField {
  /** The key as it stands in the file. */
  readonly key: string
  readonly keyOffset: number
  readonly value: Node
}

/** Takes one problem of the entry. */
export type ReportField = (report: Omit<ProblemReport, 'server'>) => void

/** Reads the keys of one entry. Everything that cannot be used has been reported; what is returned has our names. */
export function canonicalFields(properties: readonly Property[], report: ReportField): Map<string, EntryField> {
  const fields = new Map<string, EntryField>()
  const aliases = new Map<string, EntryField>()
  const strangers: EntryField[] = []
  for (const { key, keyOffset, value } of properties) {
    if (value === undefined) continue
    const field = { key, keyOffset, value }
    const secret = SECRET_KEYS.get(key)
    const refused = REFUSED_KEYS.get(key)
    if (secret !== undefined) {
      report({
        severity: 'error',
        code: 'CONFIG_FIELD_REFUSED',
        text: `is refused: ${secret}.`,
        offset: keyOffset,
        field: key,
      })
    } else if (refused !== undefined) {
      report({
        severity: 'warning',
        code: 'CONFIG_FIELD_REFUSED',
        text: `is ignored: ${refused}.`,
        offset: keyOffset,
        field: key,
      })
    } else if (Object.hasOwn(SERVER_FIELDS, key)) addOnce(fields, field, report)
    else if (Object.hasOwn(ALIASES, key)) addOnce(aliases, field, report)
    else strangers.push(field)
  }
  for (const stranger of strangers) reportStranger(stranger, fields, report)
  readShapes(fields, report)
  readSwitches(fields, aliases, report)
  readAddress(fields, aliases, report)
  readTransportWords(fields, aliases, report)
  readToolLists(fields, aliases, report)
  return fields
}

function addOnce(into: Map<string, EntryField>, field: EntryField, report: ReportField): void {
  if (!into.has(field.key)) {
    into.set(field.key, field)
    return
  }
  report({
    severity: 'error',
    code: 'CONFIG_KEY_DUPLICATE',
    text: 'stands twice in this entry. Keep one of them.',
    offset: field.keyOffset,
    field: field.key,
  })
}

/** What may be meant by a key that nobody knows. */
const KNOWN_KEYS: readonly string[] = [...Object.keys(SERVER_FIELDS), ...Object.keys(ALIASES)]

function reportStranger(stranger: EntryField, fields: ReadonlyMap<string, EntryField>, report: ReportField): void {
  const twin = [...fields.keys()].find((known) => known.toLowerCase() === stranger.key.toLowerCase())
  if (twin !== undefined) {
    report({
      severity: 'error',
      code: 'CONFIG_KEY_DUPLICATE',
      text: `differs only in case from ${JSON.stringify(twin)} in this entry. Keep one of them.`,
      offset: stranger.keyOffset,
      field: stranger.key,
    })
    return
  }
  report({
    severity: 'warning',
    code: 'CONFIG_KEY_UNKNOWN',
    text: `is not a known key and is ignored.${didYouMean(stranger.key, KNOWN_KEYS, 1)}`,
    offset: stranger.keyOffset,
    field: stranger.key,
  })
}

/** `command` as a list and `environment` as an object are another client's command with arguments, and variables. */
function readShapes(fields: Map<string, EntryField>, report: ReportField): void {
  const command = fields.get('command')
  const [program, ...rest] = elementsOf(command?.value)
  if (command?.value.type === 'array' && program !== undefined) {
    const { offset, length } = command.value
    if (rest.length > 0 && fields.has('args')) conflict(command, 'already holds arguments; leave out "args"', report)
    fields.set('command', { ...command, value: program })
    if (rest.length > 0 && !fields.has('args')) {
      fields.set('args', { ...command, value: { type: 'array', offset, length, children: rest } })
    }
  }
  const environment = fields.get('environment')
  if (environment?.value.type !== 'object') return
  fields.delete('environment')
  if (fields.has('env')) conflict(environment, 'with variables cannot stand beside "env"', report)
  else fields.set('env', environment)
}

function readSwitches(
  fields: Map<string, EntryField>,
  aliases: ReadonlyMap<string, EntryField>,
  report: ReportField,
): void {
  const disabled = aliases.get('disabled')
  if (disabled !== undefined) {
    const enabled = fields.get('enabled')
    if (disabled.value.type !== 'boolean') wrongType(disabled, 'true or false', report)
    else if (enabled === undefined) {
      fields.set('enabled', { ...disabled, value: { ...disabled.value, value: disabled.value.value !== true } })
    } else if (enabled.value.value === disabled.value.value) conflict(disabled, 'contradicts "enabled"', report)
  }
  const timeout = aliases.get('timeout')
  if (timeout === undefined || fields.has('toolTimeoutMs')) return
  const milliseconds = timeoutMs(timeout.value)
  if (milliseconds !== undefined) {
    fields.set('toolTimeoutMs', { ...timeout, value: { ...timeout.value, value: milliseconds } })
    return
  }
  report({
    severity: 'warning',
    code: 'CONFIG_FIELD_VALUE',
    text: 'is ignored: it could mean seconds or milliseconds. Write "toolTimeoutMs".',
    offset: timeout.value.offset,
    field: 'timeout',
  })
}

/** Clients write seconds (up to an hour) or milliseconds here; undefined where both are possible. */
function timeoutMs(value: Node): number | undefined {
  if (value.type !== 'number' || !Number.isFinite(value.value) || value.value <= 0) return undefined
  if (value.value < 1000) return Math.ceil(value.value * 1000)
  return value.value > 3600 ? Math.ceil(value.value) : undefined
}

function readAddress(
  fields: Map<string, EntryField>,
  aliases: ReadonlyMap<string, EntryField>,
  report: ReportField,
): void {
  for (const key of ['httpUrl', 'serverUrl', 'baseUrl']) {
    const alias = aliases.get(key)
    if (alias === undefined) continue
    const url = fields.get('url')
    if (url === undefined) fields.set('url', alias)
    else if (url.value.value !== alias.value.value) conflict(alias, `contradicts ${JSON.stringify(url.key)}`, report)
    if (key === 'httpUrl' && !fields.has('transport')) fields.set('transport', asText(alias, 'streamable'))
  }
}

/** `type`, and `transport` with a word of another client. */
function readTransportWords(
  fields: Map<string, EntryField>,
  aliases: ReadonlyMap<string, EntryField>,
  report: ReportField,
): void {
  const type = aliases.get('type')
  if (type !== undefined) readTransportWord(type, fields, report)
  const own = fields.get('transport')
  if (own === undefined || OUR_FLAVOURS.has(own.value.value)) return
  fields.delete('transport')
  readTransportWord(own, fields, report)
}

const OUR_FLAVOURS: ReadonlySet<unknown> = new Set(['auto', 'streamable', 'sse'])

function readTransportWord(field: EntryField, fields: Map<string, EntryField>, report: ReportField): void {
  const meaning = TRANSPORT_WORDS.get(field.value.value)
  if (meaning === undefined) {
    const text = 'must be stdio, http or sse; or leave it out.'
    report({ severity: 'error', code: 'CONFIG_FIELD_VALUE', text, offset: field.value.offset, field: field.key })
    return
  }
  const needed = meaning.kind === 'stdio' ? 'command' : 'url'
  if (!fields.has(needed)) {
    conflict(field, `says ${meaning.kind === 'stdio' ? 'stdio' : 'HTTP'}, which needs "${needed}"`, report)
    return
  }
  if (meaning.flavour === undefined) return
  const present = fields.get('transport')
  if (present === undefined) fields.set('transport', asText(field, meaning.flavour))
  else if (present.value.value !== meaning.flavour && present.value.value !== 'auto') {
    conflict(field, `contradicts ${JSON.stringify(present.key)}`, report)
  }
}

/** A bare list under `tools`, and the include and exclude lists, are our allow and deny lists. */
function readToolLists(
  fields: Map<string, EntryField>,
  aliases: ReadonlyMap<string, EntryField>,
  report: ReportField,
): void {
  const tools = fields.get('tools')
  if (tools?.value.type === 'array') {
    const everything = elementsOf(tools.value).some((element) => element.value === '*')
    fields.delete('tools')
    if (!everything) fields.set('tools', { ...tools, value: objectOf(tools, [['allow', tools]]) })
  }
  const members: [string, EntryField][] = []
  for (const [key, name] of [
    ['includeTools', 'allow'],
    ['excludeTools', 'deny'],
  ] as const) {
    const alias = aliases.get(key)
    if (alias === undefined) continue
    const taken = propertiesOf(fields.get('tools')?.value).some((property) => property.key === name)
    if (taken) conflict(alias, `stands beside "tools.${name}"`, report)
    else members.push([name, alias])
  }
  const [first] = members
  if (first === undefined) return
  const base = fields.get('tools') ?? first[1]
  const before = fields.has('tools') ? (base.value.children ?? []) : []
  const merged = objectOf(base, members)
  fields.set('tools', { ...base, value: { ...merged, children: [...before, ...(merged.children ?? [])] } })
}

function objectOf(at: EntryField, members: readonly (readonly [string, EntryField])[]): Node {
  const { offset, length } = at.value
  const children = members.map(
    ([name, field]): Node => ({
      type: 'property',
      offset: field.keyOffset,
      length: 0,
      children: [{ type: 'string', offset: field.keyOffset, length: 0, value: name }, field.value],
    }),
  )
  return { type: 'object', offset, length, children }
}

const asText = (field: EntryField, value: string): EntryField => ({
  ...field,
  value: { type: 'string', offset: field.value.offset, length: field.value.length, value },
})

function conflict(field: EntryField, text: string, report: ReportField): void {
  report({
    severity: 'error',
    code: 'CONFIG_FIELD_CONFLICT',
    text: `${text}.`,
    offset: field.keyOffset,
    field: shorten(field.key),
  })
}

function wrongType(field: EntryField, wanted: string, report: ReportField): void {
  report({
    severity: 'error',
    code: 'CONFIG_FIELD_TYPE',
    text: `must be ${wanted}, not ${kindOf(field.value)}.`,
    offset: field.value.offset,
    field: field.key,
  })
}
