// Replaces ${VAR}, ${VAR:-default}, ${env:VAR} and a leading ~ in one text. Pure; what was put in is never looked at again.

/** What expansion needs to know of the world. */
export interface ExpansionFacts {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly homeDirectory: string
}

/** How an expansion ended. Offsets count UTF-16 code units in the text before expansion; no value is in an outcome but `text`. */
export type ExpansionOutcome =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'missing'; readonly variable: string; readonly offset: number; readonly hint: string }
  | { readonly kind: 'input'; readonly input: string; readonly offset: number }
  | { readonly kind: 'malformed'; readonly reason: string; readonly offset: number }
  | { readonly kind: 'misplaced'; readonly offset: number }
  | { readonly kind: 'too-long' }

/** Longest text after expansion, in characters: what Linux accepts as one argument. */
export const EXPANDED_CHARS_MAX = 131_072

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Variables that only an editor can fill in, with what to write instead. */
const EDITOR_VARIABLES: ReadonlyMap<string, string> = new Map([
  ['workspaceFolder', 'it is an editor variable; write the path'],
  ['workspaceFolderBasename', 'it is an editor variable; write the name'],
  ['workspaceRoot', 'it is an editor variable; write the path'],
  ['userHome', 'it is an editor variable; write ~'],
  ['cwd', 'it is an editor variable; write the path'],
])

/** Does the text hold something that {@link expandVariables} would act on? */
export function holdsVariable(text: string): boolean {
  return text.replaceAll('$${', '').includes('${')
}

/**
 * Replaces the variables of `text`. `$${` stands for a literal `${`. `encode` treats each value before it is put in
 * (percent-encoding in URLs); a default is treated like a value.
 */
export function expandVariables(
  text: string,
  facts: ExpansionFacts,
  encode: (value: string) => string = (value) => value,
): ExpansionOutcome {
  let expanded = ''
  let position = 0
  for (;;) {
    const start = text.indexOf('${', position)
    if (start < 0) break
    if (text[start - 1] === '$' && start - 1 >= position) {
      expanded += `${text.slice(position, start - 1)}\${`
      position = start + 2
      continue
    }
    const end = text.indexOf('}', start)
    if (end < 0) return { kind: 'malformed', reason: `a "\${" has no "}"`, offset: start }
    const outcome = lookUp(text.slice(start + 2, end), facts, start)
    if (outcome.kind !== 'text') return outcome
    expanded += text.slice(position, start) + encode(outcome.text)
    if (expanded.length > EXPANDED_CHARS_MAX) return { kind: 'too-long' }
    position = end + 1
  }
  expanded += text.slice(position)
  return expanded.length > EXPANDED_CHARS_MAX ? { kind: 'too-long' } : { kind: 'text', text: expanded }
}

/** Replaces a leading `~` that stands alone or before a slash. `~name` stays as it is. */
export function expandHome(text: string, facts: ExpansionFacts): string {
  if (text === '~') return facts.homeDirectory
  return /^~[/\\]/.test(text) ? facts.homeDirectory + text.slice(1) : text
}

function lookUp(reference: string, facts: ExpansionFacts, offset: number): ExpansionOutcome {
  if (reference.startsWith('input:')) return { kind: 'input', input: reference.slice('input:'.length), offset }
  const plain = reference.startsWith('env:') ? reference.slice('env:'.length) : reference
  const split = plain.indexOf(':-')
  const variable = split < 0 ? plain : plain.slice(0, split)
  const fallback = split < 0 ? undefined : plain.slice(split + 2)
  if (fallback?.includes('${')) {
    return { kind: 'malformed', reason: 'a default cannot hold another variable', offset }
  }
  if (!NAME.test(variable)) {
    return { kind: 'malformed', reason: `write \${NAME}, \${NAME:-default} or \${env:NAME}`, offset }
  }
  const value = Object.hasOwn(facts.env, variable) ? facts.env[variable] : undefined
  if (fallback !== undefined) return { kind: 'text', text: value === undefined || value === '' ? fallback : value }
  if (value !== undefined) return { kind: 'text', text: value }
  return { kind: 'missing', variable, offset, hint: EDITOR_VARIABLES.get(variable) ?? '' }
}
