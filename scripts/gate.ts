// `npm run gate`: everything that must be green before a commit goes to main. Five minutes at most.
import './assert-node.ts'
import { GATE_STEPS } from './gate-steps.ts'
import { runSteps } from './steps.ts'
import { ensureSystemPackages } from './system-packages.ts'

ensureSystemPackages()

const { passed, failed } = await runSteps(GATE_STEPS)
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1
