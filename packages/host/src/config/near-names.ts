// Which of the known names was meant. Pure.

/** Longest name that is compared, in characters; longer ones are never near anything. */
const COMPARED_CHARS_MAX = 128

/**
 * The known names nearest to `name`, best first: the same but for case and separators, then a common beginning, then up to
 * about a third of the letters different. At most `countMax` (default 3).
 */
export function nearNames(name: string, known: Iterable<string>, countMax = 3): string[] {
  if (name.length === 0 || name.length > COMPARED_CHARS_MAX) return []
  const wanted = fold(name)
  const scored: { name: string; score: number }[] = []
  for (const candidate of known) {
    if (candidate.length > COMPARED_CHARS_MAX || candidate === name) continue
    const score = distance(wanted, fold(candidate))
    if (score !== undefined) scored.push({ name: candidate, score })
  }
  scored.sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1))
  return scored.slice(0, countMax).map((entry) => entry.name)
}

/** `Did you mean "a" or "b"?`, or an empty text when nothing is near. */
export function didYouMean(name: string, known: Iterable<string>, countMax = 3): string {
  const near = nearNames(name, known, countMax).map((candidate) => JSON.stringify(candidate))
  if (near.length === 0) return ''
  return ` Did you mean ${near.length === 1 ? near[0] : `${near.slice(0, -1).join(', ')} or ${near.at(-1)}`}?`
}

const fold = (name: string): string => name.toLowerCase().replace(/[\s_./-]+/g, '')

/** Undefined: too far. 0: equal after folding. */
function distance(wanted: string, candidate: string): number | undefined {
  if (wanted === candidate) return 0
  const shorter = Math.min(wanted.length, candidate.length)
  if (shorter >= 3 && (wanted.startsWith(candidate) || candidate.startsWith(wanted))) {
    return 0.5 + Math.abs(wanted.length - candidate.length) / 4
  }
  const allowed = Math.max(1, Math.floor(Math.max(wanted.length, candidate.length) / 3))
  if (Math.abs(wanted.length - candidate.length) > allowed || shorter === 0) return undefined
  const edits = editDistance(wanted, candidate)
  return edits <= allowed ? edits : undefined
}

/** Insertions, deletions, replacements and swaps of neighbours. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1]
      let best = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (same ? 0 : 1))
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        best = Math.min(best, at(beforeLast, column - 2) + 1)
      }
      current.push(best)
    }
    beforeLast = last
    last = current
  }
  return at(last, b.length)
}

const at = (row: readonly number[], column: number): number => row[column] ?? 0
