// `convoke plan`: what a configuration would do to the servers. Nothing is started, and nobody is asked anything.
import { resolve } from 'node:path'
import { cleanLine, type LoadedConfig, loadConfig, type PlannedServer, type ServerDefinition } from '@convoke/host'
import { CommandError } from '../command-error.ts'
import { isUnusable, pathsOf, requireServers, tellProblems } from '../configuration.ts'
import { openPlanner } from '../connect.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { planReason } from '../plan-text.ts'
import { defined } from '../report.ts'
import { type Piece, styled, type Terminal } from '../terminal.ts'
import { NOTHING_CONFIGURED } from './tools.ts'

const STYLES: Readonly<Record<PlannedServer['action'], 'green' | 'yellow' | 'red' | 'dim' | 'cyan'>> = {
  reuse: 'green',
  adopt: 'green',
  'keep-auth-failure': 'yellow',
  start: 'cyan',
  defer: 'dim',
  hold: 'dim',
  retire: 'red',
}

/** `convoke plan`: of starting the configuration, or with --config of changing to another one. */
export async function runPlan(context: CommandContext): Promise<ExitCode> {
  const { options, terminal, signal } = context
  const present = await load(context, pathsOf(context).configFile)
  const next = options.config === undefined ? present : await load(context, options.config)
  const running = options.config === undefined ? undefined : present.definitions
  const { definitions, problems, files } = next
  const isWanted = (name: string): boolean => options.server.length === 0 || options.server.includes(name)
  requireServers(options.server, { definitions: [...definitions, ...(running ?? [])] })
  tellProblems(
    context,
    problems.filter(({ server }) => server === undefined || isWanted(server)),
  )
  await using planner = await openPlanner(context)
  const planned = await planner.plan(definitions, { signal, ...(running === undefined ? {} : { running }) })
  const rows = planned.filter(({ server }) => isWanted(server))
  if (options.json) {
    terminal.json({
      version: JSON_VERSION,
      change: running !== undefined,
      servers: rows.map((row) => planRow(row, definitions)),
      files,
      problems,
    })
  } else printPlan(terminal, rows, definitions)
  return isUnusable(next) ? EXIT.configuration : EXIT.ok
}

/** @throws {CommandError} exit code 4 when the file of --config cannot be used at all. */
async function load({ env, options }: CommandContext, path: string): Promise<LoadedConfig> {
  // Whatever stands in it counts as if it stood in the own file: that is what it would be.
  const loaded = await loadConfig({ files: [{ path, layer: 'user' }], env })
  if (path !== options.config) return loaded
  const absolute = resolve(path)
  const isFound = loaded.files.some((file) => file.path === absolute && file.found)
  const fatal = loaded.problems.find(({ severity, line }) => severity === 'error' && line === 0)
  if (fatal !== undefined) throw new CommandError(EXIT.configuration, fatal.code, fatal.message)
  if (!isFound) throw new CommandError(EXIT.configuration, 'CONFIG_FILE_NOT_FOUND', `${absolute}: does not exist.`)
  return loaded
}

/** One server, as `plan` shows it. */
function planRow(
  { server, action, because, changed }: PlannedServer,
  definitions: readonly ServerDefinition[],
): object {
  const definition = definitions.find(({ name }) => name === server)
  const problem = definition?.problem
  return {
    name: server,
    ...{ action, because, changed },
    ...defined({ problem: problem && { code: problem.code, message: problem.message } }),
  }
}

function printPlan(terminal: Terminal, rows: readonly PlannedServer[], definitions: readonly ServerDefinition[]): void {
  if (rows.length === 0) {
    terminal.notice(NOTHING_CONFIGURED)
    return
  }
  const width = Math.min(32, Math.max(...rows.map(({ server }) => cleanLine(server).length)))
  const verbs = Math.max(...rows.map(({ action }) => action.length))
  for (const row of rows) {
    const definition = definitions.find(({ name }) => name === row.server)
    terminal.print(
      styled('bold', cleanLine(row.server).padEnd(width)),
      '  ',
      actionText(row, verbs),
      '  ',
      cleanLine(planReason(row, definition), 400),
    )
  }
}

const actionText = ({ action }: PlannedServer, width: number): Piece => styled(STYLES[action], action.padEnd(width))
