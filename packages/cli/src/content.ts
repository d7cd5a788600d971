// What a tool or a prompt answered, as text for a person. Pure apart from printing.

import { cleanLine, type JsonObject } from '@convoke/host'
import { jsonText } from './json-text.ts'
import { isRecord } from './signature.ts'
import { type Piece, styled, type Terminal } from './terminal.ts'

/** Prints content blocks; with no text in them, the structured content as JSON. */
export function printContent(terminal: Terminal, content: readonly unknown[], structuredContent?: unknown): void {
  for (const block of content) {
    for (const line of blockLines(block)) terminal.print(...line)
  }
  if (structuredContent === undefined) return
  const isSaid = content.some((block) => isRecord(block) && block['type'] === 'text' && block['text'] !== '')
  if (!isSaid) terminal.print(jsonText(structuredContent, 2))
}

function blockLines(block: unknown): readonly (readonly Piece[])[] {
  if (!isRecord(block)) return [[styled('dim', '[content that is not an object]')]]
  const type = textAt(block, 'type')
  switch (type) {
    case 'text':
      return [[textAt(block, 'text')]]
    case 'image':
    case 'audio':
      return [
        [
          styled(
            'dim',
            `[${type}${typeOf(block)}, ${decodedBytes(textAt(block, 'data'))} bytes; use --json for the data]`,
          ),
        ],
      ]
    case 'resource_link':
      return [
        [
          styled('dim', '[resource] '),
          cleanLine(textAt(block, 'uri'), 2000),
          ' ',
          cleanLine(textAt(block, 'title') || textAt(block, 'name')),
        ],
      ]
    case 'resource':
      return resourceLines(block['resource'])
    default:
      return [[styled('dim', `[${cleanLine(type, 60) || 'content without a type'}; use --json to see it]`)]]
  }
}

/** The contents of one resource: its text, or how large its bytes are. */
export function resourceLines(resource: unknown): readonly (readonly Piece[])[] {
  if (!isRecord(resource)) return [[styled('dim', '[resource that is not an object]')]]
  if (typeof resource['text'] === 'string') return [[resource['text']]]
  const bytes = decodedBytes(textAt(resource, 'blob'))
  return [[styled('dim', `[binary${typeOf(resource)}, ${bytes} bytes: ${cleanLine(textAt(resource, 'uri'), 300)}]`)]]
}

function typeOf(block: JsonObject): string {
  const mimeType = cleanLine(textAt(block, 'mimeType'), 60)
  return mimeType === '' ? '' : ` ${mimeType}`
}

function textAt(object: JsonObject, key: string): string {
  const value = object[key]
  return typeof value === 'string' ? value : ''
}

/** Length of base64 after decoding, without decoding it. */
function decodedBytes(base64: string): number {
  return Math.floor((base64.replace(/=+$/, '').length * 3) / 4)
}
