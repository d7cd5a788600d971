// Which URLs of somebody else's documents may be used, and for what. Pure.
import { cutText } from '../../base/index.ts'
import type { OAuthRequest } from './port.ts'
import { SignInError } from './sign-in-error.ts'

export type AddressRule = OAuthRequest['addresses']

const URL_CHARS_MAX = 2_048
const PLACE_CHARS_MAX = 200
/** Visible ASCII without what parsers disagree about: a URL in a document has everything else percent-encoded. */
const PLAIN = /^[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e%]+$/

/** A URL for a message: without user name, query and fragment, bounded. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'something that is not a URL'
  const { origin, protocol, pathname } = new URL(url)
  return cutText(origin === 'null' ? protocol : `${origin}${pathname}`, PLACE_CHARS_MAX)
}

/** Does this host name stand for this machine? No other names do, whatever they lead to. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
}

/**
 * A URL of a document, as the URL parser writes it.
 * @param field Where it stands, for the message.
 * @throws {SignInError} `endpoint-refused`: not https (http to this machine, where the rule lets us there), or with a user name, a fragment or characters
 * that do not belong into a URL.
 */
export function checkEndpoint(value: unknown, field: string, rule: AddressRule): string {
  const refuse = (why: string): never => {
    throw new SignInError('endpoint-refused', `"${field}" ${why}`, {
      field,
      ...(typeof value === 'string' ? { url: placeOf(value) } : {}),
    })
  }
  if (typeof value !== 'string') return refuse('is not a text')
  if (value.length > URL_CHARS_MAX) return refuse(`has more than ${URL_CHARS_MAX} characters`)
  if (!PLAIN.test(value) || !/^https?:\/\//i.test(value) || !URL.canParse(value))
    return refuse('is not a URL that begins with https:// and has only plain characters')
  const url = new URL(value)
  if (url.username !== '' || url.password !== '') return refuse('has a user name in its URL')
  if (url.hash !== '' || value.includes('#')) return refuse('has a fragment in its URL')
  if (/%0[0-9a-f]|%1[0-9a-f]|%7f/i.test(value)) return refuse('has a control character in its URL')
  if (url.protocol === 'http:' && (rule === 'public' || !isLoopbackHost(url.hostname)))
    return refuse(`is ${placeOf(value)}, which is not encrypted: only https can be used there`)
  return url.href
}

/** Where the endpoints of one authorization server are. */
export interface EndpointFacts {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly promisesIssuer: boolean
}

/**
 * The page of one authorization server with the token endpoint of another is how a code is stolen (mix-up). Where each answer names its issuer that is
 * noticed later; elsewhere the page has to be at the issuer or beside the token endpoint.
 * @throws {SignInError} `endpoint-refused`
 */
export function checkOrigins({ issuer, authorizationEndpoint, tokenEndpoint, promisesIssuer }: EndpointFacts): void {
  if (promisesIssuer) return
  const origin = new URL(authorizationEndpoint).origin
  if (origin === new URL(issuer).origin || origin === new URL(tokenEndpoint).origin) return
  throw new SignInError(
    'endpoint-refused',
    `"authorization_endpoint" is at ${origin}, "token_endpoint" at ${new URL(tokenEndpoint).origin}, and neither belongs to the page's issuer ${placeOf(issuer)}: its code could end up with somebody else`,
    { field: 'authorization_endpoint', url: placeOf(authorizationEndpoint) },
  )
}

/** Is `resource` the server's URL, or a folder above it at the same origin? Folders end at a slash: `/mcp` is not above `/mcp2`. */
export function coversServer(resource: string, serverUrl: string): boolean {
  if (!URL.canParse(resource)) return false
  const above = new URL(resource)
  const server = new URL(serverUrl)
  if (above.origin !== server.origin || above.origin === 'null' || above.username !== '' || above.hash !== '')
    return false
  if (above.search !== '' && above.search !== server.search) return false
  const folder = above.pathname.endsWith('/') ? above.pathname : `${above.pathname}/`
  return `${server.pathname}/`.startsWith(folder)
}

/**
 * The canonical URI of a server (MCP, Resource Parameter Implementation): without a fragment, and without a slash that is its whole path. Nor with a password:
 * it goes to somebody else.
 */
export function canonicalResource(serverUrl: string): string {
  const url = new URL(serverUrl)
  url.hash = ''
  url.username = ''
  url.password = ''
  return url.pathname === '/' && url.search === '' ? url.origin : url.href
}
