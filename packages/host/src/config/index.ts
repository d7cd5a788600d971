export type {
  EnvironmentAuthority,
  RegistrationAuthority,
  ServerRequirement,
} from './authority.ts'
export { checkServer } from './check.ts'
export {
  type ApprovalMode,
  CONFIG_PROBLEM_CODES,
  type ConfigLayer,
  type ConfigProblem,
  type ConfigProblemCode,
  type DefinitionPlugin,
  type DefinitionSource,
  defineServer,
  type HttpTransport,
  type OauthSettings,
  SERVER_DEFAULTS,
  type ServerDefinition,
  type ServerDefinitionInput,
  type ServerLimits,
  type StdioTransport,
  type ToolOverride,
  type ToolPolicy,
  type ToolSurface,
} from './definition.ts'
export { type AddServerOptions, addServer, removeServer } from './editing.ts'
export { type ConfigEntry, type ConfigFile, type LoadConfigOptions, type LoadedConfig, loadConfig } from './load.ts'
export { didYouMean } from './near-names.ts'
export { type PathFacts, type StandardPaths, standardPaths } from './paths.ts'
export type { RegistrationSource } from './registration-source.ts'
export {
  type DisabledReason,
  type RegistrationAction,
  type RegistrationCatalog,
  type RegistrationConflict,
  type ResolvedRegistration,
  resolveRegistrations,
  type ShadowedRegistration,
  sameRegistration,
} from './registrations.ts'
export { configSchema } from './schema.ts'
export { resolveTraits, type ServerTraits } from './traits.ts'
