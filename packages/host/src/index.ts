export const placeholder = 'host'
