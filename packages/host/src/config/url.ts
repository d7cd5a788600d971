// Addresses of HTTP servers: where variables may stand in them, and which are refused. Pure.

import { type ExpansionFacts, type ExpansionOutcome, expandVariables, holdsVariable } from './expand.ts'

/**
 * Expands variables in the path and the query of `text`. A value is percent-encoded, so it can neither leave its part of the
 * address nor add a parameter; slashes of a path value stay.
 */
export function expandUrl(text: string, facts: ExpansionFacts): ExpansionOutcome {
  const authorityEnd = endOfAuthority(text)
  if (holdsVariable(text.slice(0, authorityEnd))) return { kind: 'misplaced', offset: 0 }
  const rest = text.slice(authorityEnd)
  const queryStart = startOfQuery(rest)
  const path = expandVariables(rest.slice(0, queryStart), facts, (value) => value.split('/').map(encode).join('/'))
  if (path.kind !== 'text') return moved(path, authorityEnd)
  const query = expandVariables(rest.slice(queryStart), facts, encode)
  if (query.kind !== 'text') return moved(query, authorityEnd + queryStart)
  return { kind: 'text', text: text.slice(0, authorityEnd) + path.text + query.text }
}

/** Why this address is not used, as the end of a sentence, or undefined. The address is in no text. */
export function urlFault(text: string): string | undefined {
  if (!URL.canParse(text)) return 'must be an address such as https://example.com/mcp.'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must start with https:// or http://.'
  if (url.username !== '' || url.password !== '') {
    return 'holds a user name or password. Put it in "headers" from a variable, or use "bearerTokenEnvVar".'
  }
  return undefined
}

/** Does the address go over the network unencrypted? */
export function isOpenNetwork(text: string): boolean {
  const url = new URL(text)
  if (url.protocol !== 'http:') return false
  const host = url.hostname.toLowerCase()
  return !(host === 'localhost' || host.endsWith('.localhost') || host === '[::1]' || /^127\./.test(host))
}

// Half a surrogate pair has no encoding; it becomes the replacement character.
const encode = (value: string): string => encodeURIComponent(value.replace(/\p{Cs}/gu, '\uFFFD'))

function endOfAuthority(text: string): number {
  const start = /^[^/?#]*:[\\/]{2}/.exec(text)?.[0].length ?? 0
  const length = text.slice(start).search(/[/?#\\]/)
  return length < 0 ? text.length : start + length
}

/** The first `?` outside a variable. */
function startOfQuery(rest: string): number {
  let isVariable = false
  for (let index = 0; index < rest.length; index += 1) {
    if (rest.startsWith('${', index)) isVariable = true
    else if (rest[index] === '}') isVariable = false
    else if (rest[index] === '?' && !isVariable) return index
  }
  return rest.length
}

function moved(outcome: ExpansionOutcome, by: number): ExpansionOutcome {
  return 'offset' in outcome ? { ...outcome, offset: outcome.offset + by } : outcome
}
