import type { Requirement } from './requirement.ts'

export const connection: readonly Requirement[] = []
