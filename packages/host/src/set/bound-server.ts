import type { Lease } from '../base/index.ts'
import type { CatalogView, ServerCatalog } from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { ServerConnection } from '../connection/index.ts'
import type { ServerSession } from '../protocol/index.ts'

/** One server as it was when the binding was taken. */
export interface BoundServer {
  /** That of the generation, which may be newer than that of the connection. */
  readonly definition: ServerDefinition
  /** Calls go here and nowhere else, also when the connection has started another session meanwhile. */
  readonly session: ServerSession
  readonly catalog: ServerCatalog
  readonly view: CatalogView
  readonly connection: ServerConnection
}

/** What is needed of a member of a generation. */
export interface BindableMember extends Pick<BoundServer, 'catalog' | 'view'> {
  readonly connection: Lease<ServerConnection>
  readonly desired: { readonly definition: ServerDefinition }
}

/** A member as it is now; undefined while it is not ready. */
export function boundServer({ connection, catalog, view, desired }: BindableMember): BoundServer | undefined {
  const { value } = connection
  const { session } = value
  return session === undefined
    ? undefined
    : { definition: desired.definition, session, catalog, view, connection: value }
}
