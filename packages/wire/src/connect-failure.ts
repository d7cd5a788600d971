// Turns what Node says about a connection that failed into a sentence that names the place, the reason and the way out.

/** Where a connection was to go. */
export interface Place {
  readonly host: string
  readonly port: number
  /** Host and port of the proxy, when the failure may be its. */
  readonly proxy?: string | undefined
  /** A certificate authority is configured for this server. */
  readonly hasCa?: boolean
}

const CAUSES_MAX = 8
const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_UNTRUSTED',
  'CERT_SIGNATURE_FAILURE',
])

interface NodeError extends Error {
  code?: string
  syscall?: string
  address?: string
  port?: number
  reason?: string
  cause?: unknown
  errors?: unknown
}

/** The error at the bottom: Node wraps some in others, and several attempts in one. */
export function rootCause(error: unknown): NodeError {
  let current = error
  for (let depth = 0; depth < CAUSES_MAX; depth++) {
    const { cause, errors } = current as NodeError
    const inner = Array.isArray(errors) && errors.length > 0 ? errors.at(-1) : cause
    if (!(inner instanceof Error)) break
    current = inner
  }
  return current instanceof Error ? current : new Error(String(current))
}

/** One sentence without a full stop. Never holds a header, a password or a URL. */
export function describeConnectFailure(error: unknown, { host, port, proxy, hasCa = false }: Place): string {
  const cause = rootCause(error)
  const code = cause.code ?? ''
  const server = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const via = proxy === undefined ? '' : ` through the proxy ${proxy}`
  if (UNTRUSTED.has(code)) return untrusted(server, code, hasCa)
  switch (code) {
    case 'ECONNREFUSED':
      return `Connection refused by ${cause.address === undefined ? server : `${cause.address}:${cause.port ?? port}`} (ECONNREFUSED)${via}: nothing listens there`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_NONAME':
      return `The name "${proxy ?? host}" could not be resolved (${code})`
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `${server} cannot be reached${via} (${code})`
    case 'CERT_HAS_EXPIRED':
      return `The certificate of ${server} has expired (${code})`
    case 'CERT_NOT_YET_VALID':
      return `The certificate of ${server} is not valid yet (${code}); is the clock right?`
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `The certificate of ${server} is for another name (${code})`
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
    case 'EPROTO':
      return `${server} does not speak TLS there (${code}); is its URL meant to begin with http://?`
    default:
      return `No connection to ${server}${via}: ${plain(cause.message)}${code === '' || cause.message.includes(code) ? '' : ` (${code})`}`
  }
}

function untrusted(server: string, code: string, hasCa: boolean): string {
  const selfSigned = code.includes('SELF_SIGNED') ? 'self-signed certificate' : 'unknown certificate authority'
  const way = hasCa
    ? 'the "ca" of this server is not the authority that signed it'
    : 'set "ca" of this server to the PEM file of the authority that signed it'
  return `The certificate of ${server} is not trusted (${selfSigned}, ${code}): ${way}`
}

/** What broke an exchange after its connection was there. */
export function describeExchangeFailure(error: unknown, { host, port }: Place): string {
  const cause = rootCause(error)
  const code = cause.code ?? ''
  const server = `${host.includes(':') ? `[${host}]` : host}:${port}`
  if (code === 'HPE_HEADER_OVERFLOW' || code === 'UND_ERR_HEADERS_OVERFLOW')
    return `The headers of the answer of ${server} are too large (${code})`
  if (code.startsWith('HPE_') || cause.name === 'HTTPParserError')
    return `The answer of ${server} is not HTTP (${code || plain(cause.message)})`
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET')
    return `${server} closed the connection before its answer was complete (${code})`
  return `The exchange with ${server} failed: ${plain(cause.message)}${code === '' || cause.message.includes(code) ? '' : ` (${code})`}`
}

/** One line of at most 300 characters, without control characters. OpenSSL's messages hold pointers and source files. */
function plain(message: string): string {
  return message
    .replace(/^[0-9A-F]{8,}:error:[0-9A-F]+:/i, '')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 300)
}
