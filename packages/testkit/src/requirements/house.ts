import type { Requirement } from '../requirements.ts'

export const house: readonly Requirement[] = []
