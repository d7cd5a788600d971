// The text of a configuration file as a tree in which every key and value knows its place. Pure.

import { createScanner, getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import type { JsonObject } from '../base/index.ts'

/** A line and column of a text, both from 1; columns count UTF-16 code units. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** A fault of the syntax. */
export interface SyntaxFault {
  readonly offset: number
  readonly reason: string
}

/** A key with its value. */
export interface Property {
  readonly key: string
  /** Offset of the key's opening quote. */
  readonly keyOffset: number
  /** Absent when the text has no value after the key. */
  readonly value: Node | undefined
}

/** A parsed text. `root` is absent when there is nothing in it but space and comments, or nothing that could be read. */
export interface ConfigDocument {
  readonly text: string
  readonly root: Node | undefined
  readonly faults: readonly SyntaxFault[]
  placeOf(offset: number): Place
}

/** Deepest nesting of a configuration file, in levels. */
const NESTING_LEVELS_MAX = 64
/** Faults that are reported of one file; more of them say nothing new. */
const FAULTS_MAX = 50

/** Parses JSON with comments, trailing commas and a byte order mark. Never throws for any text. */
export function parseDocument(text: string): ConfigDocument {
  // The mark is blanked, not cut off, so that offsets stay those of the file.
  const body = text.startsWith('\uFEFF') ? ` ${text.slice(1)}` : text
  const placeOf = placeFinder(text)
  const tooDeep = nestingFault(body)
  if (tooDeep !== undefined) return { text, root: undefined, faults: [tooDeep], placeOf }
  const errors: ParseError[] = []
  const root = parseTree(body, errors, { allowTrailingComma: true, allowEmptyContent: true })
  const faults = errors.slice(0, FAULTS_MAX).map((error) => ({ offset: error.offset, reason: reasonOf(error.error) }))
  return { text, root, faults, placeOf }
}

/** The members of an object in the order of the text, repeated keys included; empty for anything else. */
export function propertiesOf(node: Node | undefined): Property[] {
  if (node?.type !== 'object') return []
  return (node.children ?? []).flatMap((child) => {
    const [key, value] = child.children ?? []
    return key === undefined ? [] : [{ key: String(key.value), keyOffset: key.offset, value }]
  })
}

/** The elements of a list in the order of the text; empty for anything else. */
export function elementsOf(node: Node | undefined): readonly Node[] {
  return node?.type === 'array' ? (node.children ?? []) : []
}

/** The value of a node as JSON.parse would give it. A repeated key has its last value; `__proto__` is an ordinary key. */
export function jsonOf(node: Node): unknown {
  if (node.type === 'array') return elementsOf(node).map(jsonOf)
  if (node.type !== 'object') return getNodeValue(node)
  return Object.fromEntries(
    propertiesOf(node).flatMap(({ key, value }) => (value === undefined ? [] : [[key, jsonOf(value)]])),
  ) satisfies JsonObject
}

/** What a value is, in words for a message. */
export function kindOf(node: Node | undefined): string {
  switch (node?.type) {
    case undefined:
      return 'nothing'
    case 'object':
      return 'an object'
    case 'array':
      return 'a list'
    case 'string':
      return 'a text'
    case 'number':
      return 'a number'
    case 'boolean':
      return 'true or false'
    default:
      return 'null'
  }
}

function placeFinder(text: string): (offset: number) => Place {
  let lineStarts: number[] | undefined
  return (offset) => {
    lineStarts ??= startsOf(text)
    let low = 0
    let high = lineStarts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((lineStarts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    // The byte order mark is not a column that an editor shows.
    const mark = low === 0 && text.startsWith('\uFEFF') ? 1 : 0
    return { line: low + 1, column: Math.max(1, offset - (lineStarts[low] ?? 0) + 1 - mark) }
  }
}

function startsOf(text: string): number[] {
  const starts = [0]
  for (const match of text.matchAll(/\r\n|\r|\n/g)) starts.push(match.index + match[0].length)
  return starts
}

/** The parser calls itself for each level, so the depth is checked before it sees the text. */
function nestingFault(text: string): SyntaxFault | undefined {
  const scanner = createScanner(text, true)
  let depth = 0
  while (scanner.getPosition() < text.length) {
    scanner.scan()
    const first = text[scanner.getTokenOffset()]
    if (first === '{' || first === '[') depth += 1
    if (first === '}' || first === ']') depth -= 1
    if (depth > NESTING_LEVELS_MAX) {
      return { offset: scanner.getTokenOffset(), reason: `nested deeper than ${NESTING_LEVELS_MAX} levels` }
    }
  }
  return undefined
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['InvalidSymbol', 'this is not JSON'],
  ['InvalidNumberFormat', 'this is not a number'],
  ['PropertyNameExpected', 'a key in double quotes is expected here'],
  ['ValueExpected', 'a value is expected here'],
  ['ColonExpected', 'a ":" is expected here'],
  ['CommaExpected', 'a "," is expected before this'],
  ['CloseBraceExpected', 'a "}" is missing'],
  ['CloseBracketExpected', 'a "]" is missing'],
  ['EndOfFileExpected', 'there is more text after the end of the configuration'],
  ['UnexpectedEndOfComment', 'this comment has no end'],
  ['UnexpectedEndOfString', 'this text has no closing quote'],
  ['UnexpectedEndOfNumber', 'this number has no end'],
  ['InvalidUnicode', 'this is not a valid \\u escape'],
  ['InvalidEscapeCharacter', 'this escape is not known in JSON'],
  ['InvalidCharacter', 'this character must be escaped in a text'],
])

const reasonOf = (code: ParseError['error']): string =>
  REASONS.get(printParseErrorCode(code)) ?? 'this is not valid JSON'
