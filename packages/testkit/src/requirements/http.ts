import type { Requirement } from '../requirements.ts'

export const http: readonly Requirement[] = []
