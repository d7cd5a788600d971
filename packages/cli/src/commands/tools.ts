import { type CatalogTool, cleanLine, type ServerStatus } from '@convoke/host'
import { openView } from '../connect.ts'
import type { CommandContext } from '../context.ts'
import type { ExitCode } from '../exit-codes.ts'
import { toolsReport } from '../report.ts'
import { stateText, tellAbsent, tellNotes } from '../server-lines.ts'
import { signatureOf } from '../signature.ts'
import { styled, type Terminal } from '../terminal.ts'

/** Longest description on one line, in characters. */
const DESCRIPTION_CHARS_MAX = 160

/** `convoke tools`: every tool of every server that answers in time, and why the others do not. */
export async function runTools(context: CommandContext): Promise<ExitCode> {
  const { options, terminal } = context
  await using view = await openView(context)
  const { binding, statuses } = view
  const tools = binding.tools.filter((tool) => view.showsToolsOf(tool.server))
  const notes = binding.notes.filter(({ server }) => view.showsToolsOf(server))
  if (options.json) terminal.json(toolsReport({ revision: binding.revision, notes, tools, statuses }))
  else {
    printTools(terminal, tools, statuses)
    if (statuses.length === 0) terminal.notice(NOTHING_CONFIGURED)
  }
  tellNotes(terminal, notes)
  tellAbsent(terminal, view.absent)
  return view.exitCode()
}

/** What a listing says when there is nothing to list. */
export const NOTHING_CONFIGURED =
  'No server is configured. Add one: convoke add NAME -- COMMAND ARGS, or convoke add NAME --url URL. Or try the sample servers: convoke serve.'

/** Tools by server, each as a line that `convoke call` understands, with its description below. */
export function printTools(terminal: Terminal, tools: readonly CatalogTool[], statuses: readonly ServerStatus[]): void {
  const byServer = new Map<string, CatalogTool[]>()
  for (const tool of tools) byServer.set(tool.server, [...(byServer.get(tool.server) ?? []), tool])
  let isFirst = true
  for (const status of statuses) {
    const own = byServer.get(status.name) ?? []
    if (own.length === 0 && status.state !== 'ready') continue
    if (!isFirst) terminal.print()
    isFirst = false
    const count = own.length === 1 ? '1 tool' : `${own.length} tools`
    terminal.print(styled('bold', cleanLine(status.name)), styled('dim', ` · ${count} · `), stateText(status.state))
    for (const tool of own) printTool(terminal, tool)
  }
}

function printTool(terminal: Terminal, tool: CatalogTool): void {
  const address = cleanLine(`${tool.server}/${tool.rawName}`, 200)
  const stale = tool.state === 'cached' ? [styled('dim', ' (from the cache)')] : []
  terminal.print('  ', styled('cyan', address), cleanLine(signatureOf(tool.inputSchema), 700), ...stale)
  const text = cleanLine(tool.description ?? tool.title ?? '', DESCRIPTION_CHARS_MAX)
  if (text !== '') terminal.print('      ', styled('dim', text))
}
