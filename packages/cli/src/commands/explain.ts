// `convoke explain`: why a server or a tool is as it is.
import {
  type ConfigEntry,
  cleanLine,
  closestNames,
  type Host,
  type LoadedConfig,
  loadConfig,
  type PlannedServer,
  type ServerLife,
  type ToolLife,
} from '@convoke/host'
import { addressedServers } from '../address.ts'
import { CommandError } from '../command-error.ts'
import { pathsOf, readConfiguration, requireServers, unknownServer } from '../configuration.ts'
import { openHost, openPlanner, settle, sleepersFor } from '../connect.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type ExplainedLine, nextStep, placeText, serverLines, toolLines, wrapText } from '../explanation.ts'
import { planReason } from '../plan-text.ts'
import { defined, isoTime, statusRow } from '../report.ts'
import { styled, type Terminal } from '../terminal.ts'

/** What `convoke explain` takes besides the name. */
export interface ExplainCommandOptions {
  /** False with `--no-start`. */
  readonly start?: boolean
}

/** Everything that a name means. */
interface Meanings {
  readonly server: ServerMeaning | undefined
  readonly tools: readonly ToolLife[]
}
interface ServerMeaning {
  readonly life: ServerLife
  readonly plan: PlannedServer | undefined
  readonly reason: string | undefined
  readonly shadowed: readonly ConfigEntry[]
}

/** `convoke explain`: tells everything that the name may mean. */
export async function runExplain(
  context: CommandContext,
  name: string,
  { start = true }: ExplainCommandOptions,
): Promise<ExitCode> {
  const { options, terminal } = context
  const loaded = await readConfiguration(context, [])
  requireServers(options.server, loaded)
  const names = options.server.length > 0 ? options.server : loaded.definitions.map((one) => one.name)
  if (names.length === 0) throw unknownServer(`Nobody knows ${JSON.stringify(name)}.`, '', names)
  const candidates = names.includes(name) ? [name] : (addressedServers(name, names) ?? names)
  await using host = await openHost(context, loaded, { start: [] })
  const { definitions } = loaded
  await settle(context, host, start ? sleepersFor('unknown', candidates, { host, definitions }) : [])
  const meanings = await meaningsOf(context, name, { host, loaded })
  if (meanings.server === undefined && meanings.tools.length === 0)
    throw await unknownName(name, { host, names, unheard: sleepersFor('unknown', candidates, { host, definitions }) })
  if (options.json) terminal.json({ version: JSON_VERSION, name, ...meaningRows(meanings) })
  else printMeanings(terminal, name, meanings)
  return EXIT.ok
}

interface ExplainFacts {
  readonly host: Host
  readonly loaded: LoadedConfig
}

async function meaningsOf(context: CommandContext, name: string, { host, loaded }: ExplainFacts): Promise<Meanings> {
  const { server: life, tools } = host.explain(name)
  return {
    server: life === undefined ? undefined : await serverMeaning(context, life, loaded),
    tools: tools.filter((tool) => isKnown(tool, host.serverLife(tool.server))),
  }
}

/** `SERVER/TOOL` names a server; whether there is such a tool is another matter once its tools are known. */
function isKnown(tool: ToolLife, server: ServerLife | undefined): boolean {
  if (tool.shownAs !== undefined || tool.visibility !== 'unknown') return true
  if (server === undefined || server.tools.from === 'nowhere') return true
  return server.notes.some(({ item }) => item === tool.rawName)
}

async function serverMeaning(
  context: CommandContext,
  life: ServerLife,
  { definitions }: LoadedConfig,
): Promise<ServerMeaning> {
  const { name } = life.status
  await using planner = await openPlanner(context)
  const planned = await planner.plan(definitions, { signal: context.signal })
  const plan = planned.find(({ server }) => server === name)
  const definition = definitions.find((one) => one.name === name)
  return {
    life,
    plan,
    reason: plan === undefined ? undefined : planReason(plan, definition),
    shadowed: await shadowedEntries(context, name),
  }
}

/** An entry of the own file that --config replaces. */
async function shadowedEntries(context: CommandContext, name: string): Promise<readonly ConfigEntry[]> {
  if (context.options.config === undefined) return []
  const [own, given] = await Promise.all([
    loadConfig({ files: [{ path: pathsOf(context).configFile, layer: 'user' }], env: context.env }),
    loadConfig({ files: [{ path: context.options.config, layer: 'flag' }], env: context.env }),
  ])
  const isReplaced = given.entries.some((entry) => entry.name === name)
  return isReplaced ? own.entries.filter((entry) => entry.name === name) : []
}

/** Most names that are suggested. */
const NEAR_MAX = 3

