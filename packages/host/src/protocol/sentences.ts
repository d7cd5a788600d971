// What foreign servers say in words where the protocol has no code for it. One table: nowhere else in the host is anything decided by a sentence. Pure.

/** How servers that pass requests on say that they did not get through. */
const NOT_THROUGH = /^http\/request failed:/
/** How servers that pass requests on say that somebody has to sign in behind them. */
const AUTH_REQUIRED = /\bauth required\b/i

/** Did the request not arrive where it was meant for? */
export function saysNotThrough(message: string): boolean {
  return NOT_THROUGH.test(message)
}

/** Is a sign-in asked for? */
export function saysAuthRequired(message: string): boolean {
  return AUTH_REQUIRED.test(message)
}
