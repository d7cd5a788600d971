/** A word as a shell needs it, for lines to copy. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** The name of a server behind the options of a command: quoted where a shell would read more into it, and never taken for an option. */
export function shellOperand(name: string): string {
  const word = /^[\w@:./-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`
  return name.startsWith('-') ? `-- ${word}` : word
}
