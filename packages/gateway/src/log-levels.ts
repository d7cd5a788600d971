// Servers of the older era have one log level for their whole connection. It follows the most talkative client; what others do not want is left out here.
import type { ServerPort } from '@convoke/host'
import { LOG_LEVELS } from '@convoke/wire/server'
import type { View } from './view.ts'

const TIMEOUT_MS = 2_000

/** Lowers the level of a server, if this call wants more than it says now. Never rejects, and waits at most 2 s. */
export async function ensureLogLevel(view: View, port: ServerPort, wanted: string): Promise<void> {
  const index = LOG_LEVELS.indexOf(wanted)
  if (index === -1 || port.era === 'modern' || port.capabilities['logging'] === undefined) return
  if (index >= (view.logLevels.get(port.name) ?? Number.POSITIVE_INFINITY)) return
  view.logLevels.set(port.name, index)
  try {
    await port.request('logging/setLevel', { level: wanted }, { totalTimeoutMs: TIMEOUT_MS })
  } catch {
    view.logLevels.delete(port.name) // it may be asked again
  }
}
