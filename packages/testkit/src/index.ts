export {
  type AppsAccount,
  type AppsCall,
  type AppsFamily,
  type AppsListing,
  type AppsPlugin,
  type AppsServer,
  type AppsServerKnobs,
  type AppsServerOptions,
  type AppsServerStats,
  type AppsService,
  type AppsTool,
  startAppsServer,
} from './apps-server.ts'
export {
  type AuthorizationServer,
  type AuthorizationServerKnobs,
  type AuthorizationServerOptions,
  type AuthorizationServerStats,
  digestOf,
  INTROSPECTION_CLIENT,
  type PresetClient,
  type SeenTokenRequest,
  startAuthorizationServer,
  type TestAccount,
} from './authorization-server.ts'
export { Canaries, type Watched } from './canaries.ts'
export type { Controlled } from './controlled-server.ts'
export {
  type ProtectedServer,
  type ProtectedServerKnobs,
  type ProtectedServerOptions,
  type ProtectedServerStats,
  startProtectedServer,
} from './protected-server.ts'
export { FINISHED_MILESTONES, type Requirement, requirements } from './requirements.ts'
export {
  everythingStdio,
  filesystemStdio,
  freePort,
  type Launch,
  memoryStdio,
  type RunningServer,
  type Sdk1HttpOptions,
  type Sdk2HttpOptions,
  type StartOptions,
  scriptedStdio,
  sdk1Stdio,
  sdk2Stdio,
  startEverythingHttp,
  startScriptedHttp,
  startScriptedHttpProcess,
  startSdk1Http,
  startSdk2Http,
  startServer,
} from './runners.ts'
export type { ForgottenAnswer, HttpScript, ScriptedAct, ScriptedTool, ServerScript, StdioScript } from './script.ts'
export { type DeliveredPage, type SignInPerson, type SignInPersonOptions, signInPerson } from './sign-in-person.ts'
export { type ContractStore, type ContractStores, storeContract } from './store-contract.ts'
export { verifies } from './verifies.ts'
