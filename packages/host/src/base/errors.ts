// The one error class of this library, and every code it can have. Each code has a row in docs/errors.md.

/** Stable, documented codes. Renaming one is a breaking change. */
export type HostErrorCode =
  // asking for something that is not there
  | 'SERVER_UNKNOWN'
  | 'TOOL_UNKNOWN'
  | 'TOOL_DISABLED'
  | 'PROMPT_UNKNOWN'
  | 'RESOURCE_UNKNOWN'
  | 'RESOURCE_AMBIGUOUS'
  | 'ARGUMENTS_INVALID'
  | 'CATALOG_CHANGED'
  | 'TOOL_CHANGED'
  | 'ENVIRONMENT_MISMATCH'
  | 'ALREADY_DEFINED'
  | 'QUESTION_UNKNOWN'
  | 'ANSWER_INVALID'
  | 'OPTIONS_INVALID'
  // a server that is not there (also the reasons of a status)
  | 'SERVER_NOT_READY'
  | 'SERVER_DISABLED'
  | 'CONFIG_PROBLEM'
  | 'VARIABLE_MISSING'
  | 'HEADERS_HELPER_FAILED'
  | 'COMMAND_NOT_FOUND'
  | 'SPAWN_FAILED'
  | 'SERVER_EXITED'
  | 'SERVER_UNREACHABLE'
  | 'STARTUP_TIMEOUT'
  | 'INSTALL_TIMEOUT'
  | 'LISTING_TIMEOUT'
  | 'LISTING_FAILED'
  | 'CATALOG_STORM'
  | 'PROTOCOL_ERROR'
  | 'VERSION_UNSUPPORTED'
  | 'HTTP_STATUS'
  | 'REQUEST_REFUSED'
  | 'CA_UNREADABLE'
  | 'AUTH_REQUIRED'
  | 'AUTH_FAILED'
  | 'CREDENTIALS_UNAVAILABLE'
  | 'REFRESH_FAILED'
  | 'SIGN_IN_FAILED'
  | 'SIGN_IN_TIMEOUT'
  | 'SIGN_IN_UNSUPPORTED'
  | 'ENVIRONMENT_UNAVAILABLE'
  | 'REQUIRED_SERVERS_FAILED'
  // a call that did not end well
  | 'CONNECTION_LOST'
  | 'OUTCOME_UNKNOWN'
  | 'CALL_TIMEOUT'
  | 'CALL_TOTAL_TIMEOUT'
  | 'CANCELLED'
  | 'MESSAGE_TOO_LARGE'
  | 'INPUT_ROUNDS_EXCEEDED'
  | 'INPUT_FAILED'
  | 'OUTPUT_SCHEMA_MISMATCH'
  | 'SERVER_ERROR'
  // ours
  | 'HOST_CLOSED'
  | 'INTERNAL'

/** What a program may want to know about an error; never a secret, a header value or a tool argument. */
export type HostErrorDetails = Readonly<Record<string, unknown>>

/** Every error this library throws on purpose. Branch on `code`, never on `message`. */
export class HostError extends Error {
  override readonly name = 'HostError'
  readonly code: HostErrorCode
  readonly details: HostErrorDetails

  constructor(
    code: HostErrorCode,
    message: string,
    options: { readonly details?: HostErrorDetails; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.details = options.details ?? {}
  }

  /** The same error with more details. */
  with(details: HostErrorDetails): HostError {
    return new HostError(this.code, this.message, { details: { ...this.details, ...details }, cause: this.cause })
  }

  /** Is `value` an error of this library and, if `code` is given, of that code? */
  static is(value: unknown, code?: HostErrorCode): value is HostError {
    return value instanceof HostError && (code === undefined || value.code === code)
  }
}
