// Digests and comparisons that take the same time for every wrong value.
import type * as Crypto from 'node:crypto'

const crypto = (): typeof Crypto => process.getBuiltinModule('node:crypto')

/** SHA-256 as base64url. */
export function digestOf(text: string): string {
  return crypto().createHash('sha256').update(text).digest('base64url')
}

/** Are they the same? Takes as long for one that is wrong at its end as for one that is wrong at its beginning. */
export function isSameSecret(left: string, right: string): boolean {
  const [one, other] = [left, right].map((text) => crypto().createHash('sha256').update(text).digest())
  return one !== undefined && other !== undefined && crypto().timingSafeEqual(one, other)
}
