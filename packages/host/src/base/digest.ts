import type * as Crypto from 'node:crypto'

/** Hex digits of a digest of `text`. SHA-1 only where a name has to stay what it is; it protects nothing. */
export function digestHex(text: string, chars: number, algorithm: 'sha256' | 'sha1' = 'sha256'): string {
  // Loaded when it is first needed: most commands never make a digest.
  const { createHash } = process.getBuiltinModule('node:crypto') as typeof Crypto
  return createHash(algorithm).update(text).digest('hex').slice(0, chars)
}
