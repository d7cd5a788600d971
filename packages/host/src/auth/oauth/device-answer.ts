// Reads what an authorization server answers to who wants to sign in with a code (RFC 8628, 3.2). Pure.
import type { JsonObject } from '../../base/index.ts'
import { type AddressRule, checkEndpoint, placeOf } from './endpoints.ts'
import { readDocument } from './metadata.ts'
import { SignInError } from './sign-in-error.ts'
import { readRefusal, refusalError } from './token-answer.ts'

/** A code for a person, and what to ask with meanwhile. */
export interface DeviceAnswer {
  /** A secret. */
  readonly deviceCode: string
  readonly userCode: string
  readonly url: string
  readonly urlComplete?: string
  /** Milliseconds. */
  readonly lifeMs: number
  /** Between two questions, in milliseconds. */
  readonly intervalMs: number
}

/** What was asked, as far as the answer depends on it. */
export interface DeviceQuestion {
  readonly endpoint: string
  readonly addresses: AddressRule
  /** Nothing of these may be shown. */
  readonly secrets: readonly string[]
}

const DEVICE_CODE = /^[\x21-\x7e]{1,4096}$/
/** A person has to read and type it. */
const USER_CODE = /^[\x20-\x7e]{1,64}$/
/** A code that lives longer is asked for again. */
const LIFE_MS_MAX = 3_600_000
/** RFC 8628, 3.2. */
const INTERVAL_MS_DEFAULT = 5_000
const INTERVAL_MS_MIN = 1_000

/** @throws {SignInError} `provider-refused`, `scope-refused`, `answer-invalid`, `endpoint-refused` */
export function readDeviceAnswer(
  status: number,
  body: Buffer,
  { endpoint, addresses, secrets }: DeviceQuestion,
): DeviceAnswer {
  const document = readDocument(body)
  const isError = status < 200 || status > 299 || (document?.['error'] !== undefined && !('device_code' in document))
  if (isError) throw refusalError(readRefusal(status, document, secrets), endpoint, status)
  const invalid = (what: string): SignInError => {
    const url = placeOf(endpoint)
    return new SignInError('answer-invalid', `${url} gave ${what}`, { url, status })
  }
  if (document === undefined) throw invalid('an answer that is no JSON object')
  const deviceCode = textOf(document, 'device_code')
  if (!DEVICE_CODE.test(deviceCode)) throw invalid('no "device_code" that can be used')
  const userCode = textOf(document, 'user_code').trim()
  if (!USER_CODE.test(userCode)) throw invalid('no "user_code" that a person can enter')
  const lifeMs = millisecondsOf(document['expires_in'])
  if (lifeMs === undefined || lifeMs <= 0) throw invalid('no "expires_in" that says how long the code lives')
  const complete = document['verification_uri_complete']
  const intervalMs = millisecondsOf(document['interval']) ?? INTERVAL_MS_DEFAULT
  return {
    deviceCode,
    userCode,
    url: checkEndpoint(document['verification_uri'], 'verification_uri', addresses),
    ...(complete === undefined || complete === null
      ? {}
      : { urlComplete: checkEndpoint(complete, 'verification_uri_complete', addresses) }),
    lifeMs: Math.min(lifeMs, LIFE_MS_MAX),
    intervalMs: Math.max(intervalMs, INTERVAL_MS_MIN),
  }
}

function textOf(document: JsonObject, field: string): string {
  const value = document[field]
  return typeof value === 'string' ? value : ''
}

/** Of a number of seconds, which some write as a text. */
function millisecondsOf(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0
    ? Math.ceil(seconds * 1_000)
    : undefined
}
