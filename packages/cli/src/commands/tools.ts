import { type CatalogTool, cleanLine, type ServerLife, type ServerStatus } from '@convoke/host'
import { openView } from '../connect.ts'
import type { CommandContext } from '../context.ts'
import type { ExitCode } from '../exit-codes.ts'
import { toolsReport } from '../report.ts'
import { cachedText, stateText, tellAbsent, tellNotes } from '../server-lines.ts'
import { signatureOf } from '../signature.ts'
import { styled, type Terminal } from '../terminal.ts'

/** Longest description on one line, in characters. */
const DESCRIPTION_CHARS_MAX = 160

/** What the listings of servers and of their tools take. */
export interface ListingCommandOptions {
  /** `--live`: also servers whose tools are known are started. */
  readonly live?: boolean
}

/** `convoke tools`: every tool of every server that is known or answers in time, and why the others do not. */
export async function runTools(
  context: CommandContext,
  { live = false }: ListingCommandOptions = {},
): Promise<ExitCode> {
  const { options, terminal } = context
  await using view = await openView(context, live ? 'live' : 'tools')
  const { binding, statuses, lives } = view
  const tools = binding.tools.filter((tool) => view.showsToolsOf(tool.server))
  const notes = binding.notes.filter(({ server }) => view.showsToolsOf(server))
  if (options.json) terminal.json(toolsReport({ revision: binding.revision, notes, tools, statuses, lives }))
  else {
    printTools(terminal, tools, { statuses, lives })
    if (statuses.length === 0) terminal.notice(NOTHING_CONFIGURED)
  }
  tellNotes(terminal, notes)
  tellAbsent(terminal, view.absent)
  return view.exitCode()
}

/** What a listing says when there is nothing to list. */
export const NOTHING_CONFIGURED =
  'No server is configured. Add one: convoke add NAME -- COMMAND ARGS, or convoke add NAME --url URL. Or try the sample servers: convoke serve.'

/** The servers behind a listing. */
export interface ListedServers {
  readonly statuses: readonly ServerStatus[]
  /** What is known of each. */
  readonly lives?: ReadonlyMap<string, ServerLife>
}

/** Tools by server, each as a line that `convoke call` understands, with its description below. */
export function printTools(
  terminal: Terminal,
  tools: readonly CatalogTool[],
  { statuses, lives }: ListedServers,
): void {
  const byServer = new Map<string, CatalogTool[]>()
  for (const tool of tools) byServer.set(tool.server, [...(byServer.get(tool.server) ?? []), tool])
  let isFirst = true
  for (const status of statuses) {
    const own = byServer.get(status.name) ?? []
    if (own.length === 0 && status.state !== 'ready') continue
    if (!isFirst) terminal.print()
    isFirst = false
    printHead(terminal, status, { count: own.length, life: lives?.get(status.name) })
    for (const tool of own) printTool(terminal, tool)
  }
}

interface HeadFacts {
  /** Tools that follow. */
  readonly count: number
  readonly life: ServerLife | undefined
}

function printHead(terminal: Terminal, status: ServerStatus, { count, life }: HeadFacts): void {
  const cached = life === undefined ? undefined : cachedText(life, Date.now())
  terminal.print(
    styled('bold', cleanLine(status.name)),
    styled('dim', ` · ${count === 1 ? '1 tool' : `${count} tools`} · `),
    stateText(status.state),
    ...(cached === undefined ? [] : [styled('dim', ` · ${cached}`)]),
  )
}

function printTool(terminal: Terminal, tool: CatalogTool): void {
  const address = cleanLine(`${tool.server}/${tool.rawName}`, 200)
  terminal.print('  ', styled('cyan', address), cleanLine(signatureOf(tool.inputSchema), 700))
  const text = cleanLine(tool.description ?? tool.title ?? '', DESCRIPTION_CHARS_MAX)
  if (text !== '') terminal.print('      ', styled('dim', text))
}
