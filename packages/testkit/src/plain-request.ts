// One HTTP request on a connection of its own, so that nothing stays open behind a test. Redirects are answers, not followed.
import { type IncomingHttpHeaders, request as sendPlain } from 'node:http'
import { request as sendSecure } from 'node:https'

export interface PlainRequest {
  /** Default `GET`. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface PlainAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

const TIMEOUT_MS = 30_000

/**
 * Sends it and reads the whole answer. Certificates are not judged.
 * @throws {Error} of the socket, or after 30 s without a byte.
 */
export function plainRequest(url: string | URL, options: PlainRequest = {}): Promise<PlainAnswer> {
  const { method = 'GET', headers = {}, body } = options
  const send = new URL(url).protocol === 'https:' ? sendSecure : sendPlain
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      { method, headers, agent: false, timeout: TIMEOUT_MS, rejectUnauthorized: false },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => void parts.push(part))
        response.once('error', reject)
        response.once('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(parts).toString(),
          }),
        )
      },
    )
    request.once('timeout', () => request.destroy(new Error(`${method} ${String(url)} was not answered`)))
    request.once('error', reject)
    request.end(body)
  })
}

/**
 * Asks the control path of a fixture that runs in another process.
 * @throws {Error} if it does not answer 200.
 */
export async function askControl(url: string, action: string, body?: unknown): Promise<unknown> {
  // A knob that is set to `undefined` goes back to its default; JSON has only `null` for that.
  const text = body === undefined ? undefined : JSON.stringify(body, (_key, value: unknown) => value ?? null)
  const answer = await plainRequest(new URL(`/control/${action}`, url), {
    method: text === undefined ? 'GET' : 'POST',
    headers: text === undefined ? {} : { 'content-type': 'application/json' },
    ...(text === undefined ? {} : { body: text }),
  })
  if (answer.status !== 200) throw new Error(`The fixture refused "${action}": ${answer.status} ${answer.body}`)
  return JSON.parse(answer.body)
}

const POLL_MS = 10
const WAIT_MS = 30_000

/**
 * Looks again every 10 ms until it is as wanted.
 * @throws {Error} with what was seen last, after 30 s.
 */
export async function whenSeen<Seen>(look: () => Promise<Seen>, isWanted: (seen: Seen) => boolean): Promise<Seen> {
  const deadlineAtMs = performance.now() + WAIT_MS
  for (;;) {
    const seen = await look()
    if (isWanted(seen)) return seen
    if (performance.now() > deadlineAtMs) throw new Error(`It did not come to that: ${JSON.stringify(seen)}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
