import { cleanLine, type ServerLife, type ServerStatus } from '@convoke/host'
import { clockText } from '../age.ts'
import { openView } from '../connect.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import type { ExitCode } from '../exit-codes.ts'
import { statusRow } from '../report.ts'
import { cachedText, reasonOf, statusText, tellNotes } from '../server-lines.ts'
import { styled, type Terminal } from '../terminal.ts'
import { type ListingCommandOptions, NOTHING_CONFIGURED } from './tools.ts'

/** `convoke status`: the state of every server, with the reason when it is not ready. */
export async function runStatus(
  context: CommandContext,
  { live = false }: ListingCommandOptions = {},
): Promise<ExitCode> {
  const { options, terminal } = context
  await using view = await openView(context, live ? 'live' : 'tools')
  const { binding, statuses, lives } = view
  if (options.json) {
    const servers = statuses.map((status) => statusRow(status, lives.get(status.name)))
    terminal.json({ version: JSON_VERSION, servers })
  } else if (statuses.length === 0) terminal.notice(NOTHING_CONFIGURED)
  else for (const status of statuses) printStatus(terminal, status, { width: widest(statuses), lives })
  tellNotes(
    terminal,
    binding.notes.filter(({ server }) => view.showsToolsOf(server)),
  )
  return view.exitCode()
}

const widest = (statuses: readonly ServerStatus[]): number =>
  Math.min(32, Math.max(...statuses.map(({ name }) => cleanLine(name).length)))

interface StatusFacts {
  /** Of the names, in characters. */
  readonly width: number
  readonly lives: ReadonlyMap<string, ServerLife>
}

function printStatus(terminal: Terminal, status: ServerStatus, { width, lives }: StatusFacts): void {
  const { name, state, sinceAtMs } = status
  const label = cleanLine(name).padEnd(width)
  const since = `since ${clockText(sinceAtMs, Date.now())}`
  const isFine = state === 'ready' || state === 'dormant'
  const facts = isFine ? ` ${[...factsOf(status, lives.get(name)), since].join(' · ')}` : `(${since})`
  terminal.print(
    styled('bold', label),
    '  ',
    statusText(status),
    ...(isFine ? [] : reasonOf(status)),
    styled('dim', ` ${facts}`),
  )
}

function factsOf(status: ServerStatus, life: ServerLife | undefined): readonly string[] {
  const { transport, protocolVersion, toolCount = life?.tools.shown, pid, noiseCount = 0 } = status
  const cached = life === undefined ? undefined : cachedText(life, Date.now())
  return [
    transport,
    ...(protocolVersion === undefined ? [] : [protocolVersion]),
    ...(toolCount === undefined ? [] : [toolCount === 1 ? '1 tool' : `${toolCount} tools`]),
    ...(cached === undefined ? [] : [cached]),
    ...(pid === undefined ? [] : [`pid ${pid}`]),
    ...(noiseCount === 0
      ? []
      : [noiseCount === 1 ? '1 line of noise on stdout' : `${noiseCount} lines of noise on stdout`]),
  ]
}
