// What a sign-in that came to nothing is called, and how it is told.
import { HostError } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import { StoreError } from '../store/index.ts'
import { isMachine } from './machine-sign-in.ts'
import { SignInError } from './oauth/sign-in-error.ts'

/** The store of a sign-in did not do it: what it says of that, as the error of this library. */
export function unavailable({ name }: { readonly name: string }, error: unknown): HostError {
  if (HostError.is(error)) return error
  const failure = error instanceof StoreError ? error.failure : 'failed'
  const what = failure === 'busy' ? 'is being renewed by another process' : 'cannot be read or written'
  const why = error instanceof Error ? error.message : String(error)
  return new HostError('CREDENTIALS_UNAVAILABLE', `The sign-in of server "${name}" ${what}: ${why}`, {
    details: { server: name, because: failure },
    cause: error,
  })
}

/** Why nobody can sign in to this server. */
export function notSupported(definition: ServerDefinition): HostError {
  const { name, transport, auth } = definition
  const isPerson = !isMachine(definition)
  const why =
    transport.kind === 'stdio'
      ? 'it is a program on this machine, and programs are told secrets by their variables'
      : auth !== 'oauth'
        ? `its entry says auth: "${auth}"`
        : isPerson
          ? 'its entry brings an authorization of its own'
          : 'its entry says with oauth.grant that this program signs in by itself'
  return new HostError('SIGN_IN_UNSUPPORTED', `Nobody can sign in to server "${name}": ${why}`, {
    details: { server: name },
  })
}

/** A secret goes to no issuer that only the server names (docs/decisions/0089). Undefined: the entry names one, or there is no secret. */
export function missingIssuer({ oauth }: ServerDefinition): SignInError | undefined {
  const { clientId, clientSecretEnvVar, issuer } = oauth ?? {}
  if (clientId === undefined || clientSecretEnvVar === undefined || issuer !== undefined) return undefined
  return new SignInError(
    'settings-invalid',
    'its entry has a client secret (oauth.clientSecretEnvVar), and would show it to whichever authorization server it is sent to: name the one that the client is registered at as oauth.issuer',
    { field: 'oauth.issuer' },
  )
}

/** The error of this library behind whatever a sign-in threw. */
export function signInFailure({ name }: ServerDefinition, error: unknown): HostError {
  if (HostError.is(error)) return error
  const details = { server: name }
  if (!(error instanceof SignInError))
    return new HostError('INTERNAL', `The sign-in to server "${name}" failed: ${String(error)}`, {
      details,
      cause: error,
    })
  const { kind, message, details: facts } = error
  const { cause: _, ...known } = facts
  const code = kind === 'cancelled' ? 'CANCELLED' : kind === 'timed-out' ? 'SIGN_IN_TIMEOUT' : 'SIGN_IN_FAILED'
  return new HostError(code, `The sign-in to server "${name}" failed: ${message}`, {
    details: { ...details, ...known, kind },
    cause: error,
  })
}
