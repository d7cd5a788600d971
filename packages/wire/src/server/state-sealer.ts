// `requestState` goes through the client and comes back from anywhere: it is sealed (AES-256-GCM, a key per process), bound to who asked what, and expires.
import type * as Crypto from 'node:crypto'
import type { JsonObject } from '../protocol.ts'
import { isObject } from '../validate.ts'

const crypto = process.getBuiltinModule('node:crypto') as typeof Crypto
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals small objects into texts that only the same process, for the same binding, opens again. */
export class StateSealer {
  readonly #key: Buffer
  readonly #randomBytes: (count: number) => Buffer
  readonly #dateMs: () => number

  constructor(randomBytes: (count: number) => Buffer, dateMs: () => number) {
    this.#randomBytes = randomBytes
    this.#dateMs = dateMs
    this.#key = randomBytes(32)
  }

  /** `binding` is what must be the same when it is opened; it is not inside. */
  seal(payload: JsonObject, binding: string, lifetimeMs: number): string {
    const nonce = this.#randomBytes(NONCE_BYTES)
    const cipher = crypto.createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(binding))
    const text = JSON.stringify({ payload, expiresAtMs: this.#dateMs() + lifetimeMs })
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString(
      'base64url',
    )
  }

  /** The payload; undefined for whatever was changed, bound otherwise, expired or never ours. */
  open(sealed: string, binding: string): JsonObject | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    // Base64 readers skip what they do not know: only the one spelling that we wrote is accepted.
    if (bytes.length <= NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== sealed) return undefined
    try {
      const decipher = crypto.createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(Buffer.from(binding)).setAuthTag(bytes.subarray(-TAG_BYTES))
      const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
      const { payload, expiresAtMs } = JSON.parse(text) as { payload: unknown; expiresAtMs: number }
      return isObject(payload) && this.#dateMs() < expiresAtMs ? payload : undefined
    } catch {
      return undefined
    }
  }
}

/** A digest of what is asked: the method and its parameters, without what changes from round to round. */
export function requestDigest(method: string, params: JsonObject): string {
  const { _meta, inputResponses, requestState, ...asked } = params
  return crypto
    .createHash('sha256')
    .update(`${method}\n${canonicalJson(asked)}`)
    .digest('base64url')
}

/** JSON with sorted names, so that the order in which a client writes them does not matter. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isObject(value) || isRawJson(value)) return JSON.stringify(value)
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`)
  return `{${members.join(',')}}`
}

function isRawJson(value: object): boolean {
  return (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON(value)
}
