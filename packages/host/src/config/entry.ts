// One entry of `mcpServers` as a definition. Pure apart from collecting problems.

import { resolve } from 'node:path'
import type { Node } from 'jsonc-parser'
import {
  type ConfigLayer,
  type ConfigProblem,
  type ConfigProblemCode,
  defineServer,
  type HttpTransport,
  SERVER_DEFAULTS,
  type ServerDefinition,
  type ServerDefinitionInput,
  type StdioTransport,
  type ToolPolicy,
} from './definition.ts'
import { type ConfigDocument, kindOf, type Property, propertiesOf, type SyntaxFault } from './document.ts'
import { canonicalFields, type EntryField, type ReportField } from './entry-fields.ts'
import type { ExpansionFacts } from './expand.ts'
import { SERVER_FIELDS } from './fields.ts'
import type { ProblemList, ProblemReport } from './problems.ts'
import { isOpenNetwork } from './url.ts'
import { type FieldValue, type FieldValues, readValue } from './values.ts'

/** What reading an entry needs besides the entry. */
export interface EntryContext {
  readonly document: ConfigDocument
  readonly problems: ProblemList
  readonly facts: ExpansionFacts
  readonly budget: { charsLeft: number }
  readonly file: string
  /** Folder of the file: where relative paths of an entry start. */
  readonly folder: string
  readonly layer: ConfigLayer
}

/**
 * Reads one entry. Always gives a definition; one that cannot be used carries its first error as `problem`, and is never
 * started. Every further error and warning is in `context.problems` as well.
 */
export function readEntry({ key: name, keyOffset, value }: Property, context: EntryContext): ServerDefinition {
  let first: ConfigProblem | undefined
  let isOff = false
  const report: ReportField = (problem) => {
    // Nobody needs the variables of a server that is switched off.
    if (isOff && UNMET_NEEDS.has(problem.code)) return
    const kept = context.problems.report({ ...problem, server: name } satisfies ProblemReport)
    if (kept.severity === 'error') first ??= kept
  }
  const source = { layer: context.layer, file: context.file, ...context.document.placeOf(keyOffset) }
  if (value?.type !== 'object') {
    const text = `must be an object with "command" or "url", not ${kindOf(value)}.`
    report({ severity: 'error', code: 'CONFIG_FIELD_TYPE', text, offset: value?.offset ?? keyOffset })
    return { ...defineServer({ name, transport: NO_TRANSPORT, source }), ...(first && { problem: first }) }
  }
  for (const fault of faultsWithin(context.document, value)) {
    report({ severity: 'error', code: 'CONFIG_SYNTAX', text: `cannot be read: ${fault.reason}.`, offset: fault.offset })
  }
  const fields = canonicalFields(propertiesOf(value), report)
  isOff = fields.get('enabled')?.value.value === false
  const kind = transportKind(fields, keyOffset, report)
  const values = readFields(fields, kind, { context, report })
  checkTogether(values, fields, { context, report })
  const settings = settingsOf(name, values, {
    ignored: refusedFor(context.layer, values),
    folder: context.folder,
  })
  const definition = defineServer({ ...settings, source, transport: transportOf(kind, values, context) })
  return first === undefined ? definition : { ...definition, problem: first }
}

const UNMET_NEEDS: ReadonlySet<ConfigProblemCode> = new Set(['CONFIG_VARIABLE_MISSING', 'CONFIG_INPUT_NEEDED'])

/** Stands where an entry does not say how to reach its server; such a definition always has a `problem`. */
const NO_TRANSPORT: StdioTransport = { kind: 'stdio', command: '', args: [], env: {}, envVars: [] }

/**
 * The faults inside a value. Those between two entries belong to neither, and both are used. A brace that is missing at the end
 * of the file is missed by every value that reaches to there.
 */
export function faultsWithin({ faults, text }: ConfigDocument, value: Node): readonly SyntaxFault[] {
  const end = value.offset + value.length
  return faults.filter(
    ({ offset }) => (offset >= value.offset && offset < end) || (offset === end && offset >= text.length),
  )
}

function transportKind(
  fields: ReadonlyMap<string, EntryField>,
  keyOffset: number,
  report: ReportField,
): 'stdio' | 'http' | undefined {
  const [command, url] = [fields.get('command'), fields.get('url')]
  if (command !== undefined && url !== undefined) {
    const text = `stands beside ${JSON.stringify(command.key)}. A server has a command or an address, not both.`
    report({
      severity: 'error',
      code: 'CONFIG_TRANSPORT_AMBIGUOUS',
      text,
      offset: url.keyOffset,
      field: url.key,
    })
    return undefined
  }
  if (command !== undefined) return 'stdio'
  if (url !== undefined) return 'http'
  if (fields.get('enabled')?.value.value === false) return undefined
  const text = 'needs "command" (a program to start) or "url" (an address).'
  report({ severity: 'error', code: 'CONFIG_TRANSPORT_MISSING', text, offset: keyOffset })
  return undefined
}

