import { HostError } from '../base/index.ts'
import type { ServerConnection } from '../connection/index.ts'
import type { Member } from './generation.ts'

/**
 * Waits for every server that its configuration calls required, by name.
 * @throws {HostError} `REQUIRED_SERVERS_FAILED` with all of them in its text and in `details.servers`; whatever `whenSettled` throws.
 */
export async function requireReady(
  members: readonly Member[],
  whenSettled: (connection: ServerConnection) => Promise<void>,
): Promise<void> {
  const required = members
    .filter(({ desired }) => desired.definition.enabled && desired.definition.required)
    .sort((one, other) => (one.desired.definition.name < other.desired.definition.name ? -1 : 1))
  await Promise.all(required.map(({ connection }) => whenSettled(connection.value)))
  const failures = required.flatMap(({ connection, desired }) => {
    const { state } = connection.value
    const { name } = desired.definition
    return state.kind === 'ready' ? [] : [{ server: name, ...state.reason }]
  })
  if (failures.length === 0) return
  throw new HostError(
    'REQUIRED_SERVERS_FAILED',
    `Required servers could not be started: ${failures.map(({ server, message }) => `${server}: ${message}`).join('; ')}`,
    { details: { servers: failures } },
  )
}
