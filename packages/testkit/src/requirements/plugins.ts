import type { Requirement } from './requirement.ts'

export const plugins: readonly Requirement[] = []