interface UnknownFacts {
  readonly host: Host
  readonly names: readonly string[]
  /** Servers that the name may belong to and whose tools nobody knows. */
  readonly unheard: readonly string[]
}

async function unknownName(name: string, { host, names, unheard }: UnknownFacts): Promise<CommandError> {
  await using binding = await host.bind({ grace: 'none' })
  const known = binding.tools.flatMap((tool) =>
    name.includes('/') ? [`${tool.server}/${tool.rawName}`] : [tool.name, tool.rawName],
  )
  const near = closestNames(name, new Set([...names, ...known]), NEAR_MAX).map((one) => JSON.stringify(one))
  const hint =
    near.length > 0 ? ` Did you mean ${near.join(' or ')}?` : ' convoke list and convoke tools show what there is.'
  const few = unheard.slice(0, NEAR_MAX).map((one) => JSON.stringify(one))
  const rest =
    few.length === 0
      ? ''
      : ` The tools of ${few.join(', ')}${unheard.length > few.length ? ' and others' : ''} are not known.`
  const isServer = addressedServers(name, names) === undefined && name.includes('/')
  const what = `No server and no tool is called ${JSON.stringify(name)}.`
  return new CommandError(EXIT.usage, isServer ? 'SERVER_UNKNOWN' : 'TOOL_UNKNOWN', what + rest + hint)
}

function meaningRows({ server, tools }: Meanings): object {
  return {
    ...defined({ server: server === undefined ? undefined : serverMeaningRow(server) }),
    tools: tools.map(toolMeaningRow),
  }
}

function serverMeaningRow({ life, plan, reason, shadowed }: ServerMeaning): object {
  const { status, declaredBy, environment, lastFailure, cache, tools, notes } = life
  return {
    ...statusRow(status, life),
    ...{ declaredBy, environment, tools, notes, cache: cacheRow(cache) },
    shadowed: shadowed.map(({ source }) => source),
    ...defined({
      nextStep: nextStep(status),
      plan: plan && { action: plan.action, because: plan.because, reason },
      lastFailure: lastFailure && {
        code: lastFailure.code,
        message: lastFailure.message,
        at: isoTime(lastFailure.atMs),
      },
    }),
  }
}

function cacheRow(cache: ServerLife['cache']): object {
  if (cache.kind !== 'kept') return cache
  const { kind, listedAtMs, staleBecause } = cache
  return { kind, listedAt: isoTime(listedAtMs), ...defined({ staleBecause }) }
}

function toolMeaningRow(life: ToolLife): object {
  const { server, rawName, declaredBy, shownAs, missingBecause, filter, visibility, omittedFrom } = life
  const { renamedBecause, connector, from, sinceAtMs, cache } = life
  return {
    ...{ server, rawName, declaredBy, filter, visibility, omittedFrom, from },
    ...defined({ shownAs, missingBecause, renamedBecause, connector }),
    ...defined({ since: sinceAtMs === undefined ? undefined : isoTime(sinceAtMs) }),
    cache:
      cache.kind === 'kept'
        ? { kind: cache.kind, listedAt: isoTime(cache.atMs), ...defined({ staleBecause: cache.staleBecause }) }
        : cache,
  }
}

/** Columns that an explanation takes at most. */
const COLUMNS_MAX = 80
/** Longest text of one line, in characters. */
const TEXT_CHARS_MAX = 600

function printMeanings(terminal: Terminal, name: string, { server, tools }: Meanings): void {
  const nowMs = Date.now()
  let isFirst = true
  const head = (title: string, what: string): void => {
    if (!isFirst) terminal.print()
    isFirst = false
    terminal.print(styled('bold', cleanLine(title)), styled('dim', what))
  }
  if (server !== undefined) {
    const { life, plan, reason, shadowed } = server
    head(name, ' · a server')
    printLines(
      terminal,
      serverLines({
        life,
        plan: plan === undefined || reason === undefined ? undefined : { row: plan, reason },
        shadowed: shadowed.map(({ source }) => placeText({ ...source, file: source.file ?? '' })),
        nowMs,
      }),
    )
  }
  for (const tool of tools) {
    head(`${tool.server}/${tool.rawName}`, ' · a tool')
    printLines(terminal, toolLines(tool, nowMs))
  }
}

function printLines(terminal: Terminal, lines: readonly ExplainedLine[]): void {
  const width = Math.max(...lines.map(([label]) => label.length))
  const columns = Math.min(terminal.columns, COLUMNS_MAX) - width - 4
  for (const [label, text] of lines) {
    const [first = '', ...rest] = wrapText(cleanLine(text, TEXT_CHARS_MAX), columns)
    terminal.print('  ', styled('dim', label.padEnd(width)), '  ', first)
    for (const line of rest) terminal.print(' '.repeat(width + 4), line)
  }
}
