import { closestNames } from '../base/index.ts'

/** ` Did you mean "a" or "b"?`, with a space in front, or an empty text when no known name is near. `countMax` is 3 by default. */
export function didYouMean(name: string, known: Iterable<string>, countMax = 3): string {
  const near = closestNames(name, known, countMax).map((candidate) => JSON.stringify(candidate))
  if (near.length === 0) return ''
  return ` Did you mean ${near.length === 1 ? near[0] : `${near.slice(0, -1).join(', ')} or ${near.at(-1)}`}?`
}
