// Servers as lines for a person.

import type { CatalogNote, ServerLife, ServerState, ServerStatus } from '@convoke/host'
import { cleanLine } from '@convoke/host'
import { agoText } from './age.ts'
import { type Piece, styled, type Terminal } from './terminal.ts'

/** Longest reason on one line, in characters. */
const REASON_CHARS_MAX = 300
/** Most notes about tools that are written out. */
const NOTES_SHOWN_MAX = 20

const STYLES: Readonly<Record<ServerState, 'green' | 'yellow' | 'red' | 'dim' | 'cyan'>> = {
  ready: 'green',
  dormant: 'dim',
  starting: 'cyan',
  installing: 'cyan',
  'needs-auth': 'yellow',
  'needs-input': 'yellow',
  'needs-approval': 'yellow',
  failed: 'red',
  cancelled: 'red',
  disabled: 'dim',
}

/** A state in its colour. */
export function stateText(state: ServerState): Piece {
  return styled(STYLES[state], state)
}

/** The state of a server. One that its own entry keeps from being used is `not used`, wherever it is told of. */
export function statusText({ state, reason }: ServerStatus): Piece {
  return reason?.code === 'CONFIG_PROBLEM' ? styled('red', 'not used') : stateText(state)
}

/** `cached, 2 h ago`, with the reason if the tools may be others by now; undefined for tools of now. */
export function cachedText({ tools, cache }: ServerLife, nowMs: number): string | undefined {
  if (tools.from !== 'cached' || cache.kind !== 'kept') return undefined
  const { listedAtMs, staleBecause } = cache
  const text = `cached, ${agoText(listedAtMs, nowMs)}`
  return staleBecause === undefined ? text : `${text}, may be stale: ${staleBecause}`
}

/** Tells, on stderr, which servers are not in a listing and why. Faults of the configuration have been told before. */
export function tellAbsent(terminal: Terminal, absent: readonly ServerStatus[]): void {
  for (const status of absent) {
    if (status.reason?.code === 'CONFIG_PROBLEM') continue
    terminal.notice(
      styled('yellow', 'not available: '),
      cleanLine(status.name),
      ' (',
      stateText(status.state),
      ')',
      ...reasonOf(status),
    )
  }
}

/** What a person should look at; the rest was asked for, or only has another name. */
const TOLD: ReadonlySet<CatalogNote['kind']> = new Set(['rejected', 'cleaned', 'cut'])

/** Tells, on stderr, which tools were left out or changed, and why. What the configuration asked for needs no telling. */
export function tellNotes(terminal: Terminal, notes: readonly CatalogNote[]): void {
  const told = notes.filter(({ kind }) => TOLD.has(kind))
  for (const { server, item, kind, reason } of told.slice(0, NOTES_SHOWN_MAX)) {
    const what = kind === 'rejected' ? 'left out' : kind
    terminal.notice(styled('yellow', `${what}: `), cleanLine(`${server}/${item}`), ': ', cleanLine(reason))
  }
  if (told.length > NOTES_SHOWN_MAX) terminal.notice(`… and ${told.length - NOTES_SHOWN_MAX} more (all with --json)`)
}

/** The reason of a state, behind a colon. A command ends before a server would be started again, so it promises nothing. */
export function reasonOf({ reason, state }: ServerStatus): readonly Piece[] {
  if (state === 'starting' || state === 'installing') return [': still not ready; wait longer with --wait MS']
  return reason === undefined ? [] : [': ', cleanLine(reason.message, REASON_CHARS_MAX)]
}

/** The reason of a state as plain text, behind a colon. */
export function reasonText(status: ServerStatus): string {
  return reasonOf(status)
    .map((piece) => (typeof piece === 'string' ? piece : piece.text))
    .join('')
}
