import type { Requirement } from '../requirements.ts'

export const connection: readonly Requirement[] = []
