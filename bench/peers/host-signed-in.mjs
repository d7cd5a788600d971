// The same, at a server that wants a sign-in.
export { open } from './host.mjs'

/** For its server. */
export const flags = { 'sign-in': true }
