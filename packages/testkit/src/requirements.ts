// Every behaviour that the product promises, by id. A test cites one with `verifies(id, …)`; the gate counts what is missing.
import { accounts } from './requirements/accounts.ts'
import { authCommand } from './requirements/auth-command.ts'
import { catalog } from './requirements/catalog.ts'
import { command } from './requirements/command.ts'
import { config } from './requirements/config.ts'
import { conn } from './requirements/conn.ts'
import { connection } from './requirements/connection.ts'
import { extensions } from './requirements/extensions.ts'
import { gateway } from './requirements/gateway.ts'
import { house } from './requirements/house.ts'
import { http } from './requirements/http.ts'
import { oauth } from './requirements/oauth.ts'
import { oauthHttp } from './requirements/oauth-http.ts'
import { plugins } from './requirements/plugins.ts'
import { races } from './requirements/races.ts'
import type { Requirement } from './requirements/requirement.ts'
import { signIns } from './requirements/sign-ins.ts'
import { signInsHostile } from './requirements/sign-ins-hostile.ts'
import { simulation } from './requirements/simulation.ts'
import { stores } from './requirements/stores.ts'
import { turns } from './requirements/turns.ts'
import { wire } from './requirements/wire.ts'

export type { Requirement } from './requirements/requirement.ts'

export const requirements: readonly Requirement[] = [
  ...house,
  ...config,
  ...wire,
  ...turns,
  ...plugins,
  ...extensions,
  ...connection,
  ...conn,
  ...catalog,
  ...command,
  ...authCommand,
  ...gateway,
  ...http,
  ...oauth,
  ...oauthHttp,
  ...signIns,
  ...signInsHostile,
  ...accounts,
  ...simulation,
  ...races,
  ...stores,
]

/** The gate demands every requirement of these milestones. */
export const FINISHED_MILESTONES: readonly number[] = [1, 2, 3]
