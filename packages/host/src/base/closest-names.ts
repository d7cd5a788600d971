// "Did you mean …": for names that a person has typed.

const NAME_CHARS_MAX = 128
const NAMES_MAX = 20_000

/**
 * The names that look like `wanted`, best first. A name counts when it contains `wanted` (or the other way round), or when few enough
 * letters differ: at most a third of the longer one.
 * @param countMax Default 5.
 */
export function closestNames(wanted: string, names: Iterable<string>, countMax = 5): string[] {
  const target = fold(wanted)
  if (target === '') return []
  const scored: { name: string; score: number }[] = []
  let looked = 0
  for (const name of names) {
    if (++looked > NAMES_MAX) break
    const score = scoreOf(target, fold(name))
    if (score !== undefined) scored.push({ name, score })
  }
  return scored
    .sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1))
    .slice(0, countMax)
    .map(({ name }) => name)
}

function fold(name: string): string {
  return name
    .slice(0, NAME_CHARS_MAX)
    .toLowerCase()
    .replace(/[-_\s./]+/g, '_')
}

function scoreOf(target: string, name: string): number | undefined {
  if (target === name) return 0
  const limit = Math.floor(Math.max(target.length, name.length) / 3)
  const distance = editDistance(target, name, limit)
  if (distance <= limit) return distance
  const [shorter, longer] = target.length < name.length ? [target, name] : [name, target]
  return shorter.length >= 3 && longer.includes(shorter) ? limit + longer.length - shorter.length : undefined
}

/** Insertions, deletions, replacements and swaps of neighbours; a number above `limit` when there are more. */
function editDistance(one: string, other: string, limit: number): number {
  if (Math.abs(one.length - other.length) > limit) return limit + 1
  let beforeLast: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, column) => column)
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++)
      current.push(cell({ one, other, row, column, beforeLast, last, current }))
    if (Math.min(...current) > limit) return limit + 1
    beforeLast = last
    last = current
  }
  return last[other.length] ?? limit + 1
}

interface Cell {
  readonly one: string
  readonly other: string
  readonly row: number
  readonly column: number
  readonly beforeLast: readonly number[]
  readonly last: readonly number[]
  readonly current: readonly number[]
}

function cell({ one, other, row, column, beforeLast, last, current }: Cell): number {
  const at = (line: readonly number[], index: number): number => line[index] ?? Infinity
  const same = one[row - 1] === other[column - 1]
  const best = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (same ? 0 : 1))
  const swapped = row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
  return swapped ? Math.min(best, at(beforeLast, column - 2) + 1) : best
}
