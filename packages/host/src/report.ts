export const placeholder = 'report'
