import type { Requirement } from '../requirements.ts'

export const catalog: readonly Requirement[] = []
