// What an account may be made of. Pure. No message shows a token.
import { HostError } from '../../base/index.ts'
import type { Account } from '../account.ts'
import { isLoopbackHost } from '../oauth/endpoints.ts'

const ORIGINS_MAX = 64
const ID_CHARS_MAX = 256
const TOKEN_CHARS_MAX = 32 * 1024
/** What a bearer token may be made of, so that a header carries it as it is. */
const TOKEN = /^[\x21-\x7e]+$/
const CONTROL = /\p{Cc}/u

/**
 * A copy of the origins, checked: https, or http to this machine, each written as a browser writes it (`https://api.example.com`, no path, no slash).
 * @throws {HostError} `OPTIONS_INVALID`
 */
export function checkAccountOrigins(origins: readonly string[]): readonly string[] {
  if (origins.length === 0 || origins.length > ORIGINS_MAX)
    throw invalid(`origins names 1 to ${ORIGINS_MAX} origins that may see the token`)
  for (const origin of origins) {
    const url = typeof origin === 'string' && URL.canParse(origin) ? new URL(origin) : undefined
    const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname))
    if (!isSafe || url?.origin !== origin)
      throw invalid(
        `origins has ${JSON.stringify(origin)}, which is no origin of https (or of http to this machine) like https://api.example.com`,
      )
  }
  return Object.freeze([...origins])
}

/** Can this be sent as a bearer token? */
export function isToken(token: unknown): token is string {
  return typeof token === 'string' && token.length <= TOKEN_CHARS_MAX && TOKEN.test(token)
}

/** @throws {HostError} `OPTIONS_INVALID` */
export function checkToken(token: unknown): string {
  if (isToken(token)) return token
  throw invalid(
    `token is a text of 1 to ${TOKEN_CHARS_MAX} visible characters of ASCII, as the header "Authorization" carries it`,
  )
}

/** @throws {HostError} `OPTIONS_INVALID` */
export function checkAccountId(id: unknown): string {
  if (isAccountId(id)) return id
  throw invalid(`id is a text of 1 to ${ID_CHARS_MAX} characters without control characters`)
}

/** The account as others may rely on it; undefined: it cannot be used. What else the object has stays behind. */
export function readAccount(value: unknown): Account | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { id, grant } = value as { readonly id?: unknown; readonly grant?: unknown }
  return isAccountId(id) && isAccountId(grant) ? Object.freeze({ id, grant }) : undefined
}

function isAccountId(id: unknown): id is string {
  return typeof id === 'string' && id !== '' && id.length <= ID_CHARS_MAX && !CONTROL.test(id)
}

function invalid(why: string): HostError {
  return new HostError('OPTIONS_INVALID', `The account cannot be used: ${why}`)
}
