// The rules of the one door out, as pure functions: which URL, which headers, which redirect, which content encoding.
import { WireError } from './errors.ts'

/** How redirects are treated. `same-origin`: followed at most 10 times, within the origin of the request. `none`: a redirect is an error. */
export type RedirectPolicy = 'same-origin' | 'none'

export type ContentCoding = 'identity' | 'gzip' | 'deflate'

/** What every request says it can read. Never `br`, `zstd` or `*`: their decoders stay unused. */
export const ACCEPT_ENCODING = 'gzip, deflate, identity'
/** Redirects of one request. */
export const REDIRECTS_MAX = 10
const HEADER_NAME_CHARS_MAX = 256
const HEADER_VALUE_BYTES_MAX = 64 * 1024

/** Headers that carry the message itself. Only this package writes them. */
const FRAMING = [
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
const framing = new Set(FRAMING)
/** Names that a configuration, a helper or a caller may not set, because a request would then say something else than it means. */
const reserved = new Set([
  ...FRAMING,
  'accept',
  'content-type',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
  'referer',
])

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const ASCII = /^[\t\x20-\x7e]*$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** May whoever is not this package set a header of this name (lower case)? */
export function isReserved(name: string): boolean {
  return reserved.has(name)
}

/** Why this cannot be a header, without showing its value; undefined: it can. */
export function headerFault(name: string, value: string): string | undefined {
  if (!TOKEN.test(name) || name.length > HEADER_NAME_CHARS_MAX)
    return 'a header name with characters that HTTP does not allow'
  if (!VALUE.test(value)) return `the header "${name}" with characters that HTTP does not allow`
  return value.length > HEADER_VALUE_BYTES_MAX
    ? `the header "${name}" with more than ${HEADER_VALUE_BYTES_MAX} bytes`
    : undefined
}

/** Looks at all headers of a request, flat. Are they all ASCII? @throws {WireError} `refused`. */
export function checkHeaders(headers: readonly string[]): boolean {
  let isAscii = true
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] ?? ''
    const value = headers[at + 1] ?? ''
    if (!ASCII.test(value)) isAscii = false
    const fault =
      headerFault(name, value) ?? (framing.has(name) ? `the header "${name}", which is not its to set` : undefined)
    if (fault !== undefined) throw new WireError('refused', `The request has ${fault}`, { sent: false })
  }
  return isAscii
}

/** @throws {WireError} `refused` for what is no http or https URL. The message shows no more than the scheme: a URL may hold secrets. */
export function readUrl(text: string): URL {
  if (!URL.canParse(text)) throw new WireError('refused', 'The URL of this server is not a URL', { sent: false })
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new WireError('refused', `URLs that begin with "${url.protocol}" cannot be used; only http and https can`, {
      sent: false,
    })
  url.hash = ''
  return url
}

export type RedirectPlan =
  | { readonly kind: 'take' } // it is an answer like any other
  | { readonly kind: 'follow'; readonly path: string; readonly method: 'keep' | 'get' }
  | { readonly kind: 'refuse'; readonly message: string }

/** What is known about an answer that may redirect. */
export interface RedirectFacts {
  readonly status: number
  readonly location: string | undefined
  /** The URL that was asked last. */
  readonly from: URL
  readonly method: string
  readonly policy: RedirectPolicy
  readonly hops: number
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])

/**
 * 301, 302 and 303 turn a POST into a GET without a body, 307 and 308 keep both. Whatever the policy, nothing ever goes to another origin:
 * the server's name, scheme and port are what its credentials belong to.
 */
export function planRedirect({ status, location, from, method, policy, hops }: RedirectFacts): RedirectPlan {
  if (!REDIRECTS.has(status) || location === undefined) return { kind: 'take' }
  if (!URL.canParse(location, from.href))
    return { kind: 'refuse', message: `HTTP ${status} redirects to something that is not a URL` }
  const to = new URL(location, from)
  const place = `${to.origin === 'null' ? to.protocol : to.origin}${to.origin === 'null' ? '' : to.pathname}`
  if (to.origin !== from.origin || to.origin === 'null')
    return {
      kind: 'refuse',
      message: `HTTP ${status} redirects to ${place}, another origin than ${from.origin}: not followed`,
    }
  if (policy === 'none')
    return {
      kind: 'refuse',
      message: `HTTP ${status} redirects to ${place}: not followed here; if that is the server, configure that URL`,
    }
  if (hops >= REDIRECTS_MAX)
    return { kind: 'refuse', message: `More than ${REDIRECTS_MAX} redirects, the last to ${place}` }
  const keeps = status === 307 || status === 308 || method === 'GET'
  return { kind: 'follow', path: to.pathname + to.search, method: keeps ? 'keep' : 'get' }
}

/** The one coding that a body is in, or `undefined` for one that was not asked for, or for several. Decided by the headers alone. */
export function contentCoding(header: string | undefined): ContentCoding | undefined {
  const name = header?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return 'identity'
  if (name === 'gzip' || name === 'x-gzip') return 'gzip'
  return name === 'deflate' ? 'deflate' : undefined
}

/** The essence of a `content-type`: lower case, without parameters. */
export function mediaType(header: string | undefined): string {
  return header === undefined ? '' : (header.split(';', 1)[0] ?? '').trim().toLowerCase()
}
