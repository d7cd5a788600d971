import type { AuthScopeKey } from '../auth/index.ts'
import type { CredentialReading } from './settings.ts'

/** Everything outside of a definition that decides what is found out about it. */
export interface DefinitionFacts {
  readonly place: object | string
  readonly account: AuthScopeKey | undefined
  readonly credentials: CredentialReading
  /** Values of the variables that the definition refers to, in their order. */
  readonly values: readonly (string | undefined)[]
}
