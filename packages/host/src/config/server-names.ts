// Which keys can be server names, and which look like another one. Pure.

/** Longest server name, in characters. */
export const SERVER_NAME_CHARS_MAX = 128

/** What most names are made of. Classes of Unicode are large tables; a name like this one does not need them. */
const PLAIN = /^[\x21-\x7e]{1,128}$/

/** Why this key cannot be a server's name, as the end of a sentence, or undefined. */
export function serverNameFault(name: string): string | undefined {
  if (name.trim() === '') return 'is empty. Give the server a name.'
  if (PLAIN.test(name)) return undefined
  if ([...name].length > SERVER_NAME_CHARS_MAX) return `is longer than ${SERVER_NAME_CHARS_MAX} characters.`
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u.test(name)) {
    return 'holds a character that cannot be printed. Names are printable text.'
  }
  return undefined
}

/**
 * What a person sees of a name: without invisible characters, letter case, outer space and the look-alikes of other alphabets.
 * Two names with one skeleton are easily taken for each other.
 */
export function nameSkeleton(name: string): string {
  const visible = name
    .normalize('NFKC')
    .replace(/[\p{Cf}\p{Mn}\s]/gu, '')
    .toLowerCase()
  return [...visible].map((character) => LOOK_ALIKES.get(character) ?? character).join('')
}

/** Lower-case letters of other alphabets that are drawn like Latin ones. */
const LOOK_ALIKES: ReadonlyMap<string, string> = new Map(
  [
    ['аα', 'a'],
    ['еε', 'e'],
    ['оοσօ', 'o'],
    ['рρ', 'p'],
    ['сϲ', 'c'],
    ['уγү', 'y'],
    ['хχ', 'x'],
    ['іιıӏ', 'i'],
    ['јϳ', 'j'],
    ['ѕ', 's'],
    ['ԁ', 'd'],
    ['һ', 'h'],
    ['к', 'k'],
    ['мμ', 'm'],
    ['п', 'n'],
    ['т', 't'],
    ['ѵν', 'v'],
    ['ԝω', 'w'],
    ['ɡ', 'g'],
    ['0', 'o'],
    ['1l', 'i'],
  ].flatMap(([drawn = '', latin = '']) => [...drawn].map((character) => [character, latin] as const)),
)
