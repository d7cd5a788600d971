import type { HostError } from '@convoke/host'
import { CommandError } from '../command-error.ts'
import { EXIT } from '../exit-codes.ts'

/** Turns errors of the library into exit codes. */
export function commandErrorOf(error: HostError): CommandError {
  switch (error.code) {
    case 'ALREADY_DEFINED':
      return new CommandError(EXIT.usage, error.code, `${error.message} Replace it with --replace.`)
    case 'CONFIG_PROBLEM':
      return new CommandError(EXIT.configuration, error.code, error.message)
    case 'RESOURCE_AMBIGUOUS':
    case 'RESOURCE_UNKNOWN':
    case 'PROMPT_UNKNOWN':
    case 'SERVER_UNKNOWN':
    case 'TOOL_UNKNOWN':
    case 'ARGUMENTS_INVALID':
    case 'SIGN_IN_UNSUPPORTED':
      return new CommandError(EXIT.usage, error.code, error.message)
    case 'AUTH_REQUIRED':
    case 'AUTH_FAILED':
    case 'SIGN_IN_TIMEOUT':
      return new CommandError(EXIT.needsPerson, error.code, error.message)
    case 'SERVER_NOT_READY':
    case 'SERVER_DISABLED':
      return new CommandError(EXIT.notAvailable, error.code, error.message)
    case 'CANCELLED':
      return new CommandError(EXIT.cancelled, error.code, error.message)
    default:
      return new CommandError(EXIT.failed, error.code, error.message)
  }
}
