// The official SDK, for what it puts together well: requests for tokens and their proofs. It is loaded when somebody first signs in, and reaches the world
// through our port only. What it makes of an answer is not used: its readers are laxer than ours.
import type { FetchLike } from '@modelcontextprotocol/client'
import { ask, wasSent } from './asking.ts'
import { formEncode } from './client-authentication.ts'
import type { AddressRule } from './endpoints.ts'
import type { Asking } from './flow.ts'
import type { OAuthAnswer } from './port.ts'
import { SignInError } from './sign-in-error.ts'

export type Sdk = typeof import('@modelcontextprotocol/client')

export function loadSdk(): Promise<Sdk> {
  return import('@modelcontextprotocol/client')
}

/** Whom a request goes to, and under which rule. */
export interface Addressee extends Asking {
  /** The field that its URL came from. */
  readonly field: string
  readonly addresses: AddressRule
  readonly ca?: string | undefined
}

/** What came of the last request that was made on the way. */
export type Reply =
  | { readonly kind: 'answered'; readonly status: number; readonly body: Buffer }
  /** `sent`: the other side may have seen the request. */
  | { readonly kind: 'failed'; readonly error: SignInError; readonly sent: boolean }

/** A reply, and what was in the request that nobody else should see. */
export interface Exchanged {
  readonly reply: Reply
  readonly secrets: readonly string[]
}

/** Parameters of requests that are secrets. */
const SECRET_PARAMETERS = [
  'code',
  'code_verifier',
  'refresh_token',
  'client_secret',
  'client_assertion',
  'assertion',
  'subject_token',
  'token',
]
const NONCE = /^[\x21-\x7e]{1,1024}$/
/** What the SDK reads of an answer besides its body. */
const HEADERS_READ = ['content-type', 'dpop-nonce', 'www-authenticate']
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Lets the SDK make a request, and hands over what really came back.
 * @param run Gets a `fetch` that goes through the port.
 */
export async function exchange(to: Addressee, run: (fetchFn: FetchLike) => Promise<unknown>): Promise<Exchanged> {
  const secrets: string[] = []
  let reply: Reply | undefined
  const fetchFn: FetchLike = async (url, init) => {
    // A repetition that fails is worse than the answer before it.
    reply = undefined
    const headers = Object.fromEntries(new Headers(init?.headers))
    const body = bodyOf(init?.body)
    secrets.push(...secretsOf(headers, body))
    try {
      const answer = await ask(to.port, String(url), {
        method: init?.method === 'POST' ? 'POST' : 'GET',
        headers,
        ...(body === undefined ? {} : { body }),
        addresses: to.addresses,
        field: to.field,
        ...(to.ca === undefined ? {} : { ca: to.ca }),
        ...(to.signal === undefined ? {} : { signal: to.signal }),
        ...(to.timeoutMs === undefined ? {} : { timeoutMs: to.timeoutMs }),
      })
      reply = { kind: 'answered', status: answer.status, body: answer.body }
      return responseOf(answer)
    } catch (error) {
      if (error instanceof SignInError) reply = { kind: 'failed', error, sent: wasSent(error) }
      throw error
    }
  }
  try {
    await run(fetchFn)
  } catch (error) {
    reply ??= { kind: 'failed', error: notMade(error, to.field), sent: false }
  }
  reply ??= { kind: 'failed', error: notMade(undefined, to.field), sent: false }
  return { reply, secrets }
}

/** The message of the cause stays out: it may hold a key. */
function notMade(cause: unknown, field: string): SignInError {
  if (cause instanceof SignInError) return cause
  return new SignInError('settings-invalid', `The request to "${field}" could not be put together`, { field })
}

function bodyOf(body: unknown): string | undefined {
  if (body === undefined || body === null) return undefined
  return typeof body === 'string' || body instanceof URLSearchParams ? body.toString() : undefined
}

/** Each as it is and as a form writes it, which differs from what addresses write. */
function secretsOf(headers: Readonly<Record<string, string>>, body: string | undefined): string[] {
  const parameters = new URLSearchParams(body ?? '')
  const found = SECRET_PARAMETERS.flatMap((name) => parameters.getAll(name))
  const basic = /^Basic (\S+)$/i.exec(headers['authorization'] ?? '')?.[1]
  if (basic !== undefined) {
    const encoded = Buffer.from(basic, 'base64').toString('utf8').split(':').slice(1).join(':')
    found.push(basic, encoded, new URLSearchParams(`secret=${encoded}`).get('secret') ?? '')
  }
  return [...new Set(found.flatMap((secret) => [secret, formEncode(secret)]))]
}

function responseOf({ status, body, header }: OAuthAnswer): Response {
  const headers = new Headers()
  for (const name of HEADERS_READ) {
    const value = header(name)
    if (value !== undefined && (name !== 'dpop-nonce' || NONCE.test(value))) headers.set(name, value)
  }
  return new Response(WITHOUT_BODY.has(status) ? null : new Uint8Array(body), { status, headers })
}
