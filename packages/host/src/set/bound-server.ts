import type { CatalogView, ServerCatalog } from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { ServerConnection } from '../connection/index.ts'
import type { ServerSession } from '../protocol/index.ts'
import type { Member } from './generation.ts'

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

/** A member as it is now; undefined while it is not ready. */
export function boundServer({ connection, catalog, view, desired }: Member): BoundServer | undefined {
  const { value } = connection
  const { session } = value
  return session === undefined
    ? undefined
    : { definition: desired.definition, session, catalog, view, connection: value }
}
