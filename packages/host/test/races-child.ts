// Runs every race with as many seeds as it is told, and prints what was lost, as JSON. A process of its own, as the simulation: a test runner answers
// `import()` in real time, and the simulated clock does not wait for that.
import { Arena } from './race-arena.ts'
import { RACES } from './race-cases.ts'

/** How one race went. */
export interface RaceReport {
  readonly runs: number
  /** The first seed that lost it, and how. */
  readonly lost?: { readonly seed: number; readonly why: string; readonly tail: readonly string[] }
}

const LINES_SHOWN = 30
const [runs = '10', only] = process.argv.slice(2)

async function run(name: string, seed: number): Promise<RaceReport['lost']> {
  const race = RACES[name]
  if (race === undefined) throw new Error(`no race ${name}`)
  const arena = new Arena(seed)
  try {
    await race(arena)
    await arena[Symbol.asyncDispose]()
    return undefined
  } catch (error) {
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { seed, why, tail: arena.lines.slice(-LINES_SHOWN) }
  }
}

const reports: Record<string, RaceReport> = {}
let unheard: string | undefined
process.on('unhandledRejection', (error) => {
  unheard ??= error instanceof Error ? (error.stack ?? error.message) : String(error)
})
// What is loaded on demand is loaded before the clock runs.
for (const name of Object.keys(RACES)) await run(name, 0)
await new Promise((resolve) => setTimeout(resolve, 200))
unheard = undefined
for (const name of Object.keys(RACES)) {
  if (only !== undefined && only !== name) continue
  let lost: RaceReport['lost']
  let seed = 1
  for (; seed <= Number(runs) && lost === undefined; seed++) {
    lost = await run(name, seed)
    if (unheard !== undefined) lost ??= { seed, why: `unheard: ${unheard}`, tail: [] }
    unheard = undefined
  }
  reports[name] = { runs: seed - 1, ...(lost === undefined ? {} : { lost }) }
}
process.stdout.write(JSON.stringify(reports))
