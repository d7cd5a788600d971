// `convoke auth status`: whose credentials each server sees. No server is started, nothing is renewed, and nobody is asked without --probe.
import { cleanLine, type Host, HostError, type SignInStatus } from '@convoke/host'
import { isUnusable, placesOf, readConfiguration, requireServers } from '../configuration.ts'
import { openHost } from '../connect.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { defined } from '../report.ts'
import { placeText } from '../sign-in-here.ts'
import { MODES, needsNoSignIn, type SignInColumns, signInColumns, signInRemarks, signInStep } from '../sign-in-lines.ts'
import { type CredentialsStore, signInSettings } from '../sign-in-settings.ts'
import { type Piece, styled, type Terminal } from '../terminal.ts'
import { NOTHING_CONFIGURED } from './tools.ts'

/** What `convoke auth status` takes. */
export interface AuthStatusOptions {
  /** Servers that nobody is signed in to are asked whether they want that, and the keyring is tried. */
  readonly probe?: boolean
  /** Servers that need no sign-in are rows, too. */
  readonly all?: boolean
}

/** `convoke auth status`. */
export async function runAuthStatus(
  context: CommandContext,
  { probe = false, all = false }: AuthStatusOptions,
): Promise<ExitCode> {
  const { options, terminal, signal } = context
  const wanted = options.server.length > 0 ? options.server : undefined
  const loaded = await readConfiguration(context, wanted)
  requireServers(options.server, loaded)
  const { store: mode } = signInSettings(context, await placesOf(context))
  await using host = await openHost(context, loaded, { start: [] })
  const names = wanted === undefined ? {} : { servers: wanted }
  const [statuses, destination] = await Promise.all([
    host.signInStatuses({ ...names, probe, signal }),
    probe ? triedDestination(host) : undefined,
  ])
  if (options.json) {
    const servers = statuses.map((status) => ({ ...status, ...defined({ nextStep: signInStep(status, mode) }) }))
    terminal.json({ version: JSON_VERSION, store: { mode, ...destination }, servers })
  } else if (statuses.length === 0) terminal.notice(NOTHING_CONFIGURED)
  else printStatuses(terminal, statuses, { mode, destination, all })
  return isUnusable(loaded) ? EXIT.configuration : EXIT.ok
}

/** Where a new sign-in would go, tried; `because` without `kind`: nowhere. */
type Destination = { readonly kind?: 'keyring' | 'file' | 'memory'; readonly because: string }

async function triedDestination(host: Host): Promise<Destination> {
  try {
    return await host.signInStore()
  } catch (error) {
    if (!HostError.is(error, 'CREDENTIALS_UNAVAILABLE')) throw error
    return { because: error.message }
  }
}

interface StatusFacts {
  readonly mode: CredentialsStore
  readonly destination: Destination | undefined
  readonly all: boolean
}

function printStatuses(terminal: Terminal, statuses: readonly SignInStatus[], { mode, destination, all }: StatusFacts) {
  terminal.print(styled('dim', destinationText(mode, destination)))
  const rows = statuses.filter((status) => all || !needsNoSignIn(status))
  if (rows.length > 0) {
    terminal.print()
    printTable(terminal, rows, mode)
  }
  const others = statuses.filter((status) => !rows.includes(status))
  if (others.length === 0) return
  terminal.print()
  terminal.print(styled('dim', `No sign-in: ${others.map(otherText).join(', ')}`))
}

function destinationText(mode: CredentialsStore, destination: Destination | undefined): string {
  if (destination === undefined) return `New sign-ins go to ${MODES[mode]}.`
  const { kind, because } = destination
  const reason = cleanLine(because, 300)
  return kind === undefined
    ? `New sign-ins cannot be kept: ${reason}.`
    : `New sign-ins go to ${placeText(kind)}: ${reason}.`
}

function otherText({ server, state, because }: SignInStatus): string {
  const why = state === 'open' ? 'it wants none' : state === 'account' ? 'it sees your account' : because
  return why === undefined ? cleanLine(server) : `${cleanLine(server)} (${cleanLine(why, 120)})`
}

const HEADS = { server: 'SERVER', state: 'STATE', subject: 'SIGNED IN AS', expires: 'EXPIRES', renewed: 'RENEWED' }
const LAST_HEAD = 'STORE'

function printTable(terminal: Terminal, rows: readonly SignInStatus[], mode: CredentialsStore): void {
  const nowMs = Date.now()
  const columns = rows.map((status) => signInColumns(status, nowMs))
  const width = (name: keyof typeof HEADS): number =>
    Math.max(HEADS[name].length, ...columns.map((row) => textOf(row[name]).length))
  const widths = Object.fromEntries(NAMES.map((name) => [name, width(name)]))
  const line = (cells: Readonly<Record<keyof typeof HEADS, Piece>>, last: Piece): void =>
    terminal.print(...NAMES.flatMap((name) => padded(cells[name], (widths[name] ?? 0) + 2)), last)
  line({ ...dimmed(HEADS) }, styled('dim', LAST_HEAD))
  for (const [index, row] of columns.entries()) {
    line({ ...row, server: styled('bold', row.server) }, row.store)
    const status = rows[index]
    if (status === undefined) continue
    for (const remark of signInRemarks(status)) terminal.print('  ', remark)
    const step = signInStep(status, mode)
    if (step !== undefined) terminal.print('  → ', styled('cyan', step))
  }
}

const NAMES = Object.keys(HEADS) as (keyof typeof HEADS)[]

const textOf = (piece: Piece): string => (typeof piece === 'string' ? piece : piece.text)

/** The space is outside of the style. */
function padded(piece: Piece, width: number): readonly Piece[] {
  return [piece, ' '.repeat(Math.max(0, width - textOf(piece).length))]
}

function dimmed(heads: typeof HEADS): Record<keyof typeof HEADS, Piece> & Pick<SignInColumns, never> {
  return {
    server: styled('dim', heads.server),
    state: styled('dim', heads.state),
    subject: styled('dim', heads.subject),
    expires: styled('dim', heads.expires),
    renewed: styled('dim', heads.renewed),
  }
}
