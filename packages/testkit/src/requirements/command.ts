import type { Requirement } from './requirement.ts'

export const command: readonly Requirement[] = []
