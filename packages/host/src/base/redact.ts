// Keeps values that we put into a server's environment or headers out of texts that the server writes.

/** Shorter values are words of every text. */
const SECRET_CHARS_MIN = 6

/** `text` with every occurrence of a secret replaced, in the forms in which it may come back. Secrets shorter than 6 characters are left: they are no secrets. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
    if (secret.length < SECRET_CHARS_MIN) continue
    for (const form of formsOf(secret)) clean = clean.replaceAll(form, '[redacted]')
  }
  return clean
}

/** As it is, as JSON spells it, in an address, in a form, and in Base64. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const text = bytes.toString()
  const form = new URLSearchParams({ '': text }).toString().slice(1)
  const coded = [encodeURIComponent(text), form, bytes.toString('base64'), bytes.toString('base64url')]
  return [secret, JSON.stringify(secret).slice(1, -1), ...coded]
}

/** A JSON value with every occurrence of a secret in its texts replaced; the same value when there is none. */
export function redactJson(value: unknown, secrets: readonly string[]): unknown {
  if (secrets.length === 0 || value === undefined) return value
  const text = JSON.stringify(value)
  const clean = redact(text, secrets)
  if (clean === text) return value
  try {
    return JSON.parse(clean) as unknown
  } catch {
    // A secret that also stands outside of texts, as one of digits does where there is a number.
    return JSON.parse(text, (_key, member: unknown) => (typeof member === 'string' ? redact(member, secrets) : member))
  }
}

/** Does a variable or header of this name usually hold a secret? */
export function namesSecret(name: string): boolean {
  return /token|key|secret|pass|auth|credential|cookie|session|private|pwd|\bpat\b/i.test(name)
}

/** The secret values in the value of a header: all of it, and what follows a scheme such as `Bearer`. */
export function secretsInHeader(value: string): string[] {
  const token = /^[A-Za-z][A-Za-z0-9-]{0,30} +(\S.*)$/.exec(value)?.[1]
  return token === undefined ? [value] : [value, token]
}

/** The secret values in an address: its password, and what parameters with the name of a secret hold. */
export function secretsInUrl(url: string): string[] {
  const password = /^[a-z][a-z0-9+.-]{0,30}:\/\/[^/?#:]*:([^/?#]+)@/i.exec(url)?.[1]
  const parameters = [...url.matchAll(/[?&]([^=&#]+)=([^&#]+)/g)]
  const values = parameters.filter(([, name = '']) => namesSecretValue(name)).map(([, , value = '']) => value)
  return (password === undefined ? values : [password, ...values]).flatMap((value) => {
    const plain = decoded(value)
    return plain === value ? [value] : [value, plain]
  })
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The secret values in the arguments of a command: `--token VALUE`, `--api-key=VALUE`, `--header "Authorization: VALUE"`, addresses with a password. */
export function secretsInArguments(args: readonly string[]): string[] {
  return args.flatMap((arg, at) => {
    const before = args[at - 1] ?? ''
    const [, name = '', value = ''] = /^-{1,2}([^=]+)=(.+)$/s.exec(arg) ?? []
    if (value !== '') return namesSecretValue(name) && !isPath(value) ? [value] : secretsInUrl(value)
    if (/^(?:--header|-H)$/.test(before)) return secretsInHeaderLine(arg)
    const follows = /^--?[A-Za-z]/.test(before) && !before.includes('=') && !arg.startsWith('-')
    return follows && namesSecretValue(before) && !isPath(arg) ? [arg] : secretsInUrl(arg)
  })
}

function secretsInHeaderLine(line: string): string[] {
  const [, name = '', value = ''] = /^([^:]+): *(.+)$/s.exec(line) ?? []
  return value !== '' && namesSecret(name) ? secretsInHeader(value) : []
}

/** Stricter than {@link namesSecret}: `--keyring` and `--session-dir` are followed by no secret. */
function namesSecretValue(name: string): boolean {
  return /(?:token|secret|password|passwd|pwd|credentials?|cookie|key|auth|(?:^|[-_])pat)$/i.test(name)
}

/** A key that is given as a file. */
const isPath = (value: string): boolean => /^(?:[/~]|\.\.?\/)/.test(value)
