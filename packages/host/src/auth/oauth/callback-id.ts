// A path of its own for each server, so that what comes back for one is not taken for another. Pure.
import type * as Crypto from 'node:crypto'

const ID_BYTES = 9

/** 12 characters that stay the same for a server's URL; its fragment does not count. */
export function callbackId(serverUrl: string): string {
  const url = new URL(serverUrl)
  url.hash = ''
  const crypto: typeof Crypto = process.getBuiltinModule('node:crypto')
  return crypto.createHash('sha256').update(url.href).digest().subarray(0, ID_BYTES).toString('base64url')
}
