import type { Requirement } from './requirement.ts'

export const gateway: readonly Requirement[] = []
