export type { ServerPort } from './port.ts'
