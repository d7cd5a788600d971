// Which configured headers can be sent. Pure.

/** Names that belong to the connection or the protocol; a configured one would break framing or routing. */
const RESERVED: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'last-event-id',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Why a header of this name is not sent, or undefined. */
export function headerNameFault(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return 'it is not the name of a header'
  const lower = name.toLowerCase()
  if (RESERVED.has(lower) || lower.startsWith('mcp-')) return 'this header is set by the protocol'
  return undefined
}

/** Why this value cannot be sent, or undefined. The value is in no text. */
export function headerValueFault(value: string): string | undefined {
  for (const character of value) {
    const code = character.codePointAt(0) ?? 0
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return 'its value holds a control character'
    if (code > 0xff) return 'its value holds a character that headers cannot carry'
  }
  return undefined
}
