// What the model is told of the world, and only when it is another. Pure.
import type { WorldStateSection } from '../extensions/index.ts'

/** What changed between two steps. */
export interface WorldStateDiff {
  readonly changed: readonly WorldStateSection[]
  readonly removed: readonly string[]
}

/** Of sections with the same id the last one counts. */
export function diffWorldState(
  before: readonly WorldStateSection[],
  now: readonly WorldStateSection[],
): WorldStateDiff {
  const known = new Map(before.map(({ id, text }) => [id, text]))
  const next = new Map(now.map((section) => [section.id, section]))
  return {
    changed: [...next.values()].filter(({ id, text }) => known.get(id) !== text),
    removed: [...known.keys()].filter((id) => !next.has(id)),
  }
}
