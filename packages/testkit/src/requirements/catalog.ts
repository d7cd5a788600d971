import type { Requirement } from './requirement.ts'

export const catalog: readonly Requirement[] = []
