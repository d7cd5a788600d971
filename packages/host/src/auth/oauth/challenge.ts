// Reads `WWW-Authenticate` (RFC 9110, 11.6.1), several challenges and several headers joined by ", ". Pure. What cannot be read to the letter is not there.

/** What a server says when it refuses; Bearer and DPoP are the schemes that count. */
export interface Challenge {
  /** Whether a challenge of the scheme DPoP was among them. */
  readonly offersDpop: boolean
  /** Whether a challenge of the scheme Bearer was among them. */
  readonly offersBearer: boolean
  /** `invalid_token`, `insufficient_scope`, `use_dpop_nonce`, … */
  readonly error?: string
  readonly description?: string
  readonly scopes?: readonly string[]
  /** Where the server's metadata is (RFC 9728); not looked at yet. */
  readonly resourceMetadata?: string
}

/** A longer header is no challenge. */
const HEADER_CHARS_MAX = 8_192
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAMETER = new RegExp(`^(${TOKEN})\\s*=\\s*(.*)$`, 's')
const SCHEME = new RegExp(`^(${TOKEN})(?:\\s+(?!=)(.*))?$`, 's')
const BARE = new RegExp(`^${TOKEN}$`)
const QUOTED = /^"((?:[^"\\]|\\.)*)"$/s
/** RFC 6749, 3.3. */
const SCOPES = /^[!\x23-\x5b\x5d-\x7e]+(?: [!\x23-\x5b\x5d-\x7e]+)*$/
/** RFC 6749, 5.2. */
const ERROR = /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,128}$/

interface RawChallenge {
  readonly scheme: string
  /** Values by name in lower case; `undefined`: written twice, or not to be read. */
  readonly parameters: Map<string, string | undefined>
}

/** The challenge that a sign-in can answer; undefined: there is none. */
export function parseChallenge(header: string | undefined): Challenge | undefined {
  if (header === undefined || header.length > HEADER_CHARS_MAX) return undefined
  const parts = splitUnquoted(header)
  if (parts === undefined) return undefined
  const all = readChallenges(parts)
  const bearer = all.filter(({ scheme }) => scheme === 'bearer')
  const dpop = all.filter(({ scheme }) => scheme === 'dpop')
  const ordered = [...bearer, ...dpop]
  if (ordered.length === 0) return undefined
  const value = (name: string): string | undefined =>
    ordered.find(({ parameters }) => parameters.has(name))?.parameters.get(name)
  const error = value('error')
  const description = value('error_description')
  const scope = value('scope')
  const resourceMetadata = value('resource_metadata')
  return {
    offersBearer: bearer.length > 0,
    offersDpop: dpop.length > 0,
    ...(error !== undefined && ERROR.test(error) ? { error } : {}),
    ...(description === undefined ? {} : { description }),
    ...(scope !== undefined && SCOPES.test(scope) ? { scopes: [...new Set(scope.split(' '))] } : {}),
    ...(resourceMetadata === undefined ? {} : { resourceMetadata }),
  }
}

/** The text between commas and semicolons that are not quoted; undefined: a quote has no end. */
function splitUnquoted(header: string): string[] | undefined {
  const parts: string[] = []
  let begin = 0
  let isQuoted = false
  for (let at = 0; at < header.length; at++) {
    const character = header[at]
    if (isQuoted && character === '\\') at++
    else if (character === '"') isQuoted = !isQuoted
    else if (!isQuoted && (character === ',' || character === ';')) {
      parts.push(header.slice(begin, at))
      begin = at + 1
    }
  }
  if (isQuoted) return undefined
  parts.push(header.slice(begin))
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

function readChallenges(parts: readonly string[]): RawChallenge[] {
  const challenges: RawChallenge[] = []
  for (const part of parts) {
    if (PARAMETER.test(part)) {
      addParameter(challenges.at(-1), part)
      continue
    }
    const scheme = SCHEME.exec(part)
    if (scheme === null) continue
    const challenge: RawChallenge = { scheme: (scheme[1] ?? '').toLowerCase(), parameters: new Map() }
    challenges.push(challenge)
    addParameter(challenge, scheme[2] ?? '')
  }
  return challenges
}

function addParameter(challenge: RawChallenge | undefined, text: string): void {
  const parameter = PARAMETER.exec(text.trim())
  if (challenge === undefined || parameter === null) return
  const name = (parameter[1] ?? '').toLowerCase()
  const isTwice = challenge.parameters.has(name)
  challenge.parameters.set(name, isTwice ? undefined : readValue(parameter[2] ?? ''))
}

function readValue(text: string): string | undefined {
  const quoted = QUOTED.exec(text.trim())
  if (quoted !== null) return (quoted[1] ?? '').replace(/\\(.)/gs, '$1')
  return BARE.test(text.trim()) ? text.trim() : undefined
}
