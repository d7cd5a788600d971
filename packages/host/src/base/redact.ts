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

/** Does a variable or header of this name usually hold a secret? */
export function namesSecret(name: string): boolean {
  return /token|key|secret|pass|auth|credential|cookie|session|private|pwd|\bpat\b/i.test(name)
}
