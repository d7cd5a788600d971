import type { Requirement } from '../requirements.ts'

export const config: readonly Requirement[] = []
