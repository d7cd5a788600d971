export { shrink } from './shrink.ts'
export { type SimulationOptions, type SimulationResult, simulate } from './simulation.ts'
export { type Step, stepsOf } from './steps.ts'
export { World } from './world.ts'
