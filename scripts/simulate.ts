// `npm run simulate -- --seed N --steps M [--trace] [--runs R]`: the whole host in a simulated world, checked after every step.
import './assert-node.ts'
import { parseArgs } from 'node:util'
import {
  type SimulationResult,
  type Step,
  shrink,
  simulate,
  stepsOf,
} from '../packages/testkit/src/simulation/index.ts'

const SHRINK_ATTEMPTS_MAX = 200

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '10000' },
    /** So many seeds, one after the other, beginning with `--seed`. */
    runs: { type: 'string', default: '1' },
    /** Numbers of the steps to do, of those that the seed gives: what shrinking prints. */
    only: { type: 'string' },
    trace: { type: 'boolean', default: false },
    'no-shrink': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const count = Number(values.steps)

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function chosen(seed: number): Iterable<Step> {
  if (values.only === undefined) return stepsOf(seed, count)
  const numbers = new Set(values.only.split(',').map(Number))
  return [...stepsOf(seed, count)].filter((_, index) => numbers.has(index + 1))
}

async function run(seed: number): Promise<SimulationResult> {
  return simulate(chosen(seed), { seed, ...(values.trace ? { onLine: print } : {}) })
}

async function explain(seed: number, result: SimulationResult): Promise<void> {
  const { violation, steps, tail } = result
  if (violation === undefined) return
  print('')
  for (const line of tail) print(`  ${line}`)
  print(`\nBROKEN: ${violation.invariant}\n  ${violation.message}`)
  print(`again: npm run simulate -- --seed ${seed} --steps ${steps} --trace`)
  if (values['no-shrink'] || values.only !== undefined) return
  const all = [...stepsOf(seed, steps)]
  const fails = async (some: readonly Step[]): Promise<boolean> =>
    (await simulate(some, { seed })).violation?.invariant === violation.invariant
  const best = await shrink(all, fails, SHRINK_ATTEMPTS_MAX)
  if (best.length === all.length) return
  const numbers = best.map((step) => all.indexOf(step) + 1).join(',')
  print(`shorter: npm run simulate -- --seed ${seed} --steps ${steps} --trace --only ${numbers}`)
}

// What is loaded on demand is loaded before the clock runs: reading a file takes real time.
await simulate(stepsOf(0, 300), { seed: 0 })
const total = { seeds: 0, steps: 0 }
const beganAllAtMs = performance.now()
for (let at = 0; at < Number(values.runs); at++) {
  const seed = Number(values.seed) + at
  const beganAtMs = performance.now()
  const result = await run(seed)
  const { violation, digest, figures, steps } = result
  const seconds = ((performance.now() - beganAtMs) / 1_000).toFixed(1)
  if (values.json) print(JSON.stringify({ seed, steps, digest, figures, violation }))
  else
    print(
      `${violation === undefined ? 'ok    ' : 'FAILED'} seed ${seed}: ${steps} steps, digest ${digest}, ${seconds} s; ${Object.entries(
        figures,
      )
        .map(([name, value]) => `${name} ${value}`)
        .join(', ')}`,
    )
  total.seeds += 1
  total.steps += steps
  if (violation === undefined) continue
  process.exitCode = 1
  await explain(seed, result)
  break
}
if (!values.json && total.seeds > 1)
  print(`${total.seeds} seeds, ${total.steps} steps, ${((performance.now() - beganAllAtMs) / 1_000).toFixed(1)} s`)