interface EntryShell {
  readonly context: EntryContext
  readonly report: ReportField
}

function readFields(
  fields: ReadonlyMap<string, EntryField>,
  kind: 'stdio' | 'http' | undefined,
  { context, report }: EntryShell,
): FieldValues {
  const values = new Map<string, FieldValue>()
  for (const [name, field] of fields) {
    const spec = SERVER_FIELDS[name]
    if (spec === undefined) continue
    if (kind !== undefined && spec.transport !== undefined && spec.transport !== kind) {
      const text = `is not for ${kind === 'stdio' ? 'servers with a command' : 'servers with an address'}. Remove it.`
      report({ severity: 'error', code: 'CONFIG_FIELD_MISPLACED', text, offset: field.keyOffset, field: field.key })
      continue
    }
    const { facts, budget } = context
    const value = readValue(spec, field.value, field.key, { report, facts, budget })
    if (value !== undefined) values.set(name, value)
  }
  return values
}

/** What single fields cannot know. */
function checkTogether(
  values: FieldValues,
  fields: ReadonlyMap<string, EntryField>,
  { context, report }: EntryShell,
): void {
  const tell = (severity: 'error' | 'warning', code: ConfigProblemCode, name: string, text: string): void => {
    const field = fields.get(name)
    report({ severity, code, text, offset: field?.keyOffset ?? 0, field: field?.key ?? name })
  }
  if ((values.get('environment') ?? 'local') !== 'local') {
    tell('error', 'CONFIG_FIELD_VALUE', 'environment', 'must be "local": servers cannot run anywhere else yet.')
  }
  for (const name of refusedFor(context.layer, values)) {
    const text =
      context.layer === 'flag'
        ? 'counts only in your own configuration file, not in one given with --config; it is ignored.'
        : 'counts only in your own configuration file; it is ignored.'
    tell('warning', 'CONFIG_FIELD_REFUSED', name, text)
  }
  const [silence, total] = [values.get('toolTimeoutMs'), values.get('toolTotalTimeoutMs')]
  if (typeof silence === 'number' && silence > Number(total ?? SERVER_DEFAULTS.toolTotalTimeoutMs)) {
    const text = 'is longer than toolTotalTimeoutMs, which ends every call first.'
    tell('warning', 'CONFIG_FIELD_CONFLICT', 'toolTimeoutMs', text)
  }
  const grantFault = missingForGrant(valuesAt(values, 'oauth'))
  if (grantFault !== undefined) tell('error', 'CONFIG_FIELD_CONFLICT', 'oauth', grantFault)
  const url = values.get('url')
  if (typeof url === 'string' && isOpenNetwork(url) && carriesSecret(values)) {
    const text = 'is not encrypted (http), and a credential is sent to it. Use https.'
    tell('warning', 'CONFIG_FIELD_CONFLICT', 'url', text)
  }
}

/** Credentials that nobody is asked about go to no authorization server that a server names: it stands in the entry. */
function missingForGrant(oauth: FieldValues | undefined): string | undefined {
  const grant = oauth?.get('grant') ?? 'authorization-code'
  if (oauth === undefined || grant === 'authorization-code') return undefined
  const proof =
    grant === 'workload'
      ? ['assertionFile']
      : ['clientSecretEnvVar', 'privateKeyFile'].filter((name) => oauth.has(name)).slice(0, 1)
  const wanted = ['clientId', 'issuer', ...(proof.length === 0 ? ['clientSecretEnvVar'] : proof)]
  const missing = wanted.find((name) => !oauth.has(name))
  if (missing === undefined) return undefined
  const other = missing === 'clientSecretEnvVar' ? ' or "privateKeyFile"' : ''
  return `with "grant": "${grant}" needs "${missing}"${other} too.`
}

/** Settings that lower caution or lend an account; a file of someone else's must not turn them on. */
function refusedFor(layer: ConfigLayer, values: FieldValues): string[] {
  if (layer === 'user' || layer === 'managed') return []
  return [
    ...(values.get('trustAnnotations') === true ? ['trustAnnotations'] : []),
    ...(values.get('auth') === 'account' ? ['auth'] : []),
    ...(values.get('hosted') === true ? ['hosted'] : []),
  ]
}

