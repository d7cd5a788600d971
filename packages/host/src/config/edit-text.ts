// Sets and removes one entry in the text of a configuration file. Everything else of the text stays as it is. Pure.

import { createScanner, type Node } from 'jsonc-parser'
import type { JsonObject } from '../base/index.ts'
import { type Property, parseDocument, propertiesOf } from './document.ts'

interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Sets `mcpServers[name]`; the text must have no faults. An entry that is there is replaced where it stands. */
export function withServer(text: string, name: string, entry: JsonObject): string {
  const { root } = parseDocument(text)
  if (root === undefined) return withServer(`${text}${text === '' || /\n$/.test(text) ? '' : '\n'}{}\n`, name, entry)
  const style = styleOf(text)
  const servers = propertiesOf(root).find((property) => property.key === 'mcpServers')?.value
  if (servers === undefined) return apply(text, insertion(text, root, style, ['mcpServers', { [name]: entry }]))
  const present = propertiesOf(servers).find((property) => property.key === name)
  if (present?.value === undefined) return apply(text, insertion(text, servers, style, [name, entry]))
  const { offset, length } = present.value
  return apply(text, [
    { start: offset, end: offset + length, text: formatted(entry, indentAt(text, present.keyOffset), style) },
  ])
}

/** Removes every entry of that name; the text must have no faults. Undefined when there is none. */
export function withoutServer(text: string, name: string): string | undefined {
  const servers = propertiesOf(parseDocument(text).root).find((property) => property.key === 'mcpServers')?.value
  const properties = propertiesOf(servers)
  const index = properties.findIndex((property) => property.key === name)
  const property = properties[index]
  if (property === undefined) return undefined
  const rest = apply(text, removal(text, property, properties[index - 1]))
  return withoutServer(rest, name) ?? rest
}

interface Style {
  readonly eol: string
  /** One level of indentation. */
  readonly unit: string
}

function styleOf(text: string): Style {
  return { eol: text.includes('\r\n') ? '\r\n' : '\n', unit: /^([ \t]+)\S/m.exec(text)?.[1] ?? '  ' }
}

function insertion(
  text: string,
  object: Node,
  style: Style,
  [key, value]: readonly [string, JsonObject],
): readonly Edit[] {
  const close = object.offset + object.length - 1
  const last = propertiesOf(object).at(-1)
  const indent =
    last !== undefined && startsLine(text, last.keyOffset)
      ? indentAt(text, last.keyOffset)
      : indentAt(text, object.offset) + style.unit
  const lastEnd = endOf(last)
  const comma = lastEnd === undefined ? undefined : commaAfter(text, lastEnd)
  // Behind the last comment, so that it stays with what it is about.
  const at = text.slice(0, close).trimEnd().length
  const closesOnOwnLine = /[\r\n]/.test(text.slice(at, close))
  const entry = `${style.eol}${indent}${JSON.stringify(key)}: ${formatted(value, indent, style)}`
  const tail = (comma === undefined ? '' : ',') + (closesOnOwnLine ? '' : style.eol + indentAt(text, object.offset))
  return [
    ...(lastEnd === undefined || comma !== undefined ? [] : [{ start: lastEnd, end: lastEnd, text: ',' }]),
    { start: at, end: closesOnOwnLine ? at : close, text: entry + tail },
  ]
}

function removal(text: string, property: Property, previous: Property | undefined): readonly Edit[] {
  const end = endOf(property) ?? property.keyOffset
  const comma = commaAfter(text, end)
  const before = endOf(previous)
  // Without a comma behind it this was the last entry, and the comma before it has nothing to separate any more.
  const orphan = comma === undefined && before !== undefined ? commaAfter(text, before) : undefined
  const edit = wholeLines(text, property.keyOffset, end)
  const commaEdit = (at: number): Edit => ({ start: at, end: at + 1, text: '' })
  if (comma === undefined) return [...(orphan === undefined ? [] : [commaEdit(orphan)]), edit]
  return text.slice(end, comma).trim() === ''
    ? [wholeLines(text, property.keyOffset, comma + 1)]
    : [edit, commaEdit(comma)]
}

/** Takes the line with it when nothing else is on it. */
function wholeLines(text: string, start: number, end: number): Edit {
  const lineStart = start - (/[ \t]*$/.exec(text.slice(0, start))?.[0].length ?? 0)
  const ahead = /^[ \t]*(\r\n|\r|\n)/.exec(text.slice(end))
  if (!startsLine(text, start) || ahead === null) return { start, end, text: '' }
  return { start: lineStart, end: end + ahead[0].length, text: '' }
}

function apply(text: string, edits: readonly Edit[]): string {
  return edits.reduceRight((rest, { start, end, text: put }) => rest.slice(0, start) + put + rest.slice(end), text)
}

/** Offset of the comma behind `offset`, over spaces and comments. */
function commaAfter(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true)
  scanner.setPosition(offset)
  for (;;) {
    scanner.scan()
    const at = scanner.getTokenOffset()
    if (text[at] === ',') return at
    if (text[at] !== '/') return undefined
  }
}

function endOf(property: Property | undefined): number | undefined {
  return property?.value === undefined ? undefined : property.value.offset + property.value.length
}

function startsLine(text: string, offset: number): boolean {
  return /(^|[\r\n])[ \t]*$/.test(text.slice(0, offset))
}

/** The indentation of the line that `offset` is on. */
function indentAt(text: string, offset: number): string {
  const lineStart = Math.max(text.lastIndexOf('\n', offset - 1), text.lastIndexOf('\r', offset - 1)) + 1
  return /^[ \t]*/.exec(text.slice(lineStart, offset))?.[0] ?? ''
}

function formatted(value: JsonObject, indent: string, style: Style): string {
  return JSON.stringify(value, null, style.unit).replaceAll('\n', style.eol + indent)
}
