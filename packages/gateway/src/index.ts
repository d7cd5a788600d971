export const placeholder = 'gateway'
