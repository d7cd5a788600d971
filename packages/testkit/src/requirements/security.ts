import type { Requirement } from '../requirements.ts'

export const security: readonly Requirement[] = []
