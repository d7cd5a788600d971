// Headers from a program of the user's: asked once, asked again after the server refused them. Its output is never logged or quoted.

import { type HeadersProvider, type Platform, runCommand, WireError } from '@convoke/wire'
import { HostError, isObject } from '../base/index.ts'

/** Which program makes the headers of which server. */
export interface HeadersHelperOptions {
  readonly server: string
  readonly platform: Platform
  readonly command: string
  readonly args: readonly string[]
}

type Headers = Readonly<Record<string, string>>

/** Names that belong to the protocol and to the connection. */
const RESERVED: ReadonlySet<string> = new Set(
  `accept connection content-encoding content-length content-type host keep-alive last-event-id mcp-protocol-version mcp-session-id origin
  proxy-connection referer te trailer transfer-encoding upgrade`.split(/\s+/),
)
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]{0,16384}$/

/** Runs the helper at the first request, and once more for each refusal of what it had said. */
export class HeadersHelper implements HeadersProvider {
  readonly #options: HeadersHelperOptions
  #current: Promise<Headers> | undefined
  #refreshing: Promise<boolean> | undefined

  constructor(options: HeadersHelperOptions) {
    this.#options = options
  }

  /** @throws {HostError} `HEADERS_HELPER_FAILED` */
  headers(): Promise<Headers> {
    const mine = (this.#current ??= this.#run())
    // A failure is not kept: the next attempt runs the program again.
    mine.catch(() => {
      if (this.#current === mine) this.#current = undefined
    })
    return mine
  }

  /** True when the program now says something else. One run for all requests that were refused together. */
  refused(status: number): Promise<boolean> {
    if (status !== 401 && status !== 403) return Promise.resolve(false)
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #refresh(): Promise<boolean> {
    const before = await this.#current?.catch(() => undefined)
    const next = this.#run()
    const after = await next.catch(() => undefined)
    if (after === undefined) return false
    this.#current = next
    return before === undefined || !sameHeaders(before, after)
  }

  async #run(): Promise<Headers> {
    const { platform, command, args } = this.#options
    const { exitCode, signal, stdout } = await runCommand({ platform, command, args }).catch((error: unknown) => {
      throw this.#failure(error instanceof WireError ? error.message : 'it could not be run')
    })
    if (exitCode !== 0) throw this.#failure(`it ended with ${signal ?? `code ${exitCode}`}`)
    const headers = parseHelperOutput(stdout.toString('utf8'))
    if (typeof headers === 'string') throw this.#failure(headers)
    return headers
  }

  #failure(why: string): HostError {
    const { server } = this.#options
    return new HostError('HEADERS_HELPER_FAILED', `Server "${server}": the headersHelper gave no headers: ${why}`)
  }
}

/** The headers in what a helper printed, or why there are none (a text that quotes nothing of it). Names come back in lower case. */
export function parseHelperOutput(printed: string): Headers | string {
  let value: unknown
  try {
    value = JSON.parse(printed.trim())
  } catch {
    return 'its output is not JSON'
  }
  if (!isObject(value)) return 'its output is not a JSON object'
  const headers: Record<string, string> = {}
  for (const [name, content] of Object.entries(value)) {
    const key = name.toLowerCase()
    if (!NAME.test(name)) return 'a name in its output is no header name'
    if (RESERVED.has(key)) return `it sets the reserved header "${key}"`
    if (typeof content !== 'string' || !VALUE.test(content)) return `the value of "${key}" is no header value`
    if (Object.hasOwn(headers, key)) return `it sets "${key}" twice`
    headers[key] = content
  }
  return headers
}

function sameHeaders(one: Headers, other: Headers): boolean {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}
