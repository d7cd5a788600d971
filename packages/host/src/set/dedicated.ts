// A connection of its own to one server, for one client: introduced with that client's capabilities, answered by that client's handlers.
import { HostError, type JsonObject, Scope } from '../base/index.ts'
import type { ServerConnection, ServerPort } from '../connection/index.ts'
import { classifyFailure, failureFacts, sessionPort } from '../connection/index.ts'
import { openServer, type ServerRequestHandler, StartupBudget } from '../protocol/index.ts'
import type { SetSettings } from './settings.ts'

/** How a dedicated connection introduces itself and answers. */
export interface DedicatedOptions {
  readonly capabilities: JsonObject
  readonly clientInfo?: JsonObject
  readonly handlers?: Readonly<Record<string, ServerRequestHandler>>
  readonly onNotification?: (method: string, params: JsonObject) => void
  /** The era to speak; a server that does not speak it fails the start. Default: found out, as for every connection. */
  readonly era?: 'legacy' | 'modern'
  readonly signal?: AbortSignal
}

/** A port that ends with its own connection. */
export type DedicatedPort = ServerPort & AsyncDisposable & { readonly closed: Promise<void> }

/** The dedicated connections of one host. Those that are open, or being opened, end with it. */
export class DedicatedPorts {
  readonly #settings: SetSettings
  readonly #opening = new Map<Promise<DedicatedPort>, AbortController>()

  constructor(settings: SetSettings) {
    this.#settings = settings
  }

  /** @throws {HostError} what a start fails with, or `CANCELLED` on abort; nothing is left running then. */
  async open(connection: ServerConnection, options: DedicatedOptions): Promise<DedicatedPort> {
    const abort = new AbortController()
    const { signal } = options
    const whole = signal === undefined ? abort.signal : AbortSignal.any([signal, abort.signal])
    const opening = openDedicated(connection, { ...options, signal: whole }, this.#settings)
    this.#opening.set(opening, abort)
    const forget = (): void => void this.#opening.delete(opening)
    // Over, but perhaps not at its end: the close waits for that, too.
    opening.then((port) => port.closed.then(() => port[Symbol.asyncDispose]()).then(forget, forget), forget)
    return opening
  }

  /** Cancels what is being opened, closes what is open. */
  async close(): Promise<void> {
    await Promise.all(
      [...this.#opening].map(async ([opening, abort]) => {
        abort.abort()
        const port = await opening.catch(() => undefined)
        await port?.[Symbol.asyncDispose]()
      }),
    )
  }
}

/**
 * Starts or reaches the server once more, within its startup budget.
 * @throws {HostError} what a start fails with, or `CANCELLED` on abort; nothing is left running then.
 */
async function openDedicated(
  { definition, state }: ServerConnection,
  options: DedicatedOptions,
  settings: SetSettings,
): Promise<DedicatedPort> {
  const { name, startupTimeoutMs } = definition
  if (state.kind === 'disabled' || state.kind === 'needs-input')
    throw new HostError(state.reason.code, state.reason.message, { details: { server: name } })
  const scope = new Scope()
  const budget = new StartupBudget({ server: name, platform: settings.protocol.platform, startupTimeoutMs })
  const onAbort = (): void => budget.cancel('the caller cancelled it')
  options.signal?.addEventListener('abort', onAbort, { once: true })
  if (options.signal?.aborted === true) onAbort()
  let facts:
    | { readonly secrets: readonly string[]; readonly credentials: 'none' | 'configured' | 'sign-in' }
    | undefined
  try {
    const session = await openServer({
      definition,
      settings: settings.protocol,
      budget,
      authorization: settings.authorization?.(definition),
      introduction: { ...introductionOf(options), judge: settings.introduction?.(name).judge },
      onResolved: (resolved) => {
        facts = resolved
      },
      onNotification: (method, params) => options.onNotification?.(method, params),
      onNoise: () => {},
      onFailing: () => {},
    })
    scope.use(session)
    const close = (): Promise<void> => scope.close()
    return Object.defineProperties(sessionPort(session), {
      closed: { value: session.closed.then(() => {}) },
      [Symbol.asyncDispose]: { value: close },
    }) as DedicatedPort
  } catch (error) {
    await scope.close()
    if (!HostError.is(error)) throw error
    const { reason } = classifyFailure(error, {
      ...failureFacts(definition, facts?.credentials ?? 'none'),
      stderrTail: String(error.details['stderrTail'] ?? ''),
      secrets: facts?.secrets ?? [],
    })
    throw new HostError(reason.code, reason.message, { details: error.details, cause: error })
  } finally {
    budget.stop()
    options.signal?.removeEventListener('abort', onAbort)
  }
}

function introductionOf({ capabilities, clientInfo, handlers, era }: DedicatedOptions): {
  capabilities: JsonObject
  era?: 'legacy' | 'modern'
  handlers: Readonly<Record<string, ServerRequestHandler>>
  clientInfo?: { name: string; version: string }
} {
  return {
    capabilities,
    handlers: handlers ?? {},
    ...(era === undefined ? {} : { era }),
    ...(clientInfo === undefined ? {} : { clientInfo: clientInfo as { name: string; version: string } }),
  }
}
