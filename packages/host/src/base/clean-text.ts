// Text from servers is data. This takes out what nobody can see: control characters, zero-width and bidirectional controls, tag
// characters. What scripts really need (joiners in emoji, Indic and Arabic text, direction marks beside right-to-left letters, variation
// selectors) stays; the rules are by the neighbours of a character, so that text in any language comes through unchanged.

/** What most texts are made of. The classes below are large tables, built when a text first has something else in it. */
const ORDINARY = /^[\t\n\x20-\x7e]*$/

/** Controls except tab and line feed, everything "default ignorable", line separators, annotation anchors, lone surrogates. */
const suspicious = (): RegExp => /(?![\t\n])\p{Cc}|[\u2028\u2029\ufff9-\ufffb]|\p{Default_Ignorable_Code_Point}|\p{Cs}/u
const everySuspicious = (): RegExp => new RegExp(suspicious(), 'gu')

const rightToLeft = (): RegExp => /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u
const emoji = (): RegExp => /\p{Extended_Pictographic}|\p{Emoji_Modifier}/u
/** Scripts that are written with ZWJ and ZWNJ. */
const joining = (): RegExp =>
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mandaic}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{Script=Javanese}\p{Script=Balinese}\p{Script=Hebrew}]|\p{Mark}/u
/** What follows the black flag in the three flags that are written with tag characters: England, Scotland, Wales. */
const TAG_FLAGS =
  /^\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/u
const TAG_FLAG_UNITS = 12

/** What was taken out of one text. */
export interface CleanedText {
  readonly text: string
  /** The code points that were taken out, each once, as `U+200B`; at most 16. Empty: nothing was. */
  readonly removed: readonly string[]
}

/** Is there anything that {@link cleanText} might take out? One pass, no allocation. */
export function needsCleaning(text: string): boolean {
  return !ORDINARY.test(text) && suspicious().test(text)
}

/** `text` without what cannot be seen. CR LF and a lone CR become LF. Cleaning what is clean changes nothing. */
export function cleanText(text: string): CleanedText {
  if (!needsCleaning(text)) return { text, removed: [] }
  const whole = text.replace(/\r\n?/g, '\n')
  const removed = new Set<string>()
  let clean = ''
  let done = 0
  for (const { 0: found, index } of whole.matchAll(everySuspicious())) {
    if (index < done) continue // inside a flag that was taken whole
    clean += whole.slice(done, index)
    const kept = keptPart(found, { text: whole, index, before: lastCharacter(clean) })
    clean += kept
    done = index + Math.max(kept.length, found.length)
    if (kept === '' || kept === '\n') removed.add(codePointName(found))
  }
  return { text: clean + whole.slice(done), removed: [...removed].slice(0, 16) }
}

/** One line for a terminal or a message: cleaned, white space joined, cut. */
export function cleanLine(text: string, charsMax = 300): string {
  // Cut generously first: nobody needs the tail of a megabyte to make a line of it.
  const line = cleanText(text.slice(0, charsMax * 4))
    .text.replace(/\s+/g, ' ')
    .trim()
  return line.length <= charsMax ? line : `${line.slice(0, charsMax - 1)}…`
}

interface Place {
  readonly text: string
  readonly index: number
  /** The last character that was kept. */
  readonly before: string
}

interface Neighbours {
  readonly before: string
  readonly after: string
  readonly text: string
}

/** Code points that stay where their neighbours need them: first, last, rule. */
const NEEDED: readonly (readonly [number, number, (around: Neighbours) => boolean])[] = [
  [0x200d, 0x200d, ({ before, after }) => (joinsEmoji(before) || isJoining(before)) && isVisible(after)],
  [0x200c, 0x200c, ({ before, after }) => isJoining(before) && isVisible(after)],
  [0x200e, 0x200f, ({ before, text }) => rightToLeft().test(text) && !isDefaultIgnorable(before)],
  [0x061c, 0x061c, ({ before, text }) => rightToLeft().test(text) && !isDefaultIgnorable(before)],
  [0xfe00, 0xfe0f, ({ before }) => isVisible(before)],
  [0xe0100, 0xe01ef, ({ before }) => /\p{Script=Han}/u.test(before)],
  [0x180b, 0x180f, ({ before }) => /\p{Script=Mongolian}/u.test(before)],
  [0x17b4, 0x17b5, ({ before }) => /\p{Script=Khmer}/u.test(before)],
  [0x115f, 0x1160, ({ before, after }) => /[\u1100-\u11ff]/u.test(before + after)],
]

/** What stays of a suspicious character: nothing, itself, a line feed, or the whole flag that it is in. */
function keptPart(found: string, { text, index, before }: Place): string {
  if (found === '\u2028' || found === '\u2029') return '\n'
  if (before === '\u{1f3f4}') {
    const flag = TAG_FLAGS.exec(text.slice(index, index + TAG_FLAG_UNITS))
    if (flag !== null) return flag[0]
  }
  const code = found.codePointAt(0) ?? 0
  const rule = NEEDED.find(([first, last]) => code >= first && code <= last)?.[2]
  const after = characterAfter(text, index + found.length)
  return rule?.({ before, after, text }) === true ? found : ''
}

function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

const joinsEmoji = (character: string): boolean =>
  emoji().test(character) || character === '\ufe0f' || character === '\ufe0e'
const isJoining = (character: string): boolean => joining().test(character) && !isDefaultIgnorable(character)
const isVisible = (character: string): boolean => /\S/u.test(character) && !suspicious().test(character)
const isDefaultIgnorable = (character: string): boolean => /^\p{Default_Ignorable_Code_Point}$/u.test(character)

function lastCharacter(text: string): string {
  const low = text.charCodeAt(text.length - 1)
  const isPair = low >= 0xdc00 && low <= 0xdfff && text.length > 1
  return text.slice(isPair ? -2 : -1)
}

function characterAfter(text: string, index: number): string {
  const code = text.codePointAt(index)
  return code === undefined ? '' : String.fromCodePoint(code)
}
