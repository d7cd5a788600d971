// Is this what the browser brings back from the authorization server, for this attempt? The same rules for a request and for a pasted line. Pure.
import { isSameSecret } from './digest.ts'

/** What an authorization server sends back. */
export type CallbackAnswer =
  | { readonly kind: 'code'; readonly code: string; readonly iss?: string }
  /** Nothing of it is shown before `iss` has been looked at. */
  | { readonly kind: 'error'; readonly error: string; readonly description?: string; readonly iss?: string }

/** `stray`: nothing that belongs to this attempt. */
export type CallbackReading = CallbackAnswer | { readonly kind: 'stray'; readonly because: string }

const QUERY_CHARS_MAX = 8_192
const VALUE_CHARS_MAX = 4_096
const VISIBLE = /^[\x20-\x7e]+$/
const NAMES = ['code', 'state', 'iss', 'error', 'error_description'] as const

/** @param query Without its question mark. */
export function readCallback(query: string, state: string): CallbackReading {
  if (query.length > QUERY_CHARS_MAX) return stray('it is too long')
  const parameters = new URLSearchParams(query)
  for (const name of NAMES) if (parameters.getAll(name).length > 1) return stray(`it has "${name}" more than once`)
  const given = parameters.get('state')
  if (given === null || !isSameSecret(given, state)) return stray('it does not belong to this sign-in ("state")')
  const [code, error, iss] = [parameters.get('code'), parameters.get('error'), parameters.get('iss')]
  const issuer = iss === null ? {} : { iss }
  if (code !== null && error !== null) return stray('it has both a code and an error')
  if (code !== null) return isValue(code) ? { kind: 'code', code, ...issuer } : stray('its code cannot be used')
  if (error === null || error === '') return stray('it has neither a code nor an error')
  const description = parameters.get('error_description')
  return { kind: 'error', error, ...(description === null ? {} : { description }), ...issuer }
}

/**
 * A line that somebody pasted: the whole address that the browser ended at, or its query.
 * @param redirectUrl Where the browser was sent to.
 */
export function readPasted(line: string, redirectUrl: string, state: string): CallbackReading {
  const text = line.trim()
  if (text.length > QUERY_CHARS_MAX) return stray('it is too long')
  if (!/^https?:/i.test(text)) {
    if (!/(?:^|[?&])state=/.test(text)) return stray('it is not the whole address that the browser ended at')
    return readCallback(text.replace(/^\?/, ''), state)
  }
  if (!URL.canParse(text)) return stray('it is not an address')
  const url = new URL(text)
  const expected = new URL(redirectUrl)
  if (url.origin !== expected.origin || url.pathname !== expected.pathname)
    return stray(`it does not begin with ${expected.origin}${expected.pathname}`)
  return readCallback(url.search.slice(1), state)
}

/** What RFC 9207 makes of `iss` (MCP 2026-07-28, Authorization Response Validation). */
export function isFromIssuer(
  iss: string | undefined,
  { issuer, promisesIssuer }: { readonly issuer: string; readonly promisesIssuer: boolean },
): boolean {
  return iss === undefined ? !promisesIssuer : iss === issuer
}

function isValue(text: string): boolean {
  return text.length <= VALUE_CHARS_MAX && VISIBLE.test(text)
}

function stray(because: string): CallbackReading {
  return { kind: 'stray', because }
}
