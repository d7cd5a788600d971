// Why an endpoint could not be opened.

export type EndpointErrorCode =
  | 'token-required' // an address that others can reach, and no token
  | 'token-weak'
  | 'address-in-use'
  | 'address-unavailable'
  | 'invalid-options'

/** Thrown when an endpoint is opened. Nothing is left listening then. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError'
  readonly code: EndpointErrorCode

  constructor(code: EndpointErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}
