import type { Requirement } from './requirement.ts'

export const wire: readonly Requirement[] = []
