// add, list, get, remove: the entries of the configuration. Nothing is started here; what is added may be asked whether it wants a sign-in.

import { resolve } from 'node:path'
import {
  addServer,
  type ConfigEntry,
  checkServer,
  cleanLine,
  type DefinitionSource,
  type JsonObject,
  type LoadedConfig,
  namesSecret,
  removeServer,
  type ServerDefinition,
  secretsInArguments,
  secretsInUrl,
} from '@convoke/host'
import { readJsonObject } from '../call-arguments.ts'
import { usageError } from '../command-error.ts'
import { configFiles, isUnusable, readConfiguration, requireServers } from '../configuration.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { askAboutSignIn, offerSignIn } from '../new-server.ts'
import { defined } from '../report.ts'
import { shellWord } from '../shell-word.ts'
import { isRecord } from '../signature.ts'
import { type Piece, styled, type Terminal } from '../terminal.ts'

/** What stands in place of a value that may be a secret. */
const HIDDEN = '<hidden>'

/** What `convoke add` takes besides the name. */
export interface AddCommandOptions {
  readonly url?: string
  readonly entry?: string
  readonly env?: readonly string[]
  readonly envVar?: readonly string[]
  readonly header?: readonly string[]
  readonly bearerTokenEnvVar?: string
  readonly cwd?: string
  readonly replace?: boolean
  /** `--no-probe` makes it false. */
  readonly probe?: boolean
}

/** `convoke add`: writes one entry into the user's file, or into the one of --config. */
export async function runAdd(
  context: CommandContext,
  name: string,
  words: readonly string[],
  options: AddCommandOptions,
): Promise<ExitCode> {
  const entry = entryOf(words, options)
  const problems = checkServer(name, entry, { env: context.env })
  const faults = problems.filter(({ severity, code }) => severity === 'error' && !MENDED_LATER.has(code))
  if (faults.length > 0) throw usageError(faults.map(({ message }) => shorn(message)).join('\n'))
  for (const { message } of problems) context.terminal.notice(styled('yellow', 'warning: '), shorn(message))
  for (const place of openSecrets(entry)) {
    const advice = `is written into the file in the open; a reference such as \${NAME} keeps it out`
    context.terminal.notice(styled('yellow', 'warning: '), `${cleanLine(place)} ${advice}`)
  }
  const file = targetFile(context)
  await addServer(file, name, entry, { replace: options.replace === true })
  const { json } = context.options
  if (!json) context.terminal.print('Added ', styled('bold', cleanLine(name)), ` to ${cleanLine(file, 400)}`)
  const wantsSignIn = options.probe === false ? undefined : await askAboutSignIn(context, name)
  if (json) context.terminal.json({ version: JSON_VERSION, added: name, file, ...defined({ wantsSignIn }) })
  if (wantsSignIn === true) await offerSignIn(context, name)
  if (!json) context.terminal.notice(styled('dim', `Try it: convoke tools --server ${shellWord(name)}`))
  return EXIT.ok
}

/** What is only wrong here and now; the entry is right where the variable is set. */
const MENDED_LATER: ReadonlySet<string> = new Set(['CONFIG_VARIABLE_MISSING', 'CONFIG_INPUT_NEEDED'])

/** The entry has no file yet, so its message does not name one. */
const shorn = (message: string): string => message.replace(/^new entry: /, '')

/** The file that add and remove change. */
function targetFile(context: CommandContext): string {
  return resolve(configFiles(context).at(-1)?.path ?? '')
}

function entryOf(words: readonly string[], options: AddCommandOptions): JsonObject {
  const { entry, url, env = [], envVar = [], header = [], bearerTokenEnvVar, cwd } = options
  const ways = [words.length > 0, url !== undefined, entry !== undefined].filter(Boolean).length
  if (ways !== 1) {
    throw usageError(
      'Give exactly one of: a command behind --, --url URL, or --entry JSON. For example: convoke add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs',
    )
  }
  if (entry !== undefined) return readJsonObject(entry, '--entry')
  if (url !== undefined) {
    if (env.length + envVar.length > 0 || cwd !== undefined)
      throw usageError('--env, --env-var and --cwd are for servers with a command.')
    return {
      url,
      ...(header.length === 0 ? {} : { headers: pairsOf(header, '--header') }),
      ...defined({ bearerTokenEnvVar }),
    }
  }
  if (header.length > 0 || bearerTokenEnvVar !== undefined)
    throw usageError('--header and --bearer-token-env-var are for servers with an address.')
  const [command, ...args] = words
  return {
    command,
    ...(args.length === 0 ? {} : { args }),
    ...(env.length === 0 ? {} : { env: pairsOf(env, '--env') }),
    ...(envVar.length === 0 ? {} : { envVars: [...envVar] }),
    ...defined({ cwd }),
  }
}

