import type { Requirement } from './requirement.ts'

export const agent: readonly Requirement[] = []
