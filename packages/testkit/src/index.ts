export { FINISHED_MILESTONES, type Requirement, requirements } from './requirements.ts'
export { verifies } from './verifies.ts'
