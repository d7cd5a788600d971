// What other packages may use of the command: its exit codes and the version of its JSON answers.
export { JSON_VERSION } from './context.ts'
export { EXIT, type ExitCode } from './exit-codes.ts'
