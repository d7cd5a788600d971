import { EXIT, type ExitCode } from './exit-codes.ts'

/** Ends the command with a message for the person, a stable code for programs and an exit code for the shell. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode
  /** SCREAMING_SNAKE; `USAGE` for a wrong command line, otherwise the code of the library's error. */
  readonly code: string

  constructor(exitCode: ExitCode, code: string, message: string) {
    super(message)
    this.exitCode = exitCode
    this.code = code
  }

  /** By its shape, because the command's files each have a class of their own. */
  static is(value: unknown): value is CommandError {
    return value instanceof Error && value.name === 'CommandError' && 'exitCode' in value && 'code' in value
  }
}

/** A command line that cannot be carried out. */
export function usageError(message: string): CommandError {
  return new CommandError(EXIT.usage, 'USAGE', message)
}
