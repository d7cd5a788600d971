import { cleanLine, type ServerStatus } from '@convoke/host'
import { openView } from '../connect.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import type { ExitCode } from '../exit-codes.ts'
import { statusRow } from '../report.ts'
import { reasonOf, stateText, tellNotes } from '../server-lines.ts'
import { styled, type Terminal } from '../terminal.ts'
import { NOTHING_CONFIGURED } from './tools.ts'

/** `convoke status`: the state of every server, proven by starting it, with the reason when it is not ready. */
export async function runStatus(context: CommandContext): Promise<ExitCode> {
  const { options, terminal } = context
  await using view = await openView(context)
  const { binding, statuses } = view
  if (options.json) terminal.json({ version: JSON_VERSION, servers: statuses.map(statusRow) })
  else if (statuses.length === 0) terminal.notice(NOTHING_CONFIGURED)
  else for (const status of statuses) printStatus(terminal, status, widest(statuses))
  tellNotes(
    terminal,
    binding.notes.filter(({ server }) => view.showsToolsOf(server)),
  )
  return view.exitCode()
}

const widest = (statuses: readonly ServerStatus[]): number =>
  Math.min(32, Math.max(...statuses.map(({ name }) => cleanLine(name).length)))

function printStatus(terminal: Terminal, status: ServerStatus, width: number): void {
  const { name, state, transport, protocolVersion, toolCount, pid, noiseCount } = status
  const facts = [
    transport,
    ...(protocolVersion === undefined ? [] : [protocolVersion]),
    ...(toolCount === undefined ? [] : [toolCount === 1 ? '1 tool' : `${toolCount} tools`]),
    ...(pid === undefined ? [] : [`pid ${pid}`]),
    ...(noiseCount === undefined || noiseCount === 0
      ? []
      : [noiseCount === 1 ? '1 line of noise on stdout' : `${noiseCount} lines of noise on stdout`]),
  ]
  const label = cleanLine(name).padEnd(width)
  const isFine = state === 'ready' || state === 'dormant'
  const tail = isFine ? [styled('dim', `  ${facts.join(' · ')}`)] : reasonOf(status)
  terminal.print(styled('bold', label), '  ', stateText(state), ...tail)
}
