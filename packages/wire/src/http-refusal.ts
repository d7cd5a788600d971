// What an answer that is no answer means: an HTTP status, a body of the wrong kind, a JSON-RPC error about a forgotten session. Pure.
import { WireError } from './errors.ts'
import { mediaType } from './outbound-rules.ts'
import type { Era, RpcError } from './protocol.ts'
import { METHOD_NOT_FOUND, rpcErrorIn } from './rpc-error.ts'

/** An answer with a failing status, or with a body that is no message. */
export interface Refusal {
  readonly status: number
  readonly contentType: string | undefined
  /** `www-authenticate`, all of them joined. */
  readonly challenge: string | undefined
  /** The first bytes of the body; see `REFUSAL_BYTES_MAX`. */
  readonly body: Buffer
}

/** What was asked, as far as the meaning of a refusal depends on it. */
export interface Asked {
  /** Undefined for notifications and answers. */
  readonly method: string | undefined
  readonly era: Era
  /** The request carried the id of a session. */
  readonly hadSession: boolean
  /** The handshake is over. */
  readonly greeted: boolean
  /** The older HTTP+SSE may be tried. */
  readonly mayFallBack: boolean
  /** Host and port, for messages. */
  readonly server: string
  /** Values that must not be shown, should the server repeat them. */
  readonly secrets: readonly string[]
}

export type RefusalPlan =
  | { readonly kind: 'authorize' } // if there are credentials to renew, else `error`
  | { readonly kind: 'session-lost' }
  | { readonly kind: 'fall-back' } // to HTTP+SSE of 2024-11-05
  | { readonly kind: 'fail' }

/** Bytes of a refusal's body that are read. */
export const REFUSAL_BYTES_MAX: number = 64 * 1024
const PREVIEW_CHARS_MAX = 300
const SECRET_CHARS_MIN = 6
const INVALID_PARAMS = -32602
const TRANSIENT = new Set([408, 429, 500, 502, 503, 504])
/** Requests that others may repeat when the server is only busy; an error object beneath such a status would make it look final. */
const OPENING = new Set(['server/discover', 'initialize', 'notifications/initialized', 'tools/list'])
/** Statuses with which a server of the older transport answers a POST to its stream's address. */
const OLDER_TRANSPORT = new Set([400, 404, 405])
/** How servers say that they know no such session, at the beginning of what they say. One table: nowhere else is anything decided by a sentence. */
const FORGOTTEN = [
  /^(?:no valid|no such|no active|unknown|invalid|missing|expired) (?:mcp[- ]?)?session\b/,
  /^(?:the )?(?:mcp[- ]?)?session\b[^.]{0,80}?\b(?:not found|expired|unknown|invalid|terminated|closed|does not exist)\b/,
  /^(?:no transport found|server (?:is )?not initialized|mcp-session-id header is required)\b/,
]
/** The same in an ordinary answer to a call, where it has to be all that is said: tools speak of sessions, too. */
const FORGOTTEN_ALONE =
  /^(?:server (?:is )?not initialized|no valid session id(?: provided)?|session (?:not found|expired|terminated))\.?$/
const PREFIX = /^(?:error|bad request|unauthorized|not found): ?/
const ERROR_OBJECT_BYTES_MAX = 2_048

/** What to do about it. */
export function planRefusal(refusal: Refusal, asked: Asked): RefusalPlan {
  const { status } = refusal
  if (isForgotten(refusal, asked)) return { kind: 'session-lost' }
  if (status === 401 || status === 403) return { kind: 'authorize' }
  const isOlder = asked.mayFallBack && asked.method === 'initialize' && OLDER_TRANSPORT.has(status)
  return isOlder && rpcErrorOf(refusal) === undefined ? { kind: 'fall-back' } : { kind: 'fail' }
}

function isForgotten(refusal: Refusal, { era, method, hadSession, greeted }: Asked): boolean {
  const { status, challenge, body } = refusal
  if (era !== 'legacy' || method === undefined || method === 'initialize') return false
  const rpc = rpcErrorOf(refusal)
  // Some answer 404 where they mean the method or its parameters.
  if (rpc?.code === METHOD_NOT_FOUND || rpc?.code === INVALID_PARAMS) return false
  if (status === 404) return hadSession
  const isCandidate = status === 400 ? greeted : status === 401 && hadSession && challenge === undefined
  return isCandidate && tells(rpc?.message ?? body.toString('utf8', 0, ERROR_OBJECT_BYTES_MAX))
}

