import type { ConnectionState } from '../connection/index.ts'
import type { DesiredConnection } from './desired.ts'

/** Where a new connection begins: asleep, or held by its own entry with the reason that the entry gives. */
export function initialState(
  { definition, start }: DesiredConnection,
  { sinceAtMs, failuresBefore }: { readonly sinceAtMs: number; readonly failuresBefore: number },
): ConnectionState {
  const { name, enabled, problem } = definition
  if (!enabled)
    return {
      kind: 'disabled',
      sinceAtMs,
      reason: {
        code: 'SERVER_DISABLED',
        message: `Server "${name}" is disabled in its configuration. Remove "enabled": false to use it`,
      },
    }
  if (problem?.severity === 'error')
    return {
      kind: problem.code === 'CONFIG_INPUT_NEEDED' ? 'needs-input' : 'disabled',
      sinceAtMs,
      reason: { code: 'CONFIG_PROBLEM', message: problem.message },
    }
  const why = start === 'on-demand' ? 'starts when it is named' : 'starts when it is first needed'
  return {
    kind: 'dormant',
    sinceAtMs,
    failuresBefore,
    reason: { code: 'SERVER_NOT_READY', message: `Server "${name}" ${why}` },
  }
}
