// Collects what is wrong with one file. Texts name places, keys and limits, and never a value.

import type { ConfigProblem, ConfigProblemCode } from './definition.ts'
import type { Place } from './document.ts'

/** Problems that are kept of one file; a last one counts the others. */
export const PROBLEMS_MAX = 200

/** One problem before its place in the file is known. */
export interface ProblemReport {
  readonly severity: 'error' | 'warning'
  readonly code: ConfigProblemCode
  /** What is wrong and what to do, as one or two sentences. */
  readonly text: string
  /** Offset in the file; absent when the problem has no place. */
  readonly offset?: number
  readonly server?: string
  readonly field?: string
}

/** The problems of one file. */
export class ProblemList {
  readonly #file: string
  readonly #placeOf: (offset: number) => Place
  readonly #problems: ConfigProblem[] = []
  #leftOut = 0

  constructor(file: string, placeOf: (offset: number) => Place) {
    this.#file = file
    this.#placeOf = placeOf
  }

  /** Keeps a problem and gives it back with its place and full message. */
  report(report: ProblemReport): ConfigProblem {
    const place = report.offset === undefined ? { line: 0, column: 0 } : this.#placeOf(report.offset)
    const problem: ConfigProblem = {
      severity: report.severity,
      code: report.code,
      message: messageOf(this.#file, place, report),
      file: this.#file,
      ...place,
      ...(report.server === undefined ? {} : { server: report.server }),
      ...(report.field === undefined ? {} : { field: report.field }),
    }
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push(problem)
    else this.#leftOut += 1
    return problem
  }

  /** Every kept problem in the order of the file, and how many were left out. */
  all(): ConfigProblem[] {
    const problems = [...this.#problems].sort((a, b) => a.line - b.line || a.column - b.column)
    if (this.#leftOut === 0) return problems
    return [
      ...problems,
      {
        severity: 'warning',
        code: 'CONFIG_PROBLEMS_TOO_MANY',
        message: `${this.#file}: ${this.#leftOut} more problems are not listed.`,
        file: this.#file,
        line: 0,
        column: 0,
      },
    ]
  }
}

function messageOf(file: string, place: Place, report: ProblemReport): string {
  const where = place.line === 0 ? file : `${file}:${place.line}:${place.column}`
  const server = report.server === undefined ? '' : ` server ${JSON.stringify(shorten(report.server))}:`
  const field = report.field === undefined ? '' : ` ${JSON.stringify(shorten(report.field))}`
  return `${where}:${server}${field === '' ? ` ${report.text}` : `${field} ${report.text}`}`
}

/** Keys of a file can be of any length; a message is for a person. */
export function shorten(key: string): string {
  return key.length <= 80 ? key : `${key.slice(0, 79)}…`
}
