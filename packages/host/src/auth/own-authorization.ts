// Whose credentials an HTTP server sees, as far as its definition and the environment decide it. Pure.
import type { HttpTransport, ServerDefinition } from '../config/index.ts'

/** The variables of the host. */
export type Variables = Readonly<Record<string, string | undefined>>

/** What a header can carry: tab, visible characters and everything from 0x80 on, without DEL. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\uffff]*$/

/**
 * Is this a server that speaks with a stored sign-in, if there is one? Only HTTP servers without any authorization of their own do, and never one that
 * speaks as the account.
 * @param hasAccount The account of the host speaks for this server.
 */
export function usesStoredSignIn(
  { transport, auth, environment }: ServerDefinition,
  { env, hasAccount }: { readonly env: Variables; readonly hasAccount: boolean },
): boolean {
  if (transport.kind !== 'http' || auth === 'none' || hasAccount) return false
  if (auth === 'account' && environment !== 'local') return false
  return !hasOwnAuthorization(transport, env)
}

/** A bearer variable, a static `Authorization` that a header can carry (even a blank one), or one whose variable has a usable value. */
function hasOwnAuthorization({ bearerTokenEnvVar, headers, envHeaders }: HttpTransport, env: Variables): boolean {
  if (bearerTokenEnvVar !== undefined) return true
  if (authorizationIn(headers).some((value) => HEADER_VALUE.test(value))) return true
  return authorizationIn(envHeaders).some((variable) => {
    const value = env[variable]?.trim() ?? ''
    return value !== '' && HEADER_VALUE.test(value)
  })
}

/**
 * The stricter test, for what must not depend on anything outside of the entry: one static `Authorization` that says something, and neither a bearer
 * variable nor any header from a variable.
 */
export function hasExplicitAuthorization({ bearerTokenEnvVar, headers, envHeaders }: HttpTransport): boolean {
  if (bearerTokenEnvVar !== undefined || Object.keys(envHeaders).length > 0) return false
  return authorizationIn(headers).some((value) => value.trim() !== '' && HEADER_VALUE.test(value))
}

function authorizationIn(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => (name.toLowerCase() === 'authorization' ? [value] : []))
}