function tells(message: string): boolean {
  const said = message.trim().toLowerCase().replace(PREFIX, '')
  return FORGOTTEN.some((sentence) => sentence.test(said))
}

/** A JSON-RPC error in an ordinary answer that says the same: legacy servers that were started anew and keep sessions in memory. */
export function saysForgotten(bytes: Buffer, start: number, end: number): boolean {
  if (end - start > ERROR_OBJECT_BYTES_MAX) return false
  const view = bytes.subarray(start, end)
  if (!view.includes('"error"')) return false
  const message = rpcErrorIn(view)?.message
  return message !== undefined && FORGOTTEN_ALONE.test(message.trim().toLowerCase().replace(PREFIX, ''))
}

/** The failure of the call. */
export function refusalError(refusal: Refusal, asked: Asked): WireError {
  const { status, challenge } = refusal
  const { method = 'message', server } = asked
  const sent = true
  if (status === 401 || status === 403) {
    const what = status === 401 ? 'wants a sign-in' : 'does not allow this'
    return new WireError('unauthorized', `${server} ${what} (HTTP ${status})`, {
      status,
      sent,
      ...(challenge === undefined ? {} : { challenge: redact(challenge, asked.secrets) }),
    })
  }
  const rpc = TRANSIENT.has(status) && OPENING.has(method) ? undefined : rpcErrorOf(refusal)
  if (rpc !== undefined) {
    const clean = redactError(rpc, asked.secrets)
    return new WireError('remote', clean.message, { rpc: clean, status, sent })
  }
  if (status === 404 && asked.era === 'modern' && refusal.body.length === 0)
    return new WireError('remote', `Method not found: ${method}`, {
      rpc: { code: METHOD_NOT_FOUND, message: 'Method not found' },
      status,
      sent,
    })
  const shown = preview(refusal, asked.secrets)
  return new WireError(
    'http',
    `${server} answered "${method}" with HTTP ${status}${shown === '' ? '' : `: ${shown}`}`,
    {
      status,
      sent,
    },
  )
}

/** A successful status whose body is neither JSON nor an event stream. */
export function wrongBodyError(refusal: Refusal, { method = 'message', server, secrets }: Asked): WireError {
  const type = mediaType(refusal.contentType)
  const what =
    type === 'text/html'
      ? 'a web page, perhaps for a sign-in,'
      : type === ''
        ? 'a body without a content type'
        : `a body of the type "${type.slice(0, 100)}"`
  const shown = preview(refusal, secrets)
  return new WireError(
    'malformed',
    `${server} answered "${method}" with ${what} instead of JSON or events${shown === '' ? '' : `: ${shown}`}`,
    {
      status: refusal.status,
      sent: true,
    },
  )
}

function rpcErrorOf({ contentType, body }: Refusal): ReturnType<typeof rpcErrorIn> {
  const type = mediaType(contentType)
  return type === '' || type === 'application/json' || type.endsWith('+json') ? rpcErrorIn(body) : undefined
}

/** A line of the body that a person can read: a page's title and text, without tags, control characters or secrets. */
function preview({ contentType, body }: Refusal, secrets: readonly string[]): string {
  let text = redact(body.toString('utf8', 0, 8 * 1024), secrets)
  if (mediaType(contentType) === 'text/html' || /^\s*<(?:!doctype|html)/i.test(text))
    text = text
      .replace(/<(script|style)\b.{0,8000}?(?:<\/\1>|$)/gis, ' ')
      .replace(/<[^<>]{0,2000}>/g, ' ')
      .replace(/&(?:nbsp|#160);/g, ' ')
  text = text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return text.length > PREVIEW_CHARS_MAX ? `${text.slice(0, PREVIEW_CHARS_MAX)}…` : text
}

function redactError(rpc: RpcError, secrets: readonly string[]): RpcError {
  const text = JSON.stringify(rpc)
  const clean = redact(text, secrets)
  if (clean === text) return rpc
  try {
    return JSON.parse(clean) as RpcError
  } catch {
    return { code: rpc.code, message: redact(rpc.message, secrets) }
  }
}

/** Takes out what this side had sent in confidence, in the forms in which it may come back. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) {
    if (secret.length < SECRET_CHARS_MIN) continue
    const forms = [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('base64url'),
    ]
    for (const form of forms) clean = clean.replaceAll(form, '[redacted]')
  }
  return clean
}
