import type { Requirement } from '../requirements.ts'

export const command: readonly Requirement[] = []