function pairsOf(pairs: readonly string[], option: string): JsonObject {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at <= 0) throw usageError(`${option} takes NAME=VALUE.`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

/** Names whose literal value looks like a secret. */
function openSecrets(entry: JsonObject): string[] {
  return ['env', 'headers'].flatMap((field) => {
    const map = entry[field]
    if (!isRecord(map)) return []
    return Object.entries(map)
      .filter(
        ([name, value]) => namesSecret(name) && typeof value === 'string' && value !== '' && !value.includes('${'),
      )
      .map(([name]) => `${field}.${name}`)
  })
}

/** `convoke remove`: takes one entry out of the user's file, or out of the one of --config. */
export async function runRemove(context: CommandContext, name: string): Promise<ExitCode> {
  const file = targetFile(context)
  if (!(await removeServer(file, name))) {
    const loaded = await readConfiguration(context, [])
    requireServers([name], loaded)
    const other = loaded.entries.find((entry) => entry.name === name)?.source.file ?? ''
    throw usageError(`${JSON.stringify(name)} is not in ${file} but in ${other}. Name that file with --config.`)
  }
  if (context.options.json) context.terminal.json({ version: JSON_VERSION, removed: name, file })
  else context.terminal.print('Removed ', styled('bold', cleanLine(name)), ` from ${cleanLine(file, 400)}`)
  return EXIT.ok
}

/** `convoke list`: every configured server and where it comes from. */
export async function runList(context: CommandContext): Promise<ExitCode> {
  const { terminal, options } = context
  const loaded = await readConfiguration(context)
  if (options.json) {
    terminal.json({
      version: JSON_VERSION,
      servers: pairsIn(loaded).map(([definition, entry]) => entryRow(definition, entry)),
      files: loaded.files,
      problems: loaded.problems,
    })
  } else printList(context, loaded)
  return isUnusable(loaded) ? EXIT.configuration : EXIT.ok
}

/** `convoke get`: one entry, with what is in force for it. */
export async function runGet(context: CommandContext, name: string): Promise<ExitCode> {
  const { terminal, options } = context
  const loaded = await readConfiguration(context, [name])
  requireServers([name], loaded)
  const pair = pairsIn(loaded).find(([definition]) => definition.name === name)
  if (pair === undefined) throw usageError(`There is no server ${JSON.stringify(name)}.`)
  const [definition, entry] = pair
  const shown = { ...entryRow(definition, entry), entry: withoutSecrets(entry.value), settings: settingsOf(definition) }
  if (options.json) {
    terminal.json({ version: JSON_VERSION, server: shown })
    return EXIT.ok
  }
  const { file = '', line = 0 } = definition.source
  terminal.print(styled('bold', cleanLine(name)), styled('dim', `  ${cleanLine(file, 400)}:${line}`))
  for (const [key, value] of Object.entries(shown.entry))
    terminal.print(`  ${cleanLine(key)}: ${JSON.stringify(value)}`)
  terminal.print(styled('dim', '  in force:'))
  for (const [key, value] of Object.entries(shown.settings)) {
    terminal.print(styled('dim', `  ${cleanLine(key)}: ${JSON.stringify(value)}`))
  }
  if (definition.problem !== undefined) terminal.print(styled('red', '  not used: '), definition.problem.message)
  return EXIT.ok
}

function pairsIn({ definitions, entries }: LoadedConfig): (readonly [ServerDefinition, ConfigEntry])[] {
  return definitions.flatMap((definition, index) => {
    const entry = entries[index]
    return entry === undefined ? [] : [[definition, entry] as const]
  })
}

function entryRow({ name, enabled, source, problem }: ServerDefinition, { value }: ConfigEntry): JsonObject {
  return {
    name,
    enabled,
    transport: transportOf(value),
    source: { layer: source.layer, ...defined({ file: source.file, line: source.line, column: source.column }) },
    ...defined({ problem: problem && { code: problem.code, message: problem.message } }),
  }
}

/** From the file and not from the definition: nothing that a variable put in is shown. */
function transportOf(value: JsonObject): JsonObject {
  const { command, args, url } = withoutSecrets(value)
  if (command !== undefined) return { type: 'stdio', command, ...defined({ args }) }
  const address = url ?? value['httpUrl'] ?? value['serverUrl'] ?? value['baseUrl']
  return address === undefined ? { type: 'none' } : { type: 'http', url: address }
}

function settingsOf(definition: ServerDefinition): JsonObject {
  const { enabled, required, startup, startupTimeoutMs, installTimeoutMs, toolTimeoutMs, toolTotalTimeoutMs } =
    definition
  const { messageBytesMax, approvalMode, isolation, trustAnnotations } = definition
  return {
    ...{ enabled, required, startup, startupTimeoutMs, installTimeoutMs, toolTimeoutMs, toolTotalTimeoutMs },
    ...{ messageBytesMax, approvalMode, isolation, trustAnnotations },
  }
}

/** The entry as it stands in the file, with literal values of env and headers hidden; references to variables stay. */
function withoutSecrets(value: JsonObject): JsonObject {
  const hide = (map: unknown): unknown =>
    isRecord(map)
      ? Object.fromEntries(
          Object.entries(map).map(([name, text]) => [
            name,
            typeof text === 'string' && isReference(text) ? text : HIDDEN,
          ]),
        )
      : map
  return Object.fromEntries(
    Object.entries(value).map(([key, member]): [string, unknown] => {
      if (key === 'env' || key === 'headers' || key === 'environment') return [key, hide(member)]
      if (/^(bearer_?token|clientSecret)$/i.test(key)) return [key, HIDDEN]
      if (key === 'oauth' && isRecord(member) && 'clientSecret' in member)
        return [key, { ...member, clientSecret: HIDDEN }]
      if (typeof member === 'string' && /url$/i.test(key))
        return [key, withoutUserInfo(hidden(member, secretsInUrl(member)))]
      if (key === 'args' && Array.isArray(member)) return [key, withoutArgumentSecrets(member)]
      return [key, member]
    }),
  )
}

/** `Bearer ${TOKEN}` is a reference; a value with more letters of its own than a scheme is not. */
const isReference = (text: string): boolean => /^([A-Za-z]{0,10} ?)?\$\{[^}]*\}$/.test(text) && !/:-./.test(text)

