export const placeholder = 'agent'
