// The one printer: whatever text it is given, only our own styling reaches the terminal as control sequences.

import type { WriteStream } from 'node:tty'
import { cleanLine, cleanText } from '@convoke/host'
import { jsonText } from './json-text.ts'

type Style = 'bold' | 'dim' | 'red' | 'yellow' | 'green' | 'cyan'

const SEQUENCES: Readonly<Record<Style, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  yellow: [33, 39],
  green: [32, 39],
  cyan: [36, 39],
}

/** A text with a style, put on only after the text was cleaned. */
export interface Styled {
  readonly style: Style
  readonly text: string
}
/** A piece of a line. */
export type Piece = string | Styled

/** `text` in a style. */
export const styled = (style: Style, text: string): Styled => ({ style, text })

/** What the terminal is like. */
export interface TerminalFacts {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: { readonly isTTY?: boolean }
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean }
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean }
  readonly color: boolean
}

/** Prints data to stdout and notices to stderr. */
export class Terminal {
  /** A person is there to answer questions. */
  readonly isInteractive: boolean
  /** A line that changes in place may be shown on stderr. */
  readonly showsProgress: boolean
  readonly #facts: TerminalFacts
  readonly #colors: { readonly stdout: boolean; readonly stderr: boolean }
  #transient = ''

  constructor(facts: TerminalFacts) {
    const { env, stdin, stdout, stderr, color } = facts
    this.#facts = facts
    const isCi = env['CI'] !== undefined && env['CI'] !== '' && env['CI'] !== 'false'
    const isDumb = env['TERM'] === 'dumb'
    const mayColor = color && (env['NO_COLOR'] ?? '') === '' && !isDumb
    this.#colors = { stdout: mayColor && stdout.isTTY === true, stderr: mayColor && stderr.isTTY === true }
    this.isInteractive = stdin.isTTY === true && stderr.isTTY === true && !isCi
    this.showsProgress = stderr.isTTY === true && !isCi && !isDumb
  }

  /** Is stdout a terminal? */
  get isOutputTerminal(): boolean {
    return this.#facts.stdout.isTTY === true
  }

  /** Columns of stdout; 100 when it is not a terminal. */
  get columns(): number {
    const { columns } = this.#facts.stdout as Partial<WriteStream>
    return Math.min(Math.max(columns ?? 100, 40), 160)
  }

  /** One line of data. */
  print(...pieces: readonly Piece[]): void {
    this.clearTransient()
    this.#facts.stdout.write(`${render(pieces, this.#colors.stdout)}\n`)
  }

  /** Data as JSON: one line, spread over lines only for a person. */
  json(value: unknown): void {
    this.clearTransient()
    this.#facts.stdout.write(`${jsonText(value, this.isOutputTerminal ? 2 : 0)}\n`)
  }

  /** One line for the person, on stderr. */
  notice(...pieces: readonly Piece[]): void {
    this.clearTransient()
    this.#facts.stderr.write(`${render(pieces, this.#colors.stderr)}\n`)
  }

  /** A line on stderr that the next output replaces; nothing where it could not be replaced. */
  transient(text: string): void {
    if (!this.showsProgress || text === this.#transient) return
    const line = cleanLine(text, this.columns - 1)
    this.#facts.stderr.write(`\r\u001b[2K${line}`)
    this.#transient = text
  }

  /** Takes the transient line away. */
  clearTransient(): void {
    if (this.#transient === '') return
    this.#transient = ''
    this.#facts.stderr.write('\r\u001b[2K')
  }
}

/** Text that holds nothing to clean; looking closer needs large tables, which a short run can do without. */
const PLAIN = /^[\t\n\x20-\x7e]*$/

function cleaned(text: string): string {
  return PLAIN.test(text) ? text : cleanText(text).text
}

function render(pieces: readonly Piece[], colors: boolean): string {
  return pieces
    .map((piece) => {
      if (typeof piece === 'string') return cleaned(piece)
      const text = cleaned(piece.text)
      const [on, off] = SEQUENCES[piece.style]
      return colors ? `\u001b[${on}m${text}\u001b[${off}m` : text
    })
    .join('')
}
