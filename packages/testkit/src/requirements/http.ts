import type { Requirement } from './requirement.ts'

export const http: readonly Requirement[] = []
