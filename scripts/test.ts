// `npm test`: the gate, and then everything that takes longer. Ends with the counts of all.
import './assert-node.ts'
import { WHOLE_STEPS } from './gate-steps.ts'
import { runSteps } from './steps.ts'
import { ensureSystemPackages } from './system-packages.ts'

ensureSystemPackages()

const { passed, failed } = await runSteps(WHOLE_STEPS)
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1
