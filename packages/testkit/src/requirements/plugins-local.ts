import type { Requirement } from './requirement.ts'

export const localPlugins: readonly Requirement[] = []
