import { cleanText, redact } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { ServerState, ServerStatus } from '../events/index.ts'
import type { ServerSession } from '../protocol/index.ts'
import type { CatalogSink } from './catalog-sink.ts'
import type { ConnectionState } from './state.ts'

/** Lines of stderr in a status, and characters in all. */
const STDERR_LINES_MAX = 20
const STDERR_CHARS_MAX = 4_000

/** Everything that a status is made of. */
export interface StatusFacts {
  readonly definition: ServerDefinition
  readonly state: ConnectionState
  readonly session: ServerSession | undefined
  readonly sink: Pick<CatalogSink, 'toolCount' | 'problem'>
  readonly stderrTail: string
  readonly noiseCount: number
  readonly secrets: readonly string[]
}

/** A snapshot that says no more than is true now: facts of a session only while it is there, a catalog only while the server is ready. */
export function statusOf(facts: StatusFacts): ServerStatus {
  const { definition, state, sink, noiseCount } = facts
  const isReady = state.kind === 'ready'
  const reason = isReady ? sink.problem : state.reason
  const stderrTail = shownTail(facts)
  return {
    name: definition.name,
    state: shownState(state),
    ...(reason === undefined ? {} : { reason: { code: reason.code, message: redact(reason.message, facts.secrets) } }),
    sinceAtMs: state.sinceAtMs,
    ...(state.kind === 'failed' ? { nextRetryAtMs: state.retryAtMs } : {}),
    transport: definition.transport.kind,
    ...sessionFacts(facts),
    ...(isReady && sink.toolCount !== undefined ? { toolCount: sink.toolCount } : {}),
    ...(noiseCount > 0 ? { noiseCount } : {}),
    ...(stderrTail === '' ? {} : { stderrTail }),
  }
}

/** A closed connection belongs to a host that is closing; nobody else sees it. */
function shownState({ kind }: ConnectionState): ServerState {
  return kind === 'closed' ? 'cancelled' : kind
}

function sessionFacts({ session, state }: StatusFacts): Partial<ServerStatus> {
  if (session === undefined) return {}
  const pid = session.pid === undefined ? {} : { pid: session.pid }
  if (state.kind !== 'ready') return pid
  return { ...pid, era: session.era, protocolVersion: session.verdict.version, serverInfo: session.serverInfo }
}

function shownTail({ stderrTail, secrets }: StatusFacts): string {
  if (stderrTail === '') return ''
  const lines = cleanText(stderrTail.slice(-STDERR_CHARS_MAX)).text.trimEnd().split('\n').slice(-STDERR_LINES_MAX)
  return redact(lines.join('\n'), secrets)
}
