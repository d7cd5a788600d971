import type { Lease } from '../base/index.ts'
import type { CatalogView, ServerCatalog } from '../catalog/index.ts'
import type { ConnectionIdentity, ServerConnection } from '../connection/index.ts'
import type { ConnectionPlan } from './plan.ts'

/** One server in one generation. */
export interface Member {
  readonly connection: Lease<ServerConnection>
  /** What the connection lists, before anybody's filter. */
  readonly catalog: ServerCatalog
  /** What this member shows of it; policy is read from `view.definition`, the definition of this generation. */
  readonly view: CatalogView
  readonly identity: ConnectionIdentity
  /** What was decided about it, and why. */
  readonly plan: ConnectionPlan
}

/** One published version of the set. It holds a lease on each of its connections, and gives them back when it is disposed. */
export class Generation implements AsyncDisposable {
  readonly number: number
  readonly members: ReadonlyMap<string, Member>

  constructor(number: number, members: ReadonlyMap<string, Member>) {
    this.number = number
    this.members = members
  }

  /** Releases the leases side by side; a connection that nobody else holds is closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.members.values()].map(({ connection }) => connection[Symbol.asyncDispose]()))
  }
}
