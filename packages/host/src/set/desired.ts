// What the configuration wants of each connection. Pure.
import { resolveTraits, type ServerDefinition, type ServerTraits } from '../config/index.ts'
import type { ConnectionIdentity } from '../connection/index.ts'

/** What one configured server wants of its connection. */
export interface DesiredConnection {
  readonly definition: ServerDefinition
  readonly traits: ServerTraits
  readonly identity: ConnectionIdentity
  /**
   * `eager`: started at publication. `lazy`: too, unless its tools are known from before. `on-demand`: when somebody names it. `never`: its
   * own entry says so.
   */
  readonly start: 'eager' | 'lazy' | 'on-demand' | 'never'
  /** Tools that a listing of it may have. */
  readonly catalogItemLimit: number
  /** A cached catalog shows models at least one tool that the definition lets through. */
  readonly hasVisibleCachedTools: boolean
  readonly isSelectedByPlugin: boolean
}

/** What was found out about a definition before anything is decided. */
export interface DesiredFacts {
  readonly identity: ConnectionIdentity
  readonly hasVisibleCachedTools: boolean
}

/** What one definition wants, given what is known. */
export function desiredConnection(
  definition: ServerDefinition,
  { identity, hasVisibleCachedTools }: DesiredFacts,
  policy: StartPolicy,
): DesiredConnection {
  const traits = resolveTraits(definition)
  return {
    definition,
    traits,
    identity,
    start: startOf(definition, policy),
    catalogItemLimit: traits.catalogItemLimit,
    hasVisibleCachedTools,
    isSelectedByPlugin: definition.plugin?.isSelected === true,
  }
}

/** Which servers are started at publication: all, as their definitions say, or only those that are named. */
export type StartPolicy = 'all' | readonly string[]

function startOf(
  { enabled, problem, name, required, startup }: ServerDefinition,
  policy: StartPolicy,
): DesiredConnection['start'] {
  if (!enabled || problem?.severity === 'error') return 'never'
  if (policy !== 'all') return policy.includes(name) ? 'eager' : 'on-demand'
  return required || startup === 'eager' ? 'eager' : 'lazy'
}
