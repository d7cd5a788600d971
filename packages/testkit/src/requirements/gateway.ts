import type { Requirement } from '../requirements.ts'

export const gateway: readonly Requirement[] = []
