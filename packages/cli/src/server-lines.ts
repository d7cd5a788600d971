// Servers as lines for a person.

import type { ServerState, ServerStatus } from '@convoke/host'
import { cleanLine } from '@convoke/host'
import { type Piece, styled, type Terminal } from './terminal.ts'

/** Longest reason on one line, in characters. */
const REASON_CHARS_MAX = 300

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

/** The reason of a state, behind a colon. */
export function reasonOf({ reason, state, nextRetryAtMs }: ServerStatus): readonly Piece[] {
  if (state === 'starting' || state === 'installing') return [': still not ready; wait longer with --wait MS']
  if (reason === undefined) return []
  const inMs = nextRetryAtMs === undefined ? 0 : nextRetryAtMs - Date.now()
  const retry = inMs > 0 ? styled('dim', ` (tried again in ${Math.ceil(inMs / 1000)} s)`) : ''
  return [': ', cleanLine(reason.message, REASON_CHARS_MAX), retry]
}

/** The reason of a state as plain text, behind a colon. */
export function reasonText(status: ServerStatus): string {
  return reasonOf(status)
    .map((piece) => (typeof piece === 'string' ? piece : piece.text))
    .join('')
}
