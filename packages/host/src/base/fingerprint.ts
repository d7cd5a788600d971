/** Odd multipliers, one for each of the four words. */
const MULTIPLIERS = [0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f] as const

/**
 * 128 bits of a text as 32 hex digits, for names of cache files: equal texts, equal names, and others by accident once in a very long time. No defence
 * against somebody who searches for two of one name; {@link digestHex} is, and costs 15 ms when it is first used.
 */
export function fingerprint(text: string): string {
  return MULTIPLIERS.map((multiplier, index) => word(text, multiplier, index)).join('')
}

function word(text: string, multiplier: number, seed: number): string {
  let hash = seed ^ text.length
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), multiplier)
    hash = (hash << 13) | (hash >>> 19)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0).toString(16).padStart(8, '0')
}
