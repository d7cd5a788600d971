export const placeholder = 'cli'
