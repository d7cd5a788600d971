export type {
  Step,
  StepCallOptions,
  StepCallOutcome,
  StepTool,
  Thread,
  ThreadOptions,
  Turn,
  TurnOptions,
} from './interface.ts'
export type { ThreadRuntime } from './runtime.ts'
export { LiveThread } from './thread.ts'
