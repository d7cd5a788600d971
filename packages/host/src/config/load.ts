// Reads the configuration files of one run and merges them by server name.

import { homedir } from 'node:os'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { JsonObject } from '../base/index.ts'
import type { ConfigLayer, ConfigProblem, DefinitionSource, ServerDefinition } from './definition.ts'
import { type ConfigDocument, jsonOf, kindOf, type Property, parseDocument, propertiesOf } from './document.ts'
import { type EntryContext, faultsWithin, readEntry } from './entry.ts'
import type { ExpansionFacts } from './expand.ts'
import { SERVER_FIELDS } from './fields.ts'
import { didYouMean } from './near-names.ts'
import { standardPaths } from './paths.ts'
import { ProblemList, shorten } from './problems.ts'
import { readConfigFile } from './read-file.ts'
import { nameSkeleton, serverNameFault } from './server-names.ts'

/** Servers that are read from one file. */
export const SERVERS_MAX = 1000
/** Characters that expansion may produce in one file. */
const EXPANDED_FILE_CHARS_MAX = 16 * 1024 * 1024

/** A file to read, with the layer its entries belong to. */
export interface ConfigFile {
  readonly path: string
  readonly layer: 'user' | 'flag'
}

/** What {@link loadConfig} takes; everything has a default. */
export interface LoadConfigOptions {
  /** In ascending precedence. Default: the user's own file. */
  readonly files?: readonly ConfigFile[]
  /** Where variables are looked up. Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** What `~` stands for. Default the home directory of the user. */
  readonly homeDirectory?: string
  /** Where relative paths of `files` start. Default the working directory. */
  readonly cwd?: string
}

/** An entry as it stands in its file, before expansion: what may be shown. */
export interface ConfigEntry {
  readonly name: string
  readonly source: DefinitionSource
  /** The entry's value; an empty object when it is not an object. */
  readonly value: JsonObject
}

/** The configuration of one run. */
export interface LoadedConfig {
  /** One per server name, in the order of the files; entries that cannot be used carry a `problem`. */
  readonly definitions: readonly ServerDefinition[]
  /** The entries behind `definitions`, in the same order. */
  readonly entries: readonly ConfigEntry[]
  /** Everything that is wrong, in the order of the files. */
  readonly problems: readonly ConfigProblem[]
  /** Every file that was looked for, with an absolute path. */
  readonly files: readonly { readonly path: string; readonly layer: ConfigLayer; readonly found: boolean }[]
}

/**
 * Reads every file, collects every problem and merges the servers by name: a later file's entry replaces an earlier one whole.
 * Never throws for what is in a file; a file that cannot be read is a problem, and the others are used.
 *
 * @example
 * const { definitions, problems } = await loadConfig()
 * for (const problem of problems) process.stderr.write(`${problem.message}\n`)
 */
export async function loadConfig(options: LoadConfigOptions = {}): Promise<LoadedConfig> {
  const env = options.env ?? process.env
  const facts: ExpansionFacts = { env, homeDirectory: options.homeDirectory ?? homedir() }
  const own = { path: standardPaths({ ...facts, platform: process.platform }).configFile, layer: 'user' } as const
  const read = await Promise.all(
    (options.files ?? [own]).map((file) => loadFile({ ...file, path: absolute(file.path, options.cwd) }, facts)),
  )
  const merged = new Map<string, LoadedServer>()
  for (const { servers } of read) for (const server of servers) merged.set(server.definition.name, server)
  const definitions = [...merged.values()].map((server) => server.definition)
  return {
    definitions,
    entries: [...merged.values()].map((server) => server.entry),
    problems: [...read.flatMap((file) => file.problems), ...lookAlikes(definitions)],
    files: read.map(({ path, layer, found }) => ({ path, layer, found })),
  }
}

/** The working directory may have been removed; it is only asked for when a path needs it. */
function absolute(path: string, cwd: string | undefined): string {
  return isAbsolute(path) ? path : resolve(cwd ?? process.cwd(), path)
}

