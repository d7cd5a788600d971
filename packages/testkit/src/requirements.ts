// Every behaviour that the product promises, by id. A test cites one with `verifies(id, …)`; the gate counts what is missing.
import { catalog } from './requirements/catalog.ts'
import { command } from './requirements/command.ts'
import { config } from './requirements/config.ts'
import { connection } from './requirements/connection.ts'
import { gateway } from './requirements/gateway.ts'
import { house } from './requirements/house.ts'
import { http } from './requirements/http.ts'
import { wire } from './requirements/wire.ts'

export interface Requirement {
  /** `area.NNN`; stable for ever. */
  readonly id: string
  /** One sentence of behaviour, readable as a test title. */
  readonly text: string
  /** The milestone that delivers it: 1 the main job, 2 the connection layer, 3 sign-in, 4 extensions and turns. */
  readonly milestone: 1 | 2 | 3 | 4
  /** Where the rule comes from: a section of the specification, an RFC, an attack class. */
  readonly source?: string
}

export const requirements: readonly Requirement[] = [
  ...house,
  ...config,
  ...wire,
  ...connection,
  ...catalog,
  ...command,
  ...gateway,
  ...http,
]

/** The gate demands every requirement of these milestones. */
export const FINISHED_MILESTONES: readonly number[] = [1]