/** `text` with each of `secrets` hidden; references to variables stay. */
function hidden(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => !isReference(secret))
    .reduce((left, secret) => left.replaceAll(secret, HIDDEN), text)
}

function withoutArgumentSecrets(args: readonly unknown[]): unknown[] {
  const secrets = secretsInArguments(args.map((arg) => (typeof arg === 'string' ? arg : '')))
  return args.map((arg) => (typeof arg === 'string' ? hidden(arg, secrets) : arg))
}

const withoutUserInfo = (url: string): string => url.replace(/^([^/?#]*:\/\/)[^/?#]*@/, `$1${HIDDEN}@`)

function tellEmpty(terminal: Terminal, { files }: LoadedConfig): void {
  terminal.notice('No server is configured. Add one: convoke add NAME -- COMMAND ARGS, or convoke add NAME --url URL.')
  for (const { path, found } of files)
    terminal.notice(styled('dim', `  ${found ? 'read' : 'not there'}: ${cleanLine(path, 400)}`))
}

function printList({ terminal }: CommandContext, loaded: LoadedConfig): void {
  const pairs = pairsIn(loaded)
  if (pairs.length === 0) {
    tellEmpty(terminal, loaded)
    return
  }
  const width = Math.min(32, Math.max(...pairs.map(([{ name }]) => cleanLine(name).length)))
  const origins = Math.max(...pairs.map(([{ source }]) => originOf(source).length))
  for (const [definition, { value }] of pairs) {
    const target = targetText(transportOf(value))
    terminal.print(
      styled('bold', cleanLine(definition.name).padEnd(width)),
      '  ',
      stateOf(definition),
      '  ',
      styled('dim', originOf(definition.source).padEnd(origins)),
      ...(target === '' ? [] : ['  ', cleanLine(target, 120)]),
    )
  }
  for (const { path, layer, found } of loaded.files) {
    terminal.notice(styled('dim', `${found ? 'read' : 'not there'}: ${cleanLine(path, 400)} (${layer})`))
  }
}

/** The command line, or the address. */
function targetText({ command, args, url }: JsonObject): string {
  const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => word !== undefined)
  return words.length > 0 ? words.map((word) => shellWord(String(word))).join(' ') : String(url ?? '')
}

/** Layer and line; the files of the layers are named below the list. */
const originOf = ({ layer, line }: DefinitionSource): string => (line === undefined ? layer : `${layer}:${line}`)

function stateOf({ enabled, problem }: ServerDefinition): Piece {
  if (!enabled) return styled('dim', 'disabled')
  return problem === undefined ? styled('green', 'enabled ') : styled('red', 'not used')
}