interface LoadedServer {
  readonly definition: ServerDefinition
  readonly entry: ConfigEntry
}

interface LoadedFile {
  readonly path: string
  readonly layer: ConfigLayer
  readonly found: boolean
  readonly servers: readonly LoadedServer[]
  readonly problems: readonly ConfigProblem[]
}

async function loadFile(file: ConfigFile, facts: ExpansionFacts): Promise<LoadedFile> {
  const outcome = await readConfigFile(file.path)
  const problems = new ProblemList(file.path, (offset) => document?.placeOf(offset) ?? { line: 0, column: 0 })
  let document: ConfigDocument | undefined
  let servers: readonly LoadedServer[] = []
  switch (outcome.kind) {
    case 'missing':
      // Nobody asked for the user's own file; a file that was named must be there.
      if (file.layer === 'flag') {
        problems.report({ severity: 'error', code: 'CONFIG_FILE_NOT_FOUND', text: 'does not exist.' })
      }
      break
    case 'unusable':
      problems.report({ severity: 'error', code: outcome.code, text: `${outcome.reason}.` })
      break
    case 'text': {
      for (const { code, reason } of outcome.notes) problems.report({ severity: 'warning', code, text: `${reason}.` })
      document = parseDocument(outcome.text)
      const budget = { charsLeft: EXPANDED_FILE_CHARS_MAX }
      const { layer, path } = file
      servers = readServers({ document, problems, facts, budget, file: path, folder: dirname(path), layer })
      break
    }
  }
  return { ...file, found: outcome.kind !== 'missing', servers, problems: problems.all() }
}

function readServers(context: EntryContext): readonly LoadedServer[] {
  const { document, problems } = context
  const root = document.root
  const properties = root === undefined ? [] : rootProperties(context)
  const entries = properties.slice(0, SERVERS_MAX)
  reportFaults(context, entries)
  const [firstTooMany] = properties.slice(SERVERS_MAX)
  if (firstTooMany !== undefined) {
    const text = `holds more than ${SERVERS_MAX} servers; the ${properties.length - SERVERS_MAX} from here on are not used.`
    problems.report({ severity: 'error', code: 'CONFIG_SERVERS_TOO_MANY', text, offset: firstTooMany.keyOffset })
  }
  const servers = new Map<string, LoadedServer>()
  for (const property of entries) {
    const fault = serverNameFault(property.key)
    if (fault !== undefined) {
      const text = `server name ${JSON.stringify(shorten(property.key))} ${fault}`
      problems.report({ severity: 'error', code: 'CONFIG_NAME_INVALID', text, offset: property.keyOffset })
      continue
    }
    const before = servers.get(property.key)
    if (before === undefined) {
      const definition = readEntry(property, context)
      const value = property.value?.type === 'object' ? (jsonOf(property.value) as JsonObject) : {}
      servers.set(property.key, { definition, entry: { name: property.key, source: definition.source, value } })
      continue
    }
    const { line, column } = before.definition.source
    const problem = problems.report({
      severity: 'error',
      code: 'CONFIG_KEY_DUPLICATE',
      text: `stands twice, first at ${line}:${column}. Keep one of them.`,
      offset: property.keyOffset,
      server: property.key,
    })
    servers.set(property.key, { ...before, definition: { problem, ...before.definition } })
  }
  for (const [name, fragment] of splitEntries(entries, servers)) {
    const before = servers.get(name)
    if (before === undefined) continue
    const problem = problems.report({
      severity: 'error',
      code: 'CONFIG_SYNTAX',
      text: `seems to end too early: ${JSON.stringify(fragment.key)} stands behind it as if it were a server. Look for a misplaced brace.`,
      offset: fragment.keyOffset,
      server: name,
    })
    servers.set(name, {
      ...before,
      definition: { ...before.definition, problem: before.definition.problem ?? problem },
    })
  }
  return [...servers.values()]
}

