// A server of one client's own: introduced with that client's capabilities, asked for nothing else, gone with it.
import type { Host, JsonObject, RawAnswer, RequestOptions, ServerDefinition, ServerPort } from '@convoke/host'
import { HostError, type HostErrorCode, SERVER_DEFAULTS } from '@convoke/host'
import type { Client } from '@convoke/wire/server'
import { type Asked, answerQuestion, handlersOf, type Unanswered, type Voice } from './asks.ts'
import { called } from './upstream-call.ts'

/** A live connection; `closed` resolves when it is over. */
export type DedicatedPort = ServerPort & AsyncDisposable & { readonly closed?: Promise<void> }

export interface DedicatedInit {
  readonly host: Host
  readonly server: string
  readonly client: Client
  /** What the server is told that its client can do. */
  readonly capabilities: JsonObject
  readonly voice: Voice
  readonly unanswered: Unanswered
  /** What the server tells outside of any call. */
  readonly onNotification: (method: string, params: JsonObject) => void
}

/** How a server answers `initialize` that knows only the newer era. */
const SPEAKS_NO_LEGACY: ReadonlySet<HostErrorCode> = new Set([
  'VERSION_UNSUPPORTED',
  'SERVER_ERROR',
  'HTTP_STATUS',
  'PROTOCOL_ERROR',
])

/** Opens its connection when it is first needed, and again when it was lost. */
export class Dedicated implements AsyncDisposable {
  readonly #init: DedicatedInit
  readonly #ending = new AbortController()
  #port: Promise<DedicatedPort> | undefined
  /** What a call has been told already: the connection tells it once more, as its own. */
  #told: JsonObject | undefined

  constructor(init: DedicatedInit) {
    this.#init = init
  }

  get server(): string {
    return this.#init.server
  }

  /** @throws {HostError} what a start fails with */
  port(): Promise<DedicatedPort> {
    if (this.#port !== undefined) return this.#port
    const mine = this.#open()
    this.#port = mine
    mine.then(
      (port) =>
        port.closed?.then(() => {
          if (this.#port === mine) this.#port = undefined
        }),
      () => {
        if (this.#port === mine) this.#port = undefined
      },
    )
    return mine
  }

  /** An older client meets the server in its own era, if the server speaks that, too: what it asks of a session means something there. */
  async #open(): Promise<DedicatedPort> {
    if (this.#init.client.era === 'modern') return this.#openIn(undefined)
    try {
      return await this.#openIn('legacy')
    } catch (error) {
      if (!HostError.is(error) || !SPEAKS_NO_LEGACY.has(error.code) || this.#ending.signal.aborted) throw error
      return this.#openIn(undefined)
    }
  }

  #openIn(era: 'legacy' | undefined): Promise<DedicatedPort> {
    const { host, server, client, capabilities, voice, unanswered } = this.#init
    const asked: Asked = { who: called(server), client, voice, asker: client, unanswered }
    return host.openDedicated(server, {
      capabilities,
      ...(typeof client.info['name'] === 'string' ? { clientInfo: client.info } : {}),
      handlers: handlersOf((params, { method, signal }) => answerQuestion(asked, method, params, signal)),
      onNotification: (method, params) => {
        const repeated = this.#told === params
        this.#told = undefined
        if (!repeated) this.#init.onNotification(method, params)
      },
      ...(era === undefined ? {} : { era }),
      signal: this.#ending.signal,
    })
  }

  /** A call has been told this: it is not told to the client a second time. */
  tellOnce(params: JsonObject): void {
    this.#told = params
  }

  /** Ends the connection. Never rejects. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    const port = await this.#port?.catch(() => undefined)
    try {
      await port?.[Symbol.asyncDispose]()
    } catch {
      // What could not be ended is told by the host when it closes.
    }
  }
}

/** Which tools of a server may be called, and for how long. */
export class ToolRules {
  readonly #definition: ServerDefinition | undefined

  constructor(definition: ServerDefinition | undefined) {
    this.#definition = definition
  }

  /** Exact names; what is denied stays denied. */
  allows(rawName: string): boolean {
    const { allow, deny } = this.#definition?.tools ?? {}
    return deny?.includes(rawName) !== true && (allow === undefined || allow.includes(rawName))
  }

  /** Nothing is left out. */
  get allowsAll(): boolean {
    const { allow, deny } = this.#definition?.tools ?? {}
    return allow === undefined && (deny === undefined || deny.length === 0)
  }

  /** The limits of one request, in ms. */
  limits(rawName?: string): Pick<RequestOptions, 'idleTimeoutMs' | 'totalTimeoutMs'> {
    const override = rawName === undefined ? undefined : this.#definition?.tools.overrides?.[rawName]
    return {
      idleTimeoutMs: override?.toolTimeoutMs ?? this.#definition?.toolTimeoutMs ?? SERVER_DEFAULTS.toolTimeoutMs,
      totalTimeoutMs:
        override?.toolTotalTimeoutMs ?? this.#definition?.toolTotalTimeoutMs ?? SERVER_DEFAULTS.toolTotalTimeoutMs,
    }
  }
}

/** An answer with its listing filtered by the rules. */
export function filterTools({ kind, body, typed }: RawAnswer, rules: ToolRules): RawAnswer {
  if (kind === 'error' || rules.allowsAll) return { kind, body, typed }
  const result = JSON.parse(body.toString('utf8')) as { tools?: unknown }
  const tools = Array.isArray(result.tools)
    ? result.tools.filter((tool) => rules.allows(String((tool as JsonObject | null)?.['name'])))
    : []
  return { kind, typed, body: Buffer.from(JSON.stringify({ ...result, tools })) }
}
