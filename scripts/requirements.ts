// `npm run requirements`: every promised behaviour of a finished milestone is cited by a test. `--json`: {total, verified, missing, ids}.
import './assert-node.ts'
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { FINISHED_MILESTONES, requirements } from '../packages/testkit/src/requirements.ts'
import { type Citation, checkRequirements, citationsIn } from '../packages/testkit/src/requirements-check.ts'

const root = resolve(import.meta.dirname, '..')
const { values: options } = parseArgs({ options: { json: { type: 'boolean', default: false } } })

const citations: Citation[] = globSync(['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).flatMap(
  (file) => citationsIn(file, readFileSync(resolve(root, file), 'utf8')),
)
const { verified, missing, faults } = checkRequirements(requirements, FINISHED_MILESTONES, citations)

if (options.json) {
  const ids = requirements.map(({ id }) => id)
  process.stdout.write(`${JSON.stringify({ total: ids.length, verified: verified.length, missing, ids }, null, 2)}\n`)
} else {
  for (const id of missing) process.stdout.write(`missing ${id}: no test cites it\n`)
  process.stdout.write(`requirements: ${verified.length} of ${requirements.length} verified\n`)
}
for (const fault of faults) process.stderr.write(`${fault}\n`)
process.exitCode = missing.length + faults.length === 0 ? 0 : 1
