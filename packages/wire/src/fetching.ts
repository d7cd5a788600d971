// The door to requests that are no MCP: sign-in documents, catalogs. What is behind it is loaded when it is first used.
import type { FetchedAnswer, FetchOptions } from './fetch-answer.ts'

/**
 * One request to any origin, its whole answer in memory, through the same door as everything else of this package. Nothing is kept: its headers go to this
 * origin only, and its connection is closed afterwards. Any status is an answer. Default: GET, https (http to this machine only), no redirects, 1 MiB, 30 s.
 * @throws {WireError} `refused`, `unreachable`, `closed`, `malformed`, `too-large`, `timed-out`; `cancelled` soon after `signal` aborts. Messages never show a body.
 */
export async function fetchAnswer(url: string, options: FetchOptions = {}): Promise<FetchedAnswer> {
  return (await import('./fetch-answer.ts')).fetchAnswer(url, options)
}
