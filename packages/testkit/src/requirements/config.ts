import type { Requirement } from './requirement.ts'

export const config: readonly Requirement[] = []
