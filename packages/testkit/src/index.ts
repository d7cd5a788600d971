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
export { type ContractStore, type ContractStores, storeContract } from './store-contract.ts'
export { verifies } from './verifies.ts'
