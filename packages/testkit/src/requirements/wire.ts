import type { Requirement } from '../requirements.ts'

export const wire: readonly Requirement[] = []
