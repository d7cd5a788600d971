import type { Lease } from '../base/index.ts'
import type { CatalogView, ServerCatalog } from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { ServerConnection } from '../connection/index.ts'
import type { CapturedView } from './captured-view.ts'
import type { DefinitionFacts } from './definition-facts.ts'
import type { DesiredConnection } from './desired.ts'
import type { ConnectionPlan } from './plan.ts'

/** One server in one generation. */
export interface Member {
  readonly connection: Lease<ServerConnection>
  /** What the connection lists, before anybody's filter. */
  readonly catalog: ServerCatalog
  /** What this member shows of it; policy is read from `view.definition`, the definition of this generation. */
  readonly view: CatalogView
  /** What the configuration of this generation wants of it. */
  readonly desired: DesiredConnection
  /** What was decided about it, and why. */
  readonly plan: ConnectionPlan
  /** What `desired` was made from besides the definition. */
  readonly facts: DefinitionFacts
  readonly liveKey: string | undefined
}

/** One published version of the set. It holds a lease on each of its connections, and gives them back when it is disposed. */
export class Generation implements AsyncDisposable {
  readonly number: number
  readonly members: ReadonlyMap<string, Member>
  readonly definitions: readonly ServerDefinition[]
  /** What the last binding saw; the next one sees the same as long as nothing has changed. */
  captured: CapturedView | undefined
  /** When the grace of this generation's starts is over, in monotonic milliseconds; fixed by the first binding that waits. */
  graceEndsAtMs: number | undefined
  /** Servers that a binding had to do without because they were still starting. */
  readonly missed: Set<ServerConnection> = new Set()
  #released: ReadonlyMap<string, Promise<void>> | undefined

  constructor(number: number, members: ReadonlyMap<string, Member>) {
    this.number = number
    this.members = members
    this.definitions = [...members.values()].map(({ desired }) => desired.definition)
  }

  /** When the server's connection of this generation is over, if nobody else holds it; undefined while the generation is held. */
  whenReleased(server: string): Promise<void> | undefined {
    return this.#released?.get(server)
  }

  /** Releases the leases side by side; a connection that nobody else holds is closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    const released = new Map<string, Promise<void>>()
    for (const [server, { connection }] of this.members)
      released.set(server, Promise.resolve(connection[Symbol.asyncDispose]()))
    this.#released = released
    await Promise.all(released.values())
  }
}