function carriesSecret(values: FieldValues): boolean {
  const headers = Object.keys(recordAt(values, 'headers'))
  return (
    values.has('bearerTokenEnvVar') ||
    values.has('envHeaders') ||
    values.has('headersHelper') ||
    headers.some((name) => /^(authorization|cookie|x-api-key)$/i.test(name))
  )
}

function transportOf(
  kind: 'stdio' | 'http' | undefined,
  values: FieldValues,
  { folder }: EntryContext,
): StdioTransport | HttpTransport {
  if (kind === 'http') return httpTransport(values, folder)
  if (kind !== 'stdio') return NO_TRANSPORT
  const cwd = textAt(values, 'cwd')
  return {
    kind: 'stdio',
    command: textAt(values, 'command') ?? '',
    args: listAt(values, 'args') ?? [],
    env: recordAt(values, 'env'),
    envVars: listAt(values, 'envVars') ?? [],
    ...(cwd === undefined ? {} : { cwd: resolve(folder, cwd) }),
  }
}

function httpTransport(values: FieldValues, folder: string): HttpTransport {
  const helper = valuesAt(values, 'headersHelper')
  const ca = textAt(values, 'ca')
  return {
    kind: 'http',
    url: textAt(values, 'url') ?? '',
    headers: recordAt(values, 'headers'),
    envHeaders: recordAt(values, 'envHeaders'),
    ...present({ bearerTokenEnvVar: values.get('bearerTokenEnvVar'), transport: values.get('transport') }),
    ...(helper === undefined
      ? {}
      : { headersHelper: { command: textAt(helper, 'command') ?? '', args: listAt(helper, 'args') ?? [] } }),
    ...(ca === undefined ? {} : { ca: resolve(folder, ca) }),
  }
}

function settingsOf(
  name: string,
  values: FieldValues,
  { ignored, folder }: { readonly ignored: readonly string[]; readonly folder: string },
): Omit<ServerDefinitionInput, 'transport'> {
  const simple = new Map([...values].filter(([key]) => SIMPLE_SETTINGS.has(key) && !ignored.includes(key)))
  const oauth = valuesAt(values, 'oauth')
  const tools = valuesAt(values, 'tools')
  return {
    ...Object.fromEntries(simple),
    name,
    ...(oauth === undefined ? {} : { oauth: oauthOf(oauth, folder) }),
    ...(tools === undefined ? {} : { tools: toolPolicyOf(tools) }),
  }
}

const OAUTH_FILES: ReadonlySet<string> = new Set(['privateKeyFile', 'assertionFile'])

function oauthOf(oauth: FieldValues, folder: string): Record<string, unknown> {
  return Object.fromEntries(
    [...oauth].map(([key, value]) => [
      key,
      OAUTH_FILES.has(key) && typeof value === 'string' ? resolve(folder, value) : value,
    ]),
  )
}

/** Settings whose value in the file is their value in the definition. */
const SIMPLE_SETTINGS: ReadonlySet<string> = new Set([
  ...['enabled', 'required', 'startup', 'startupTimeoutMs', 'installTimeoutMs', 'toolTimeoutMs', 'toolTotalTimeoutMs'],
  ...['messageBytesMax', 'approvalMode', 'parallelToolCalls', 'omitToolsFrom', 'environment', 'auth', 'scopes'],
  ...['isolation', 'trustAnnotations', 'hosted'],
])

function toolPolicyOf(tools: FieldValues): ToolPolicy {
  const overrides = tools.get('overrides')
  return {
    ...present({ allow: tools.get('allow'), deny: tools.get('deny') }),
    ...(overrides instanceof Map
      ? {
          overrides: Object.fromEntries([...overrides].map(([tool, settings]) => [tool, Object.fromEntries(settings)])),
        }
      : {}),
  }
}

function present(values: Record<string, unknown>): Record<string, never> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Record<string, never>
}

function textAt(values: FieldValues, name: string): string | undefined {
  const value = values.get(name)
  return typeof value === 'string' ? value : undefined
}

function listAt(values: FieldValues, name: string): readonly string[] | undefined {
  const value = values.get(name)
  return Array.isArray(value) ? value : undefined
}

function recordAt(values: FieldValues, name: string): Readonly<Record<string, string>> {
  const value = values.get(name)
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Map)
    ? (value as Readonly<Record<string, string>>)
    : {}
}

function valuesAt(values: FieldValues, name: string): FieldValues | undefined {
  const value = values.get(name)
  return value instanceof Map ? (value as FieldValues) : undefined
}