/**
 * A brace too many cuts an entry in two: its other settings follow as if they were servers. Starting the first part would start a
 * server without, say, its list of denied tools.
 */
function splitEntries(
  entries: readonly Property[],
  servers: ReadonlyMap<string, LoadedServer>,
): readonly (readonly [string, Property])[] {
  let whole: string | undefined
  return entries.flatMap((property) => {
    const isFragment =
      Object.hasOwn(SERVER_FIELDS, property.key) && servers.get(property.key)?.definition.problem !== undefined
    if (isFragment && whole !== undefined) return [[whole, property] as const]
    whole = property.key
    return []
  })
}

/** The entries of `mcpServers`; everything else at the root has been reported. */
function rootProperties({ document, problems }: EntryContext): readonly Property[] {
  const root = document.root
  if (root?.type !== 'object') {
    const text = `must be an object with "mcpServers", not ${kindOf(root)}.`
    problems.report({ severity: 'error', code: 'CONFIG_SHAPE', text, offset: root?.offset ?? 0 })
    return []
  }
  const servers: Property[] = []
  const seen = new Set<string>()
  for (const { key, keyOffset, value } of propertiesOf(root)) {
    if (seen.has(key)) {
      const text = `${JSON.stringify(shorten(key))} stands twice. Keep one of them.`
      problems.report({ severity: 'error', code: 'CONFIG_KEY_DUPLICATE', text, offset: keyOffset })
    }
    seen.add(key)
    if (key === 'mcpServers' && value !== undefined) {
      if (value.type === 'object') servers.push(...propertiesOf(value))
      else {
        const text = `"mcpServers" must be an object of servers by name, not ${kindOf(value)}.`
        problems.report({ severity: 'error', code: 'CONFIG_SHAPE', text, offset: value.offset })
      }
    } else if (key !== '$schema' && key !== 'mcpServers') {
      const text = `${JSON.stringify(shorten(key))} is not a known key and is ignored.${rootHint(key)}`
      problems.report({ severity: 'warning', code: 'CONFIG_KEY_UNKNOWN', text, offset: keyOffset })
    }
  }
  return servers
}

function rootHint(key: string): string {
  if (!FOREIGN_ROOTS.has(key)) return didYouMean(key, ['mcpServers', '$schema'], 1)
  return ' Another client keeps its servers there; Convoke reads "mcpServers".'
}

const FOREIGN_ROOTS: ReadonlySet<string> = new Set(['servers', 'context_servers', 'mcp', 'mcp_servers'])

/** Faults inside an entry are reported with it; these stand between entries or around them. */
function reportFaults({ document, problems }: EntryContext, entries: readonly Property[]): void {
  const inside = new Set(entries.flatMap(({ value }) => (value ? faultsWithin(document, value) : [])))
  for (const fault of document.faults) {
    if (inside.has(fault)) continue
    const text = `cannot be read as JSON: ${fault.reason}.`
    problems.report({ severity: 'error', code: 'CONFIG_SYNTAX', text, offset: fault.offset })
  }
}

/** Names that a person cannot tell apart, whatever file they stand in. */
function lookAlikes(definitions: readonly ServerDefinition[]): ConfigProblem[] {
  const seen = new Map<string, string>()
  return definitions.flatMap(({ name, source }) => {
    const skeleton = nameSkeleton(name)
    const twin = seen.get(skeleton)
    if (twin === undefined) {
      seen.set(skeleton, name)
      return []
    }
    const { file = '', line = 0, column = 0 } = source
    const text = `looks like the server ${JSON.stringify(twin)}. Rename one of them.`
    const message = `${file}:${line}:${column}: server ${JSON.stringify(name)}: ${text}`
    return [{ severity: 'warning', code: 'CONFIG_NAME_LOOKALIKE', message, file, line, column, server: name } as const]
  })
}
