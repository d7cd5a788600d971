// Compares the manifest with what the tests cite. Pure: sources come in as text.
import type { Requirement } from './requirements/requirement.ts'

/** One id in one test file. */
export interface Citation {
  readonly id: string
  readonly file: string
}

export interface RequirementsReport {
  /** Ids that a test cites, in the order of the manifest. */
  readonly verified: readonly string[]
  /** Ids of finished milestones that no test cites. */
  readonly missing: readonly string[]
  /** Sentences: unknown, doubled or malformed ids. */
  readonly faults: readonly string[]
}

const CALL = /\bverifies\(\s*(\[[^\]]*\]|'[^']*'|"[^"]*")/g
const LITERAL = /'([^']*)'|"([^"]*)"/g
const ID = /^[a-z]+(-[a-z]+)*\.\d{3}$/

/** The ids in `verifies('id', …)` and `verifies(['id', …], …)`. */
export function citationsIn(file: string, source: string): Citation[] {
  return [...source.matchAll(CALL)].flatMap(([, ids = '']) =>
    [...ids.matchAll(LITERAL)].map(([, single, double]) => ({ id: single ?? double ?? '', file })),
  )
}

/** What is promised and shown, promised and not shown, and shown without a promise. */
export function checkRequirements(
  requirements: readonly Requirement[],
  finishedMilestones: readonly number[],
  citations: readonly Citation[],
): RequirementsReport {
  const cited = new Set(citations.map(({ id }) => id))
  const known = new Set(requirements.map(({ id }) => id))
  const doubled = requirements.filter(({ id }, index) => requirements.findIndex((other) => other.id === id) !== index)
  return {
    verified: requirements.filter(({ id }) => cited.has(id)).map(({ id }) => id),
    missing: requirements
      .filter(
        ({ id, milestone, origin }) =>
          finishedMilestones.includes(milestone) && origin?.kind !== 'dropped' && !cited.has(id),
      )
      .map(({ id }) => id),
    faults: [
      ...doubled.map(({ id }) => `${id} stands in the manifest twice`),
      ...requirements.filter(({ id }) => !ID.test(id)).map(({ id }) => `${id} is not of the form area.NNN`),
      ...citations
        .filter(({ id }) => !known.has(id))
        .map(({ id, file }) => `${file} cites ${id}, which is not in the manifest`),
    ],
  }
}
