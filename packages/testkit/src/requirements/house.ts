import type { Requirement } from './requirement.ts'

export const house: readonly Requirement[] = []
