// The tools of all servers for whoever looks around: not for a model, and not for calling.
import { untilAborted } from '../base/index.ts'
import { type Aggregate, type CatalogTool, type NamePolicy, type ToolSnapshot, toolView } from '../catalog/index.ts'
import type { Member } from './generation.ts'

/** How to look around. */
export interface DiscoveryOptions {
  /** Stops the waiting. */
  readonly signal?: AbortSignal
}

/**
 * Side by side. What is known of a server that is still starting, or asleep, is shown at once; the others are waited for, and one that failed is
 * started again if its time has come. A server that cannot be listed is named and hides nobody.
 * @throws {HostError} `CANCELLED` on abort.
 */
export async function discoverTools(
  members: readonly Member[],
  names: NamePolicy,
  { signal }: DiscoveryOptions,
): Promise<Aggregate<CatalogTool>> {
  const found = await untilAborted(Promise.all(members.map((member) => lookAt(member, signal))), signal)
  return {
    items: toolView(
      found.flatMap(({ snapshot }) => snapshot ?? []),
      names,
    ).tools,
    failures: found.flatMap(({ failure }) => failure ?? []),
  }
}

interface Look {
  readonly snapshot?: ToolSnapshot | undefined
  readonly failure?: { readonly server: string; readonly code: string; readonly message: string }
}

async function lookAt({ connection, view, desired }: Member, signal: AbortSignal | undefined): Promise<Look> {
  const { value } = connection
  const { kind } = value.state
  if (kind === 'disabled') return {}
  const isPending = kind === 'dormant' || kind === 'starting' || kind === 'installing'
  if (isPending && isKnown(view, desired.traits.isHosted)) return { snapshot: view.cached }
  const outcome = await value.whenReady(signal)
  if (outcome.kind === 'ready') return { snapshot: view.discovered }
  // What the account listed before is still what it may see.
  if (desired.traits.isHosted && view.cached !== undefined) return { snapshot: view.cached }
  const { code, message } = outcome.error
  return { failure: { server: desired.definition.name, code, message } }
}

/** An empty list of a hosted server is an answer; that of an ordinary one may only be out of date. */
function isKnown({ cached }: Member['view'], isHosted: boolean): boolean {
  return cached !== undefined && (isHosted || cached.tools.length > 0)
}
