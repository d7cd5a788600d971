// The one door in. Host, Origin, media type, token and size are judged here, from the head of a request alone: before routing, before a byte of the body is read.
import type { IncomingHttpHeaders } from 'node:http'

/** What a route demands and allows. A path without a route is treated as one that demands a token. */
export interface Route {
  readonly access: 'public' | 'token'
  readonly methods: readonly string[]
}

/** What the door knows. */
export interface DoorPolicy {
  readonly hosts: ReadonlySet<string>
  readonly origins: ReadonlySet<string>
  /** Origins outside of this endpoint that were allowed by name; they may come from another site. */
  readonly foreignOrigins: ReadonlySet<string>
  readonly routes: ReadonlyMap<string, Route>
  readonly bodyBytesMax: number
  readonly headerCountMax: number
}

/** The head of a request, as far as the door looks at it. */
export interface RequestHead {
  readonly method: string
  /** The request target, exactly as it came. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  /** Name, value, name, value: every header line as it came. */
  readonly rawHeaders: readonly string[]
}

/** Why a request is not served. */
export interface Refusal {
  readonly status: number
  readonly message: string
  /** Extra header lines. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Who is asking: a name for the token that was shown, or `local` where none is needed. Undefined: the token is missing or wrong. */
export type Authenticate = (authorization: string | undefined) => string | undefined

/** The door's answer. */
export type Admission =
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'admitted'; readonly principal: string }

/** Headers that may stand only once, and of which Node keeps the first; each with a bit of its own. */
const SINGLE: ReadonlyMap<string, number> = new Map(
  ['host', 'authorization', 'content-type', 'content-length', 'origin', 'mcp-session-id'].map((name, at) => [
    name,
    1 << at,
  ]),
)
const SINGLE_LENGTHS: ReadonlySet<number> = new Set([...SINGLE.keys()].map(({ length }) => length))
const JSON_TYPE = /^application\/json(?:[ \t]*;[ \t]*charset="?utf-8"?)?$/i
const UNAUTHORIZED: Refusal = {
  status: 401,
  message: 'This endpoint wants a token: Authorization: Bearer TOKEN',
  headers: { 'www-authenticate': 'Bearer realm="convoke"' },
}

/** Judges the head of a request. Pure but for `authenticate`. */
export function admit(head: RequestHead, policy: DoorPolicy, authenticate: Authenticate): Admission {
  const refusal = refuseAddress(head, policy) ?? refuseSite(head.headers, policy) ?? refuseMedia(head)
  if (refusal !== undefined) return { kind: 'refused', refusal }
  const route = policy.routes.get(head.target)
  const principal = route?.access === 'public' ? 'anyone' : authenticate(head.headers.authorization)
  if (principal === undefined) return { kind: 'refused', refusal: UNAUTHORIZED }
  const late = refuseSize(head, policy) ?? refuseRoute(head.method, route)
  return late === undefined ? { kind: 'admitted', principal } : { kind: 'refused', refusal: late }
}

function refuseAddress({ target, headers, rawHeaders }: RequestHead, policy: DoorPolicy): Refusal | undefined {
  if (!target.startsWith('/')) return { status: 400, message: 'The request target must be a path' }
  if (rawHeaders.length > 2 * policy.headerCountMax)
    return { status: 431, message: `More than ${policy.headerCountMax} header lines` }
  const twice = repeated(rawHeaders)
  if (twice !== undefined) return { status: 400, message: `The header "${twice}" stands twice` }
  if (headers.host === undefined) return { status: 400, message: 'No Host header' }
  return policy.hosts.has(headers.host) ? undefined : { status: 403, message: 'This Host is not served here' }
}

function repeated(rawHeaders: readonly string[]): string | undefined {
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at] as string
    if (!SINGLE_LENGTHS.has(raw.length)) continue
    const name = raw.toLowerCase()
    const bit = SINGLE.get(name)
    if (bit === undefined) continue
    if ((seen & bit) !== 0) return name
    seen |= bit
  }
  return undefined
}

function refuseSite(headers: IncomingHttpHeaders, policy: DoorPolicy): Refusal | undefined {
  const { origin } = headers
  if (origin !== undefined && !policy.origins.has(origin))
    return { status: 403, message: 'This Origin is not served here' }
  const site = headers['sec-fetch-site']
  const own = site === undefined || site === 'same-origin' || site === 'none'
  return own || (origin !== undefined && policy.foreignOrigins.has(origin))
    ? undefined
    : { status: 403, message: 'Requests from other sites are not served' }
}

function refuseMedia({ method, headers }: RequestHead): Refusal | undefined {
  if (headers['content-encoding'] !== undefined) return { status: 415, message: 'Encoded bodies are not read' }
  if (method !== 'POST') return undefined
  return JSON_TYPE.test(headers['content-type'] ?? '')
    ? undefined
    : { status: 415, message: 'Content-Type must be application/json' }
}

function refuseSize({ method, headers }: RequestHead, policy: DoorPolicy): Refusal | undefined {
  const length = Number(headers['content-length'] ?? 0)
  if (method !== 'POST')
    return length > 0 || headers['transfer-encoding'] !== undefined
      ? { status: 400, message: `${method} with a body` }
      : undefined
  return length > policy.bodyBytesMax ? tooLarge(policy.bodyBytesMax) : undefined
}

/** The refusal of a body over the cap. */
export function tooLarge(bodyBytesMax: number): Refusal {
  return { status: 413, message: `The body has more than ${bodyBytesMax} bytes` }
}

function refuseRoute(method: string, route: Route | undefined): Refusal | undefined {
  if (route === undefined) return { status: 404, message: 'Nothing is served here' }
  if (route.methods.includes(method)) return undefined
  return { status: 405, message: `${method} is not served here`, headers: { allow: route.methods.join(', ') } }
}
