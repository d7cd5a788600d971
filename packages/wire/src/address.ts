// Which addresses a URL that somebody else supplied may lead to. An allow-list: what is not known to be public is not public.

/** `any`: no rule. `public`: only addresses of the public Internet. `public-or-loopback`: those, and this machine's own. */
export type AddressRule = 'any' | 'public' | 'public-or-loopback'

export type AddressKind = 'public' | 'loopback' | 'other' | 'not-an-address'

/** Ranges of IPv4 that are not globally reachable (IANA registry of special-purpose addresses), multicast and reserved. */
const SPECIAL_IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
]
/** Parts of 2000::/3 that are not ordinary unicast: protocol assignments with Teredo, documentation, 6to4. */
const SPECIAL_IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

/** What kind of address this text is: dotted IPv4 or IPv6, as `dns.lookup` and `URL` write them. IPv4 inside IPv6 (mapped, NAT64) counts as what it holds. */
export function addressKind(text: string): AddressKind {
  const ipv4 = parseIpv4(text)
  if (ipv4 !== undefined) return ipv4Kind(ipv4)
  const ipv6 = parseIpv6(text)
  if (ipv6 === undefined) return 'not-an-address'
  if (startsWith(ipv6, '::1', 128)) return 'loopback'
  if (startsWith(ipv6, '::ffff:0:0', 96) || startsWith(ipv6, '64:ff9b::', 96)) return ipv4Kind(ipv6.slice(12))
  if (!startsWith(ipv6, '2000::', 3)) return 'other'
  return SPECIAL_IPV6.some(([prefix, bits]) => startsWith(ipv6, prefix, bits)) ? 'other' : 'public'
}

/** May a connection go to this address? Anything that is no address is refused. */
export function isAllowed(address: string, rule: AddressRule): boolean {
  if (rule === 'any') return true
  const kind = addressKind(address)
  return kind === 'public' || (kind === 'loopback' && rule === 'public-or-loopback')
}

function ipv4Kind(bytes: readonly number[]): AddressKind {
  if (bytes[0] === 127) return 'loopback'
  return SPECIAL_IPV4.some(([prefix, bits]) => samePrefix(bytes, parseIpv4(prefix) ?? [], bits)) ? 'other' : 'public'
}

function startsWith(bytes: readonly number[], prefix: string, bits: number): boolean {
  return samePrefix(bytes, parseIpv6(prefix) ?? [], bits)
}

function samePrefix(left: readonly number[], right: readonly number[], bits: number): boolean {
  for (let bit = 0; bit < bits; bit += 8) {
    const mask = bits - bit >= 8 ? 0xff : (0xff << (8 - (bits - bit))) & 0xff
    if (((left[bit / 8] ?? 0) & mask) !== ((right[bit / 8] ?? -1) & mask)) return false
  }
  return true
}

function parseIpv4(text: string): number[] | undefined {
  if (!/^(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}$/.test(text)) return undefined
  const bytes = text.split('.').map(Number)
  return bytes.every((byte) => byte <= 255) ? bytes : undefined
}

function parseIpv6(text: string): number[] | undefined {
  if (!text.includes(':')) return undefined
  const [address = ''] = text.split('%') // a zone says on which link, not where to
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address)
  const ipv4 = dotted === null ? undefined : parseIpv4(dotted[2] ?? '')
  if (dotted !== null && ipv4 === undefined) return undefined
  const whole = dotted === null || ipv4 === undefined ? address : `${dotted[1]}${hex(ipv4, 0)}:${hex(ipv4, 2)}`
  const halves = whole.split('::')
  if (halves.length > 2) return undefined
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const missing = 8 - head.length - tail.length
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...tail]
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined
  return groups.flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}

function hex(bytes: readonly number[], at: number): string {
  return (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16)
}
