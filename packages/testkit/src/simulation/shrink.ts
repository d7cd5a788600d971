// Makes a failing list of steps shorter: halves, quarters and so on are left out as long as the same promise is still broken.
import type { Step } from './steps.ts'

/** Does this list still fail in the same way? */
export type Fails = (steps: readonly Step[]) => Promise<boolean>

/** The shortest list that was found within `attemptsMax` runs. */
export async function shrink(steps: readonly Step[], fails: Fails, attemptsMax: number): Promise<readonly Step[]> {
  let best = steps
  let attempts = 0
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = best.length - size; at >= 0 && attempts < attemptsMax; at -= size) {
      const without = [...best.slice(0, at), ...best.slice(at + size)]
      attempts += 1
      if (await fails(without)) best = without
    }
  }
  return best
}
