// Keeps values that we put into a server's environment or headers out of texts that the server writes.

/** Shorter values are words of every text. */
const SECRET_CHARS_MIN = 6

/** `text` with every occurrence of a secret replaced. Secrets shorter than 6 characters are left: they are no secrets. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of [...secrets].sort((a, b) => b.length - a.length))
    if (secret.length >= SECRET_CHARS_MIN) clean = clean.replaceAll(secret, '[redacted]')
  return clean
}

/** A JSON value with every occurrence of a secret in its texts replaced; the same value when there is none. */
export function redactJson(value: unknown, secrets: readonly string[]): unknown {
  if (secrets.length === 0 || value === undefined) return value
  const text = JSON.stringify(value)
  // In JSON a secret stands as JSON spells it.
  const clean = redact(text, [...secrets, ...secrets.map((secret) => JSON.stringify(secret).slice(1, -1))])
  return clean === text ? value : (JSON.parse(clean) as unknown)
}

/** Does a variable or header of this name usually hold a secret? */
export function namesSecret(name: string): boolean {
  return /token|key|secret|pass|auth|credential|cookie|session|private|pwd|\bpat\b/i.test(name)
}
