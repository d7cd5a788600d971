// What the configuration wants of each connection. Pure.
import type { ServerDefinition } from '../config/index.ts'
import { type ConnectionIdentity, connectionIdentity } from '../connection/index.ts'

/** What one configured server wants of its connection. */
export interface DesiredConnection {
  readonly definition: ServerDefinition
  readonly identity: ConnectionIdentity
  /** `wanted`: started at publication. `on-demand`: when somebody needs it. `never`: its own entry says so. */
  readonly start: 'wanted' | 'on-demand' | 'never'
}

/** What decides besides the definitions. */
export interface DesiredPolicy {
  /** Servers to start at publication. */
  readonly start: 'all' | readonly string[]
  /** The environment of the host: variables that a definition refers to are part of its identity. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** One per definition, in their order. */
export function desiredConnections(
  definitions: readonly ServerDefinition[],
  { start, env }: DesiredPolicy,
): DesiredConnection[] {
  const named = start === 'all' ? undefined : new Set(start)
  return definitions.map((definition) => ({
    definition,
    identity: connectionIdentity(definition, env),
    start: startOf(definition, named),
  }))
}

function startOf(
  { enabled, problem, name }: ServerDefinition,
  named: ReadonlySet<string> | undefined,
): DesiredConnection['start'] {
  if (!enabled || problem?.severity === 'error') return 'never'
  return named === undefined || named.has(name) ? 'wanted' : 'on-demand'
}
