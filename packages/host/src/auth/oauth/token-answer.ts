// Reads what a token endpoint answers (RFC 6749, 5.1 and 5.2), to the letter where it counts. Pure.
import { cleanLine, isObject, type JsonObject, redact } from '../../base/index.ts'
import type { Subject, TokenSet } from '../grant.ts'
import { placeOf } from './endpoints.ts'
import { readDocument } from './metadata.ts'
import { normalizeScopes } from './scopes.ts'
import { SignInError } from './sign-in-error.ts'

const TOKEN_CHARS_MAX = 32 * 1024
const ID_TOKEN_CHARS_MAX = 64 * 1024
/** A header can carry it. */
const TOKEN = /^[\x21-\x7e]+$/
const ERROR = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,128}$/
const DESCRIPTION_CHARS_MAX = 300
const SUBJECT_CHARS_MAX = 255
const NAME_CHARS_MAX = 100
/** Ten years: longer is no promise that anybody can keep. */
const LIFETIME_SECONDS_MAX = 315_360_000

/** What was asked, as far as the answer depends on it. */
export interface TokenQuestion {
  readonly endpoint: string
  /** When the request left, in milliseconds of the epoch: the lifetime counts from there. */
  readonly askedAtMs: number
  /** The token is to be bound to a key. */
  readonly isBound: boolean
  /** Nothing of these may be shown. */
  readonly secrets: readonly string[]
}

export interface TokenReading {
  readonly tokens: TokenSet
  readonly subject?: Subject
}

/** An error of OAuth in an answer; `error` is absent where there was none that can be read. */
export interface OAuthRefusal {
  readonly error?: string
  /** For a person: one clean line. */
  readonly text: string
  readonly description?: string
}

/** @throws {SignInError} `answer-invalid`, `provider-refused`, `scope-refused` */
export function readTokens(status: number, body: Buffer, question: TokenQuestion): TokenReading {
  const document = readDocument(body)
  const isError = status < 200 || status > 299 || (document?.['error'] !== undefined && !('access_token' in document))
  if (isError) throw refusalError(readRefusal(status, document, question.secrets), question.endpoint, status)
  if (document === undefined) throw invalid('an answer that is no JSON object', question, status)
  const accessToken = readToken(document, 'access_token', question)
  if (accessToken === undefined) throw invalid('an answer without "access_token"', question, status)
  const refreshToken = readToken(document, 'refresh_token', question)
  const expiresAtMs = readExpiry(document['expires_in'], question.askedAtMs)
  const scopes = typeof document['scope'] === 'string' ? normalizeScopes([document['scope']]) : []
  const subject = readSubject(document['id_token'])
  return {
    tokens: {
      accessToken,
      type: readType(document['token_type'], question),
      ...(refreshToken === undefined ? {} : { refreshToken }),
      ...(scopes.length === 0 ? {} : { scopes }),
      ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    },
    ...(subject === undefined ? {} : { subject }),
  }
}

/** The error of an answer, clean, bounded, and without anything of the request that is secret. */
export function readRefusal(
  status: number,
  document: JsonObject | undefined,
  secrets: readonly string[],
): OAuthRefusal {
  const { error, error_description: description } = document ?? {}
  if (typeof error !== 'string') return { text: `HTTP ${status}` }
  return describeRefusal(error, typeof description === 'string' ? description : undefined, secrets)
}

/** An OAuth error for a person. Text that is not in the form of one is left out. */
export function describeRefusal(
  error: string,
  description: string | undefined,
  secrets: readonly string[],
): OAuthRefusal {
  if (!ERROR.test(error)) return { text: 'an error that cannot be shown' }
  const code = redact(cleanLine(error), secrets)
  const clean = description === undefined ? '' : cleanLine(redact(description, secrets), DESCRIPTION_CHARS_MAX)
  if (clean === '') return { error: code, text: `"${code}"` }
  return { error: code, description: clean, text: `"${code}": ${clean}` }
}

/** The refusal as an error of its kind. */
export function refusalError(refusal: OAuthRefusal, endpoint: string, status?: number): SignInError {
  const { error, description, text } = refusal
  const url = placeOf(endpoint)
  if (error === undefined && status !== undefined && status >= 200 && status <= 299)
    return new SignInError('answer-invalid', `${url} answered with ${text}`, { url, status })
  const kind = error === 'invalid_scope' ? 'scope-refused' : 'provider-refused'
  return new SignInError(kind, `${url} refused with ${text}`, {
    url,
    ...(error === undefined ? {} : { error }),
    ...(description === undefined ? {} : { description }),
    ...(status === undefined ? {} : { status }),
  })
}

function readToken(document: JsonObject, field: string, question: TokenQuestion): string | undefined {
  const value = document[field]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string' && value.length <= TOKEN_CHARS_MAX && TOKEN.test(value)) return value
  throw invalid(`a "${field}" that cannot be used`, question)
}

function readType(value: unknown, question: TokenQuestion): TokenSet['type'] {
  const type = typeof value === 'string' ? value.toLowerCase() : ''
  if (type === 'dpop' && question.isBound) return 'DPoP'
  if (type === 'bearer' && !question.isBound) return 'Bearer'
  if (type === 'bearer')
    throw invalid('a token that is not bound to the key that it was asked to be bound to', question)
  throw invalid('a "token_type" that is not Bearer', question)
}

/** A lifetime that makes no sense is one that nobody knows; 0 is how some say that there is no end. */
function readExpiry(value: unknown, askedAtMs: number): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,12}(?:\.\d+)?$/.test(value) ? Number(value) : value
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds <= 0) return undefined
  return askedAtMs + Math.floor(Math.min(seconds, LIFETIME_SECONDS_MAX) * 1000)
}

/** Who signed in. The token came from the token endpoint itself, so its signature says nothing more (OpenID Connect Core, 3.1.3.7). */
function readSubject(idToken: unknown): Subject | undefined {
  if (typeof idToken !== 'string' || idToken.length > ID_TOKEN_CHARS_MAX) return undefined
  const claims = readDocument(Buffer.from(idToken.split('.')[1] ?? '', 'base64url'))
  if (!isObject(claims) || typeof claims['sub'] !== 'string') return undefined
  const id = cleanLine(claims['sub'], SUBJECT_CHARS_MAX)
  if (id === '') return undefined
  const name = [claims['name'], claims['preferred_username'], claims['email']]
    .map((text) => (typeof text === 'string' ? cleanLine(text, NAME_CHARS_MAX) : ''))
    .find((text) => text !== '')
  return { id, ...(name === undefined ? {} : { name }) }
}

function invalid(what: string, { endpoint }: TokenQuestion, status?: number): SignInError {
  const url = placeOf(endpoint)
  return new SignInError('answer-invalid', `${url} gave ${what}`, { url, ...(status === undefined ? {} : { status }) })
}
