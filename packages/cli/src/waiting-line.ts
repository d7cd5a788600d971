// "waiting for NAME…" on a terminal while servers start.

import type { Host } from '@convoke/host'
import type { Terminal } from './terminal.ts'

/** A start that is quicker than this is not worth a line. */
const SHOW_AFTER_MS = 400
/** Names that are shown; the rest is a number. */
const NAMES_MAX = 4

/** Shows which servers are still awaited until the function it gives back is called. */
export function showWaiting(host: Host, terminal: Terminal): () => void {
  if (!terminal.showsProgress) return () => {}
  let isShown = false
  const show = (): void => {
    if (isShown) terminal.transient(waitingText(host))
  }
  const timer = setTimeout(() => {
    isShown = true
    show()
  }, SHOW_AFTER_MS)
  const unsubscribe = host.subscribe((event) => {
    if (event.kind === 'server.state-changed') show()
  })
  return () => {
    clearTimeout(timer)
    unsubscribe()
    terminal.clearTransient()
  }
}

function waitingText(host: Host): string {
  const waiting = host.statuses.filter(({ state }) => state === 'starting' || state === 'installing')
  if (waiting.length === 0) return ''
  const names = waiting
    .slice(0, NAMES_MAX)
    .map(({ name, state }) => (state === 'installing' ? `${name} (installing)` : name))
  const more = waiting.length > NAMES_MAX ? ` and ${waiting.length - NAMES_MAX} more` : ''
  return `waiting for ${names.join(', ')}${more}…`
}
