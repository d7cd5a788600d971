import { openHost } from './host.mjs'

export const open = openHost('undici')
