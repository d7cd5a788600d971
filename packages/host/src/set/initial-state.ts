import type { ServerDefinition } from '../config/index.ts'
import type { ConnectionState } from '../connection/index.ts'

/** Where a new connection begins: asleep, or held by its own entry with the reason that the entry gives. */
export function initialState({ name, enabled, problem }: ServerDefinition, sinceAtMs: number): ConnectionState {
  if (!enabled)
    return {
      kind: 'disabled',
      sinceAtMs,
      reason: { code: 'SERVER_DISABLED', message: `Server "${name}" is disabled in its configuration` },
    }
  if (problem?.severity === 'error')
    return {
      kind: problem.code === 'CONFIG_INPUT_NEEDED' ? 'needs-input' : 'disabled',
      sinceAtMs,
      reason: { code: 'CONFIG_PROBLEM', message: problem.message },
    }
  return {
    kind: 'dormant',
    sinceAtMs,
    reason: { code: 'SERVER_NOT_READY', message: `Server "${name}" starts when it is first needed` },
  }
}
